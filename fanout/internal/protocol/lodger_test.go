// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// A lodger is a second object, in the namespace that the first object (the owner) owns. It has a
// world of its own (a model state, over the same peers), in which machines add or adopt it. The two
// worlds interact in two places: the lodger's add reads the owner, and a removal of the owner lists
// the namespace and settles the objects in it.

// inside marks an action of the lodger's world.
const inside kind = 1 << 7

func (w *world) lodge() {
	if w.cfg.lodger != nil {
		w.lodger = newWorld(w.cfg.lodger)
		w.lodger.owner = w
	}
}

// lodged returns the actions that are possible next in the lodger's world.
func (w *world) lodged() []action {
	if w.lodger == nil {
		return nil
	}
	acts := w.lodger.enabled()
	for i := range acts {
		acts[i].kind |= inside
	}
	return acts
}

// cloneLodger gives a cloned world a lodger's world of its own.
func (w *world) cloneLodger() {
	if w.lodger != nil {
		w.lodger = w.lodger.clone()
		w.lodger.owner = w
	}
}

// readOwner replies to an add that reads the owner in its target.
func (w *world) readOwner(p *proc, c Command) Reply {
	cells := w.owner.store.cells
	if p.seen != nil {
		cells = p.seen
	}
	o := cells[w.store.index(c.Peer)].obj
	if o == nil {
		return refused(NotFound)
	}
	return Reply{Class: Applied, Code: OK, Object: *o}
}

// residents replies to a removal of the owner that lists or settles the namespace in one peer. The
// reply has the objects that are left in the namespace there.
func (w *world) residents(c Command) Reply {
	reply := Reply{Class: Applied, Code: OK}
	i := w.lodger.store.index(c.Peer)
	o := w.lodger.store.cells[i].obj
	if o == nil {
		return reply
	}
	stage := o.Stage
	if c.Verb == Settle && stage == Reserved {
		r := w.lodger.sweepNow(i)
		if r.Removed {
			return reply
		}
		if r.Holder.Claimed {
			stage = r.Holder.Stage
		}
	}
	reply.Occupants = []Occupant{{Peer: c.Peer, Name: "lodger", Stage: stage}}
	return reply
}

// sweepNow sweeps the object in peer i in one step.
func (w *world) sweepNow(i int) Result {
	op := Operation{ID: "~", Action: Sweep, Mode: w.cfg.mode, Target: peerName(i), Met: *w.store.cells[i].obj, Lease: w.cfg.lease}
	for j := range w.store.cells {
		op.Peers = append(op.Peers, peerName(j))
	}
	m := New(op)
	for cmds := m.Start(); !m.Over(); cmds = cmds[1:] {
		r, broken := w.store.apply(w.cfg.mode, cmds[0])
		if broken != "" {
			w.fault(broken)
		}
		r.Strand, r.Seq = cmds[0].Strand, cmds[0].Seq
		cmds = append(cmds, m.Handle(r)...)
	}
	return m.Result
}

// resides reports whether an object in the namespace is in effect.
func (w *world) resides() bool {
	return w.lodger != nil && slices.ContainsFunc(w.lodger.store.cells, func(c cell) bool {
		return c.obj != nil && c.obj.Primary(w.lodger.cfg.mode) && c.obj.Committed()
	})
}

// checkLodger checks the invariants of the lodger's world, and that the owner exists while an
// object in its namespace is in effect. It returns the first violation, or "".
func (w *world) checkLodger() string {
	if w.lodger == nil {
		return ""
	}
	if s := w.lodger.check(); s != "" {
		return "in the namespace: " + s
	}
	if w.resides() && !slices.ContainsFunc(w.store.cells, func(c cell) bool {
		return c.obj != nil && c.obj.Primary(w.cfg.mode) && c.obj.Stage != Reserved
	}) {
		return "the owner of a namespace is gone while the namespace has objects"
	}
	return ""
}

// evict calls rest, which finishes all operations in a copy of the lodger's world and returns a
// violation, or "". Then evict deletes the lodger in all peers, so that the owner can be removed.
func (w *world) evict(rest func(*world) string) string {
	if w.lodger == nil {
		return ""
	}
	if s := rest(w.lodger); s != "" {
		return "in the namespace: " + s
	}
	w.occupied = false
	w.lodger = w.lodger.clone()
	w.lodger.owner = w
	w.lodger.net = nil
	for i := range w.lodger.store.cells {
		w.lodger.store.cells[i].obj = nil
	}
	for i := range w.lodger.procs {
		p := w.lodger.own(i)
		p.m, p.state = nil, done
	}
	return ""
}

func within(p plan) plan {
	p.op.Within = true
	return p
}

// lodgings are configurations in which an object is added to a namespace, or adopted there,
// while the owner of the namespace is removed.
var lodgings = []config{
	{name: "owner's removal, an add at home", mode: Everywhere, peers: 2, committed: "p", plans: []plan{removal("r")},
		lodger: &config{peers: 2, plans: []plan{within(add("t", "a", 1, "s"))}}},
	{name: "owner's removal, an add elsewhere", mode: Everywhere, peers: 2, committed: "p", plans: []plan{removal("r")},
		lodger: &config{peers: 2, plans: []plan{within(add("t", "b", 1, "s"))}}},
	{name: "owner's removal, an adoption", mode: Everywhere, peers: 2, committed: "p", plans: []plan{removal("r")},
		lodger: &config{peers: 2, strangers: "b", persons: persons{withdrawals: 1}, plans: []plan{within(adoption("t", "b"))}}},
	{name: "owner's removal, an add and its removal", mode: Everywhere, peers: 2, committed: "p", plans: []plan{removal("r")},
		lodger: &config{peers: 2, lease: live, plans: []plan{within(add("t", "b", 1, "s")), removal("u")}}},
}

var lodgingsDeep = []config{
	{name: "owner's removal, an add, late and crashed", mode: Everywhere, peers: 2, committed: "p", plans: []plan{removal("r")},
		lodger: &config{peers: 2, timeouts: 1, crashes: 1, plans: []plan{within(add("t", "b", 1, "s"))}}},
	{name: "owner's removal late and crashed, an add", mode: Everywhere, peers: 2, committed: "p", timeouts: 1, crashes: 1, plans: []plan{removal("r")},
		lodger: &config{peers: 2, plans: []plan{within(add("t", "b", 1, "s"))}}},
	{name: "owner's removal late, a late add at home", mode: Everywhere, peers: 2, committed: "p", timeouts: 1, plans: []plan{removal("r")},
		lodger: &config{peers: 2, timeouts: 1, plans: []plan{within(add("t", "a", 1, "s"))}}},
	{name: "owner's removal, an adoption, late and crashed", mode: Everywhere, peers: 2, committed: "p", timeouts: 1, plans: []plan{removal("r")},
		lodger: &config{peers: 2, strangers: "b", timeouts: 1, crashes: 1, persons: persons{edits: 1}, plans: []plan{within(adoption("t", "b"))}}},
	{name: "owner's kubectl delete, a sweep, an add", mode: Everywhere, peers: 2, committed: "p", sweepers: 1, deletes: 1,
		lodger: &config{peers: 2, plans: []plan{within(add("t", "b", 1, "s")), after(1, removal("u"))}}},
	{name: "owner's add, an add", mode: Everywhere, peers: 2, timeouts: 1, crashes: 1, plans: []plan{add("x", "a", 1, "p")},
		lodger: &config{peers: 2, plans: []plan{within(add("t", "b", 1, "s"))}}},
}

var lodgingMutants = []broken{
	{rule: "an add reads the owner after its primary was created", cfg: config{
		mode: Everywhere, peers: 2, committed: "p", plans: []plan{removal("r")},
		lodger: &config{peers: 2, plans: []plan{within(add("t", "b", 1, "s"))},
			mutant: mutant{reply: func(w *world, p *proc, c Command, r Reply) Reply {
				if c.Verb == Begin {
					p.seen = slices.Clone(w.owner.store.cells)
				}
				return r
			}}},
	}, want: "the namespace"},
	{rule: "a removal lists the namespace after its mark", cfg: config{
		mode: Everywhere, peers: 2, committed: "p", plans: []plan{removal("r")},
		lodger: &config{peers: 2, plans: []plan{within(add("t", "b", 1, "s"))}},
		mutant: mutant{reply: func(_ *world, p *proc, c Command, r Reply) Reply {
			if p.m.Phase == clearing && c.Verb == List {
				r.Occupants = nil
			}
			return r
		}},
	}, want: "the namespace"},
	{rule: "reservations in the namespace are settled, not ignored", cfg: config{
		mode: Everywhere, peers: 2, committed: "p", plans: []plan{removal("r")},
		lodger: &config{peers: 2, plans: []plan{within(add("t", "b", 1, "s"))}},
		mutant: mutant{reply: func(_ *world, _ *proc, c Command, r Reply) Reply {
			if c.Verb == List && len(r.Occupants) > 0 && r.Occupants[0].Stage == Reserved {
				r.Occupants = nil
			}
			return r
		}},
	}, want: "the namespace"},
}
