// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"maps"
	"slices"
)

// changer is the part of a process that changes the membership.
type changer struct {
	op     ChangeOperation
	m      *Change
	record ChangeRecord
	result ChangeResult
	helper bool    // the process continues changes that it finds
	early  []Found // the list that a mutant took too early
}

// asked is the command of a changer for which a process was spawned.
type asked struct {
	parent, life int // 1 + the changer's index in world.procs, and the value of its life when it asked
	cmd          Command
}

// change returns the operation of a membership change.
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
	n.Kept = maps.Clone(c.Kept)
	n.Result.Lost = slices.Clone(c.Result.Lost)
	n.Absent = slices.Clone(c.Absent)
	n.Order = slices.Clone(c.Order)
	n.Result.Blocking = slices.Clone(c.Result.Blocking)
	n.Result.Left = slices.Clone(c.Result.Left)
	return &n
}

// beginChange starts or recovers changer i.
func (w *world) beginChange(i int) {
	p := w.own(i)
	ch := p.change
	ch.op.Peers = w.configured(ch.op.Peers, w.changer(ch.op).op.Peers, ch.op.Peer)
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

// help lets helper i continue the change that it finds in peer at.
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

// spawnFor runs command c of changer i in a process of its own.
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
	op.Inert, op.Holds = w.cfg.inert, w.cfg.holds()
	op.Lease, op.Watch = min(1, w.cfg.lease), op.Watch && w.cfg.lease > 0
	op.Peers = w.procs[i].change.op.Peers
	p.change, p.op, p.m, p.state = nil, op, New(op), running
	w.run(at, p.m.Start())
}

// answer passes r to the changer for which a process was spawned, if that changer has neither
// crashed nor ended since.
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
	w.cameBack(ch)
	if at := w.store.cells[w.store.index(ch.op.Peer)].set; ch.op.Kind == Leave && ch.result.Ending == Done && at != nil && at.Self.State == peerLeaving {
		w.fault("I4: " + ch.op.ID + " says done and " + ch.op.Peer + " is not out")
	}
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

// crashChange ends changer i and the processes that it spawned.
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

// turn reports whether changer i may begin.
func (w *world) turn(i int) bool {
	return w.due(w.procs[i]) && (!w.cfg.inTurn || !slices.ContainsFunc(w.procs[:i], func(p *proc) bool {
		return p.change != nil && p.state != done
	}))
}
