// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"
)

// message is a command on its way.
type message struct {
	proc    int
	life    int
	cmd     Command
	orphan  bool // the sender no longer waits for the reply
	double  bool // a duplicate that the network made
	applied bool // the reply is on its way
	reply   *Reply
}

// awaited reports whether m has yet to be applied and its sender waits for the reply.
func (m message) awaited() bool { return !m.applied && !m.orphan && m.cmd.Verb != Sleep }

// deliver applies message k, or takes the reply if the message was applied already, and hands the
// reply over to the sender.
func (w *world) deliver(k int) {
	m := w.net[k]
	w.net = slices.Delete(w.net, k, k+1)
	var r Reply
	if m.applied {
		r = *m.reply
	} else {
		r = w.carry(m)
	}
	if m.orphan {
		return
	}
	p := w.own(m.proc)
	if p.change != nil {
		if p.life == m.life && p.change.m != nil {
			w.runChange(m.proc, w.handleChange(m.proc, m.cmd, r))
		}
		return
	}
	if p.life != m.life || p.m == nil {
		return
	}
	w.run(m.proc, w.handle(m.proc, m.cmd, r))
}

// carry applies a message and records its commits.
func (w *world) carry(m message) Reply {
	if r, wrong := w.misdirected(m); wrong {
		return r
	}
	if m.cmd.Verb == PutPeerSet || w.procs[m.proc].change != nil && !m.cmd.remote() {
		return w.carryChange(m)
	}
	if m.cmd.Peer != "" && !w.reaches(w.procs[m.proc], m.cmd.Peer) {
		return refused(NoSuchPeer)
	}
	if at := w.store.index(m.cmd.Peer); w.isDown(at) || w.hidden(at, w.procs[m.proc]) {
		return refused(Unavailable)
	}
	if w.cfg.mutant.answer != nil {
		if r, ok := w.cfg.mutant.answer(m.cmd); ok {
			return r
		}
	}
	if (m.cmd.Verb == List || m.cmd.Verb == Settle) && w.lodger != nil {
		return w.residents(m.cmd)
	}
	if m.cmd.Verb == ReadOwner && w.owner != nil {
		return w.readOwner(w.procs[m.proc], m.cmd)
	}
	if m.cmd.onRecord() {
		return w.carryRecord(m)
	}
	if m.cmd.Verb == Delete {
		if s := w.pinned(m.cmd); s != "" {
			w.fault(s)
		}
	}
	if m.cmd.Verb == List || m.cmd.Verb == Settle {
		return w.reside(m.cmd)
	}
	switch m.cmd.Verb {
	case Count:
		return Reply{Class: Applied, Code: OK, Requests: Requests{Homes: 1, Requested: 1}}
	case Begin, Advance, Forget:
		p := w.procs[m.proc]
		return w.log(p, m.cmd.Verb, p.m.Record)
	case Activate, Release:
		if !m.cmd.Object.Claimed || m.cmd.Object.Stage == Reserved {
			w.fault("a reservation is activated in " + m.cmd.Peer)
		}
		// Release lets the kind delete objects, such as the namespace, that it created for this object.
		// A late Release deletes nothing that the kind created for a later object of the name.
		if m.cmd.Verb == Release && w.resides() {
			w.fault("the namespace is released while an object is in it")
		}
		if m.cmd.Verb == Release && w.tenant == resident && w.admitting == m.cmd.Object.Claim.Operation {
			w.fault("the namespace is released while an object is in it")
		}
	case Put, Delete:
		if (m.cmd.UID == "" || m.cmd.RV == "") && !w.cfg.mutant.blind {
			w.fault("I5: a write without preconditions")
		}
	}
	if p := w.procs[m.proc]; p.seen != nil && m.cmd.Verb == Read && !m.orphan {
		if s := p.strand(m.cmd); s.Step == stepPrimary || s.Step == stepRival {
			old := store{cells: p.seen}
			r, _ := old.apply(w.cfg.mode, m.cmd)
			return r
		}
	}
	w.judgeClaim(m)
	if p := w.procs[m.proc]; !p.sweep && !p.op.Central && !p.begun && !m.orphan && (m.cmd.Verb == Create || m.cmd.Verb == Put || m.cmd.Verb == Delete) {
		w.fault("I8: a write before the log has the operation")
	}
	at := w.store.index(m.cmd.Peer)
	unclaimed := at >= 0 && w.store.cells[at].obj != nil && !w.store.cells[at].obj.Claimed
	if op := w.procs[m.proc].op; m.cmd.Verb == Put && m.cmd.Object.Removal == op.ID && at >= 0 {
		w.removes(op, w.store.cells[at].obj, m.cmd)
	}
	r, broken := w.store.apply(w.cfg.mode, m.cmd)
	if broken != "" {
		w.fault(broken)
	}
	if r.Class == Applied && m.cmd.Verb == Put {
		w.commits(r.Object)
		if op := w.procs[m.proc].op; op.Action == Adopt && unclaimed {
			// An adoption is committed by its write of an unclaimed object. Its other writes finish
			// other operations.
			w.note(op.ID)
		}
		if op := w.procs[m.proc].op; (op.Action == Add || op.Action == Update) && r.Object.Stage != Reserved && r.Object.Revision.Operation == op.ID && r.Object.Payload != op.Payload {
			w.fault("I7: " + op.ID + " writes another content than its own")
		}
		w.homes(m.cmd.Peer, r.Object)
	}
	return r
}

// removes checks the write c of object o, which commits removal op: o must have the resourceVersion
// and the revision that op names, if it names any.
func (w *world) removes(op Operation, o *Object, c Command) {
	if o == nil || o.UID != c.UID || o.RV != c.RV || o.Removal != "" {
		return
	}
	if op.Version != "" && op.Version != o.RV || op.Base != 0 && (op.Base != o.Revision.Number || o.Edited()) {
		w.fault("rule: " + op.ID + " removes another state of the object than its request names")
	}
}

// note records that op is committed.
func (w *world) note(op string) {
	if op == "" || slices.Contains(w.committed, op) {
		return
	}
	w.committed = append(w.committed, op)
	slices.Sort(w.committed)
	if slices.Contains(w.denied, op) {
		w.fault("I4: " + op + " is committed after it was reported as aborted")
	}
}

// commits records every operation whose effect o shows.
func (w *world) commits(o Object) {
	note := w.note
	if !o.Claimed || o.Stage == Reserved || !o.Primary(w.cfg.mode) {
		return
	}
	note(o.Claim.Operation)
	note(o.Removal)
	if w.cfg.mode == Everywhere {
		note(o.Revision.Operation)
	}
}
