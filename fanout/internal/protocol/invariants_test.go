// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"slices"
	"strings"
)

// judge compares the ending that a machine reports with the state of the model.
func (w *world) judge(p *proc) {
	r, op := p.m.Result, p.m.Op
	w.reported(p.m)
	p.overtaken = op.Action == Update && p.m.Primary.Revision.Operation != op.ID
	if p.sweep {
		return
	}
	// If the log frees the names of ended records, a late create may make the record again after an
	// adopter has ended the operation. Then only the ending of the creator is final.
	last := !p.adopter || r.Ending != Ended || w.cfg.retained
	if last {
		w.history.ends(op, w.saw(op, r))
	}
	applied := slices.Contains(w.committed, op.ID)
	switch r.Ending {
	case Done, Committed:
		switch {
		case op.Action == Remove:
			w.judgeRemoval(p)
		case op.Action == Move:
			w.judgeMove(p)
		case op.Action == Update && r.Ending == Done && w.restoring.over:
			w.judgeRevision(p)
		case op.Action == Update && r.Ending == Done && !w.everywhere(p.m.Primary.Claim.Operation, r.Revision):
			w.fault("STALE: " + op.ID + " says everywhere and a member has an older revision")
		case !applied:
			w.fault("I4: " + op.ID + " says " + string(r.Ending) + " and was not committed")
		}
	case AlreadyDone:
		if (op.Action == Add || op.Action == Adopt) && !slices.Contains(w.committed, r.Holder.Claim.Operation) {
			w.fault("I4: " + op.ID + " is not already done")
		}
	case Aborted:
		if applied && !w.unseen() {
			w.fault("I4: " + op.ID + " says aborted and was committed")
		}
		w.denied = append(w.denied, op.ID)
		slices.Sort(w.denied)
		w.denied = slices.Compact(w.denied)
	case Ended:
		if last {
			w.judgeEnded(p)
		}
	case InDoubt:
		if !r.Keep {
			w.fault("I8: " + op.ID + " is in doubt and forgotten")
		}
	default:
		w.fault(op.ID + " is over without an ending")
	}
	switch {
	case r.Keep || op.Action != Add:
	case op.Central:
		w.judgeRecord(p)
	case w.cfg.duplicates == w.duplicates:
		w.judgeLeftovers(p, r.Ending)
	}
}

func (w *world) judgeRemoval(p *proc) {
	r := p.m.Result
	at := w.store.index(r.Primary.Peer)
	if at < 0 {
		w.fault("a removal does not say of what")
		return
	}
	o := w.store.cells[at].obj
	switch {
	case o == nil || o.UID != r.Primary.UID:
	case w.forced(at):
		// An object in a peer that was removed by force is not in effect.
	case w.undoes(at):
	case r.Ending == Done:
		w.fault("I4: " + p.op.ID + " says done and its object is there")
	case w.restoring.over && peerName(at) == w.cfg.restored:
		// The restore has undone the removal. Its log entry is still open, so recovery runs it again.
	case !o.Leaving():
		w.fault("I4: " + p.op.ID + " says committed and its object is not leaving")
	}
	if r.Ending != Done || w.undoes(at) {
		return
	}
	for i, c := range w.store.cells {
		if w.forced(i) || w.doubtful(i) {
			continue // I7 is about members
		}
		if set := w.store.cells[at].set; set != nil && set.Gone(peerName(i)) {
			continue // a leaving peer is emptied before it is Out
		}
		if c.set != nil && c.set.Gone(peerName(i)) {
			continue // a rejoin settles the peer's objects before the peer is a member
		}
		if x := c.obj; x != nil && x.Claimed && x.Stage == Active && x.Of(w.cfg.mode) == r.Primary {
			w.fault("I7: a replica is active in " + peerName(i) + " after its removal")
		}
	}
}

// brings reports whether a process other than judged is creating the secondary (the guard or replica)
// of op's object in peer, or has crashed and may have been doing so. That process runs another
// operation, or has taken over op's log entry. The secondary is no leftover of op: if the primary is
// gone, that process deletes the secondary.
func (w *world) brings(judged *proc, op, peer string) bool {
	return slices.ContainsFunc(w.procs, func(p *proc) bool {
		if p.m == nil {
			return p.state == crashed && p.record.Origin == op
		}
		return p != judged && p.m.Primary.Claim.Operation == op && slices.ContainsFunc(p.m.Strands, func(s Strand) bool {
			return (s.Task == taskBring || s.Task == taskGuard) && s.Peer == peer && !s.Over
		})
	})
}

// judgeLeftovers finds the reservations, and the creates in flight, that an add has left although the
// log has no entry by which recovery would find them.
func (w *world) judgeLeftovers(p *proc, e Ending) {
	op := p.op.ID
	if e == Done || e == Committed || w.restoring.over {
		return
	}
	for i, c := range w.store.cells {
		if slices.ContainsFunc(w.cfg.changes, func(op ChangeOperation) bool { return op.Peer == peerName(i) }) {
			continue // the change of this peer's membership may have created it
		}
		if w.brings(p, op, peerName(i)) {
			continue
		}
		if o := c.obj; o != nil && o.Pending() && o.Claim.Operation == op {
			w.fault("I8: " + op + " left a reservation in " + peerName(i))
		}
	}
	for _, m := range w.net {
		if m.cmd.Verb == Create && m.cmd.Object.Claim.Operation == op && m.orphan && m.proc < len(w.cfg.plans) {
			w.fault("I8: " + op + " left a create on its way to " + m.cmd.Peer)
		}
	}
}

// check returns the first invariant that the state violates, or "".
func (w *world) check() string {
	w.history.watch(w.store)
	if w.broken != "" {
		return w.broken
	}
	if w.orphaned() {
		return "the owner of a namespace is gone while the namespace has objects"
	}
	if s := w.checkLodger(); s != "" {
		return s
	}
	if s := w.strangers(); s != "" {
		return s
	}
	if s := w.valve(); s != "" {
		return s
	}
	if s := w.left(); s != "" {
		return s
	}
	if s := w.silent(); s != "" {
		return s
	}
	if s := w.undone(); s != "" {
		return s
	}
	mode := w.cfg.mode
	owner := -1
	for i, c := range w.store.cells {
		if c.obj == nil || !c.obj.Primary(mode) || c.obj.Stage == Reserved || !w.counts(i) {
			continue
		}
		if owner >= 0 {
			return fmt.Sprintf("I1: %s and %s are both owners", peerName(owner), peerName(i))
		}
		owner = i
	}
	if owner >= 0 && w.store.cells[owner].obj.InEffect() {
		y := w.store.cells[owner].obj
		for i, c := range w.store.cells {
			switch {
			case i == owner, w.outsider(i), w.doubtful(i), w.behind(c.obj, y), w.replacing(c.obj, y):
			case c.obj != nil && c.obj.Sibling(*y) && w.decided(c.obj):
			case w.disputes(c.obj):
			case c.obj == nil, !c.obj.Claimed, c.obj.Primary(mode), c.obj.Of(mode) != Ref{peerName(owner), y.UID}:
				if w.deletes == w.cfg.deletes || mode == Once || y.Requested() && w.cfg.deletes == 1 {
					return "I2: no guard in " + peerName(i)
				}
			}
		}
	}
	if mode == Everywhere {
		return w.checkReplicas()
	}
	if len(w.cfg.changes) > 0 && !w.changing() && w.halfway() == nil {
		return w.unlike()
	}
	return ""
}

func (w *world) checkReplicas() string {
	for i, c := range w.store.cells {
		x := c.obj
		if x == nil || !x.Claimed || x.Primary(Everywhere) || x.yielded(Everywhere) || x.Stage == Reserved || !w.counts(i) {
			continue
		}
		of := x.Of(Everywhere)
		if w.doubtful(w.store.index(of.Peer)) {
			continue
		}
		if set := w.store.cells[w.store.index(of.Peer)].set; set != nil && set.Gone(peerName(i)) && c.set.Self.State == peerLeaving {
			continue // a leaving peer is emptied before it is Out
		}
		if w.forced(w.store.index(of.Peer)) {
			// A Terminating replica is no violation: it disappears with the foreign finalizer that
			// holds it.
			if !x.Terminating && c.set.Change.ID == "" && c.set.forced(of.Peer) && !w.addsAt(of.Peer) && !w.contended(of.Peer) {
				return "I7: the replica in " + peerName(i) + " names a home that was given up"
			}
			continue
		}
		y := w.store.cells[w.store.index(of.Peer)].obj
		if w.restoring.over && x.Terminating && (y == nil || y.UID != of.UID) {
			continue // a restore lost the home, and a person deleted this replica, which proves the commit
		}
		switch {
		case y == nil || y.UID != of.UID || y.Stage == Reserved:
			return "I7: the active replica in " + peerName(i) + " has no primary"
		case y.Claimed && y.term() < x.term() && !y.Primary(Everywhere):
			// y is elected as the next home, and becomes home with the latest revision that exists.
		case w.restoring.over:
			// Until the replica is reconciled, it may have the number of a lost revision.
		case x.Revision.Number > y.Revision.Number:
			return "I7: the replica in " + peerName(i) + " runs ahead"
		case x.Revision.Digest != x.Digest:
			return "I7: the replica in " + peerName(i) + " shows another content than its revision's"
		case x.Revision.Number == y.Revision.Number && x.Revision != y.Revision:
			return "I7: the replica in " + peerName(i) + " disagrees with its primary"
		}
		for _, h := range y.History {
			if w.restoring.over {
				break
			}
			if h.Number == x.Revision.Number && (h.Operation != x.Revision.Operation || !w.wrote(h.Operation, x.Payload)) {
				return "I7: the replica in " + peerName(i) + " disagrees within its revision"
			}
		}
	}
	return ""
}

// wrote reports whether payload can be the content of the operation op, in any attempt. For an edit
// and an adoption any content is possible, since a person wrote it.
func (w *world) wrote(op, payload string) bool {
	if op == "o" {
		return payload == w.cfg.committed
	}
	if op == EditOperation || strings.HasPrefix(op, adoptionOf("")) {
		return true
	}
	for _, p := range w.cfg.plans {
		if op[:1] == p.op.ID[:1] {
			return payload == p.op.Payload
		}
	}
	return false
}
