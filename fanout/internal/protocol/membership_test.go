// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
)

// changer is the part of a process that changes the membership.
type changer struct {
	op     ChangeOperation
	m      *Change
	record ChangeRecord
	result ChangeResult
	helper bool    // it goes on with changes that it meets
	early  []Found // what a broken one has listed too early
}

// asked is the command that a process was spawned for.
type asked struct {
	parent, life int // 1 + the process that asked
	cmd          Command
}

// change makes up the operation of a change.
func change(id string, kind ChangeKind, peer string) ChangeOperation {
	return ChangeOperation{ID: id, Kind: kind, Peer: peer, UID: "k" + peer}
}

// changers adds the processes that a configuration's changes need.
func (w *world) changers() {
	for _, op := range w.cfg.changes {
		w.procs = append(w.procs, &proc{change: w.changer(op)})
	}
	for range w.cfg.helpers {
		w.procs = append(w.procs, &proc{change: &changer{helper: true}})
	}
}

func (w *world) changer(op ChangeOperation) *changer {
	op.Lease = min(1, w.cfg.lease)
	op.Coordinator = op.ID
	op.Peers = nil
	for i := range w.store.cells {
		if op.Kind != Force || peerName(i) != op.Peer {
			op.Peers = append(op.Peers, peerName(i))
		}
	}
	return &changer{op: op}
}

func cloneChange(c *Change) *Change {
	n := *c
	n.Strands = slices.Clone(c.Strands)
	n.Sets = make(map[string]PeerSet, len(c.Sets))
	for p, s := range c.Sets {
		n.Sets[p] = s
	}
	n.Later = slices.Clone(c.Later)
	n.Absent = slices.Clone(c.Absent)
	n.Order = slices.Clone(c.Order)
	n.Result.Blocking = slices.Clone(c.Result.Blocking)
	n.Result.Left = slices.Clone(c.Result.Left)
	return &n
}

// begin starts or recovers changer i.
func (w *world) beginChange(i int) {
	p := w.own(i)
	ch := p.change
	switch {
	case p.state == crashed:
		ch.m = RecoverChange(ch.op, ch.record)
	default:
		ch.m = NewChange(ch.op)
		p.begun = ch.op.Anchor != ""
	}
	p.state = running
	w.runChange(i, ch.m.Start())
}

// help makes helper i go on with the change that it finds in peer at.
func (w *world) help(i, at int) {
	p := w.own(i)
	p.change.op = HelpChange(w.store.cells[at].set.Change, w.changer(ChangeOperation{}).op)
	p.state = idle
	w.beginChange(i)
}

// runChange sends the commands of changer i.
func (w *world) runChange(i int, cmds []Command) {
	p := w.procs[i]
	for len(cmds) > 0 {
		c := cmds[0]
		cmds = cmds[1:]
		if w.cfg.mutant.change != nil {
			c = w.cfg.mutant.change(w, p, c)
		}
		m := message{proc: i, life: p.life, cmd: c}
		switch c.Verb {
		case Sub, Finish:
			w.spawnFor(i, c)
			continue
		case PutPeerSet, Survey:
			w.net = append(w.net, m)
			continue
		case ReadPeerSet:
			if w.split || w.cfg.reads {
				w.net = append(w.net, m)
				continue
			}
		}
		cmds = append(cmds, w.handleChange(i, c, w.carryChange(m))...)
	}
	w.finishChange(i)
}

func (w *world) handleChange(i int, c Command, r Reply) []Command {
	p := w.procs[i]
	r.Strand, r.Seq = c.Strand, c.Seq
	if w.cfg.mutant.told != nil {
		r = w.cfg.mutant.told(w, p, c, r)
	}
	return p.change.m.Handle(r)
}

// carryChange applies a command of a changer.
func (w *world) carryChange(m message) Reply {
	p := w.procs[m.proc]
	ok := Reply{Class: Applied, Code: OK}
	switch m.cmd.Verb {
	case Begin, Advance:
		p.begun = true
		p.change.record = p.change.m.Record
		return ok
	case Forget:
		p.begun = false
		return ok
	case Sleep:
		return ok
	}
	i := w.store.index(m.cmd.Peer)
	if i < 0 {
		return refused(NoSuchPeer)
	}
	at := &w.store.cells[i]
	switch m.cmd.Verb {
	case Survey:
		if at.obj != nil {
			ok.Found = []Found{{Key: "n", Mode: w.cfg.mode, Object: *at.obj}}
		}
		return ok
	case ReadPeerSet:
		if at.set == nil {
			return refused(NotFound)
		}
		ok.PeerSet = *at.set
		return ok
	default:
		if !p.begun && !m.orphan {
			w.fault("I8: a membership is written before the log has the change")
		}
		r, broken := w.store.putSet(at, m.cmd)
		if broken != "" {
			w.fault(broken)
		}
		return r
	}
}

// putSet replaces a PeerSet as an API server would.
func (s *store) putSet(at *cell, c Command) (Reply, string) {
	set := *c.Set
	switch {
	case at.set == nil && c.RV != "":
		return refused(NotFound), ""
	case at.set != nil && c.RV == "":
		return refused(Exists), ""
	case at.set != nil && c.RV != at.set.RV:
		return refused(Conflict), ""
	}
	broken := ""
	if old := at.set; old != nil {
		if set.Self.Peer != old.Self.Peer || set.Self.UID != old.Self.UID {
			broken = "rule: self cannot become another peer"
		}
		if set.Epoch != old.Epoch+1 && !reflect.DeepEqual(set, *old) {
			broken = "rule: the epoch grows"
		}
		if old.Change.ID == "" && set.Change.ID == "" {
			broken = "rule: a write of a PeerSet needs the slot"
		}
	}
	set.UID = "s" + c.Peer
	set.RV = s.rv()
	at.set = &set
	return Reply{Class: Applied, Code: OK, PeerSet: set}, broken
}

// spawnFor lets a process of its own carry out what changer i asks for.
func (w *world) spawnFor(i int, c Command) {
	at := slices.IndexFunc(w.procs, func(p *proc) bool { return p.spawned && p.m == nil && (p.change == nil || p.change.m == nil) })
	if at < 0 {
		w.procs = append(w.procs, &proc{spawned: true, sweep: true})
		at = len(w.procs) - 1
	}
	p := w.own(at)
	p.asked = asked{i + 1, w.procs[i].life, c}
	if c.Verb == Finish {
		p.change = &changer{helper: true, op: HelpChange(*c.Other, w.changer(ChangeOperation{}).op)}
		p.state = idle
		w.beginChange(at)
		return
	}
	op := *c.Sub
	op.Inert = w.cfg.inert
	op.Lease, op.Watch = min(1, w.cfg.lease), op.Watch && w.cfg.lease > 0
	op.Peers = w.procs[i].change.op.Peers
	p.change, p.op, p.m, p.state = nil, op, New(op), running
	w.run(at, p.m.Start())
}

// answer tells the process that asked what came of it.
func (w *world) answer(a asked, r Reply) {
	if a.parent == 0 {
		return
	}
	i := a.parent - 1
	p := w.own(i)
	if p.life != a.life || p.change == nil || p.change.m == nil {
		return
	}
	w.runChange(i, w.handleChange(i, a.cmd, r))
}

func (w *world) finishChange(i int) {
	p := w.procs[i]
	ch := p.change
	if ch == nil || ch.m == nil || !ch.m.Over() {
		return
	}
	ch.result = ch.m.Result
	p.life++
	ch.m = nil
	switch {
	case ch.helper:
		p.state = idle
		ch.op, ch.result, ch.record = ChangeOperation{}, ChangeResult{}, ChangeRecord{}
	case ch.result.Keep:
		p.state = crashed
	default:
		p.state = done
	}
	if p.spawned {
		a := p.asked
		p.asked, p.change = asked{}, nil
		w.answer(a, Reply{Class: Applied, Code: OK})
	}
}

// crashChange ends changer i and what it has spawned.
func (w *world) crashChange(i int) {
	p := w.own(i)
	p.change.m, p.state = nil, crashed
	p.change.result = ChangeResult{}
	p.life++
	for k := range w.net {
		if w.net[k].proc == i {
			w.net[k].orphan = true
		}
	}
	for j := range w.procs {
		if a := w.procs[j].asked; a.parent == i+1 {
			c := w.own(j)
			c.asked = asked{}
			c.life++
			for k := range w.net {
				if w.net[k].proc == j {
					w.net[k].orphan = true
				}
			}
			c.m = nil
			if c.change != nil {
				w.crashChange(j)
				c.change = nil
			}
		}
	}
	if !p.begun {
		p.state = done
		p.change.result.Ending = Aborted
	}
}

// turn says whether changer i may begin.
func (w *world) turn(i int) bool {
	return !w.cfg.inTurn || !slices.ContainsFunc(w.procs[:i], func(p *proc) bool {
		return p.change != nil && p.state != done
	})
}

// forced says whether peer i was given up.
func (w *world) forced(i int) bool {
	return slices.ContainsFunc(w.store.cells, func(c cell) bool {
		return c.set != nil && c.set.Gone(peerName(i)) && slices.ContainsFunc(c.set.Departed, func(d Departure) bool {
			return d.Peer == peerName(i) && d.How == "Forced"
		})
	})
}

// member says whether what peer i holds counts.
func (w *world) member(i int) bool {
	set := w.store.cells[i].set
	return set != nil && (set.Self.State == peerActive || set.Self.State == peerLeaving) && !w.forced(i)
}

// outsider says whether peer i need not hold anything.
func (w *world) outsider(i int) bool {
	return !w.member(i) || w.store.cells[i].set.Self.State != peerActive
}

// unlike says in what the PeerSets differ while no change is under way.
func (w *world) unlike() string {
	var members []string
	for i, c := range w.store.cells {
		if w.member(i) {
			if c.set.Change.ID != "" {
				return ""
			}
			members = append(members, peerName(i))
		}
	}
	for _, p := range members {
		set := w.store.cells[w.store.index(p)].set
		if set.Self.State != peerActive || !slices.Equal(set.names(""), members) {
			return "I11: " + p + " is " + set.Self.State + " and lists other members than there are"
		}
		for _, m := range set.Members {
			if m.State != peerActive {
				return "I11: " + p + " lists " + m.Peer + " as " + m.State
			}
		}
	}
	return ""
}

// changing says whether a change is under way or yet to come.
func (w *world) changing() bool {
	return slices.ContainsFunc(w.procs, func(p *proc) bool {
		return p.change != nil && !p.change.helper && (p.change.m != nil || p.state == idle || p.state == crashed)
	})
}

// left says what is in effect in a peer that has left.
func (w *world) left() string {
	for i, c := range w.store.cells {
		if c.set == nil || c.set.Self.State != peerOut || c.obj == nil || !c.obj.Claimed || c.obj.Stage == Reserved || w.forced(i) || !c.set.departed(peerName(i)) {
			continue
		}
		if c.obj.Primary(w.cfg.mode) {
			return "OUT: " + peerName(i) + " has left and owns the name"
		}
		return "I7: " + peerName(i) + " has left with a replica in force"
	}
	return ""
}

// settleChanges recovers and finishes every change.
func (w *world) settleChanges() string {
	for i := range w.procs {
		p := w.procs[i]
		if p.change != nil && p.state == crashed {
			w.beginChange(i)
			if s := w.drain(); s != "" {
				return "recovering " + p.change.op.ID + ": " + s
			}
		}
	}
	for n := 0; ; n++ {
		at := slices.IndexFunc(w.store.cells, func(c cell) bool { return c.set != nil && c.set.Change.ID != "" })
		if at < 0 {
			return ""
		}
		if n > 8 {
			return "a slot in " + peerName(at) + " finds no end"
		}
		if n > 2 {
			// A reservation that a late create left is in the way of a change until
			// a sweep, to which changes leave that, has fenced it.
			w.procs = append(w.procs, &proc{sweep: true})
			if s := w.sweepAll(len(w.procs) - 1); s != "" {
				return s
			}
		}
		w.procs = append(w.procs, &proc{change: &changer{helper: true}})
		w.help(len(w.procs)-1, at)
		if s := w.drain(); s != "" {
			return "finishing a change: " + s
		}
	}
}

func (k *keyer) set(s *PeerSet) {
	if s == nil {
		k.n(253)
		return
	}
	k.id(s.RV)
	k.members(s)
	k.s(s.Change.ID)
	k.s(string(s.Change.Kind))
	k.s(s.Change.Peer)
	k.s(s.Change.Anchor)
	k.n(int(s.Change.Heartbeat))
	k.b(s.Change.Over)
}

func (k *keyer) members(s *PeerSet) {
	k.s(s.Self.Peer + s.Self.State)
	for _, m := range s.Members {
		k.s(m.Peer + m.State)
	}
	for _, d := range s.Departed {
		k.s(d.Peer + d.How)
	}
}

func (k *keyer) change(ch *changer) {
	k.s(ch.op.ID)
	k.s(string(ch.op.Kind))
	k.s(ch.op.Peer)
	k.s(string(ch.result.Ending))
	for i := range ch.early {
		k.object(&ch.early[i].Object)
	}
	k.s(ch.record.Anchor + strconv.Itoa(ch.record.Attempt))
	c := ch.m
	if c == nil {
		return
	}
	k.s(string(c.Phase))
	k.s(c.Record.Anchor + strconv.Itoa(c.Record.Attempt))
	for _, n := range []int{c.At, c.Runs, c.Rounds, len(c.Result.Blocking)} {
		k.n(n)
	}
	k.b(c.Worked, c.Stuck, c.Held, c.Sent, c.Retreat, c.Stopping, c.Expired)
	k.b(c.Resumed, c.Again, c.Strange, c.Result.Keep)
	k.s(string(c.Result.Reason))
	for _, p := range c.Order {
		k.s(p)
	}
	k.n(252)
	for i := range 8 {
		if s, ok := c.Sets[peerName(i)]; ok {
			k.n(i)
			k.members(&s)
			k.b(c.mine(s), s.Change.Over)
		}
	}
	for _, s := range c.Later {
		k.s(s.Peer)
		k.object(&s.Sub.Met)
	}
	for i := range c.Strands {
		s := &c.Strands[i]
		if s.Over {
			continue
		}
		k.s(string(s.Job) + s.Peer)
		k.s(string(s.Step))
		k.n(s.Tries)
		k.n(s.Quiet)
		k.s(s.Set.Change.ID)
		k.id(s.Set.RV)
		if s.Job == chSub {
			k.s(string(s.Sub.Action))
			k.object(&s.Sub.Met)
		}
	}
	k.n(251)
}

func (w *world) keySets(k *keyer) {
	if len(w.cfg.changes) == 0 {
		return
	}
	for i := range w.store.cells {
		k.set(w.store.cells[i].set)
	}
}

// drawChanges adds changes of the membership to a random configuration.
func drawChanges(r *rand.Rand, cfg *config) {
	if cfg.peers < 3 || r.IntN(4) > 0 {
		return
	}
	cfg.ring = cfg.peers - 1
	last := peerName(cfg.peers - 1)
	cfg.changes = []ChangeOperation{change("j", Join, last)}
	if cfg.mode == Once && r.IntN(3) == 0 {
		cfg.changes = append(cfg.changes, change("l", Leave, peerName(r.IntN(cfg.peers))))
	}
	cfg.helpers = r.IntN(2)
}
