// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"cmp"
	"fmt"
)

// rest reports whether no process can continue. Messages may be left whose senders no longer wait.
func (w *world) rest() bool {
	if w.lodger != nil && !w.lodger.rest() {
		return false
	}
	for i, p := range w.procs {
		switch {
		case p.m != nil:
			return false
		case p.change != nil && p.change.m != nil:
			return false
		case p.change != nil && !p.change.helper:
			if (p.state == idle && w.due(p)) || p.state == crashed && !p.change.result.Keep {
				return false
			}
		case i >= len(w.cfg.plans):
		case p.state == idle, p.state == waiting, p.state == crashed && (!p.result.Keep || p.result.Ending == InDoubt && !w.losing.gone && !w.quarantines() && !w.doubtful(w.store.index(p.result.Peer)) && !w.contradicted(p)):
			return false
		}
	}
	return true
}

// settle recovers the open operations, sweeps until nothing changes, and then checks the conditions
// of a settled state.
func (w *world) settle() string {
	w = w.clone()
	w.net = nil
	w.tenant = outside
	if s := w.evict((*world).settle); s != "" {
		return s
	}
	for i := range w.procs {
		w.own(i)
	}
	w.alone, w.settling = true, true
	w.astray.now, w.astray.over = false, true
	for i := range w.store.cells {
		w.unhold(i)
		w.release(i)
	}
	if s := w.giveUp(); s != "" {
		return s
	}
	if s := w.recoverAll(); s != "" {
		return s
	}
	if w.ringless() {
		// Only the lost peer was a member. The other peers were about to join or had left. They can only
		// join another ring, so a change that is unfinished in one of their PeerSets is no fault.
		return ""
	}
	if s := w.settleChanges(); s != "" {
		return s
	}
	if s := w.askAgain(); s != "" {
		return s
	}
	if s := w.settleRecords(); s != "" {
		return s
	}
	if s := w.comeAgain(); s != "" {
		return s
	}
	if s := w.unlike(); s != "" {
		return s
	}
	w.procs = append(w.procs, &proc{sweep: true})
	last := len(w.procs) - 1
	for round := 0; ; round++ {
		before := w.store.rvs
		if s := w.sweepAll(last); s != "" {
			return s
		}
		if w.store.rvs == before && w.quiet() {
			break
		}
		if round == 10 {
			w.releaseSkipped()
		}
		if round > 20 {
			return cmp.Or(w.settled(), "sweeps find no end")
		}
	}
	return w.settled()
}

// recoverAll recovers every operation whose process has ended.
func (w *world) recoverAll() string {
	for i, p := range w.procs {
		if p.state == crashed && p.change == nil {
			w.recover(i)
			if s := w.drain(); s != "" {
				return "recovering " + p.op.ID + ": " + s
			}
		}
	}
	return ""
}

// sweepAll sweeps every member, in the process whose index in w.procs is the parameter at.
func (w *world) sweepAll(at int) string { return w.sweepWhere(at, w.member) }

// sweepNewcomers sweeps reservations in the peers that are no members yet. Claims of central records are left out: a join
// settles those itself.
func (w *world) sweepNewcomers(at int) string {
	return w.sweepWhere(at, func(i int) bool {
		o := w.store.cells[i].obj
		return !w.member(i) && !w.forced(i) && o.Stage == Reserved && !o.Undecided()
	})
}

// sweepWhere sweeps every peer with an object for which the condition holds, in the process with the given index.
func (w *world) sweepWhere(at int, holds func(int) bool) string {
	for i := range w.store.cells {
		if w.store.cells[i].obj == nil || !holds(i) {
			continue
		}
		w.sweepAt(at, i, min(1, w.cfg.lease))
		if s := w.drain(); s != "" {
			return "sweeping " + peerName(i) + ": " + s
		}
	}
	return ""
}

// quiet reports whether a further sweep would find nothing to remove. The counter of resource
// versions does not show that, because deletes do not raise it.
func (w *world) quiet() bool { return w.settled() == "" }

// drain delivers all messages in the order in which they were sent.
func (w *world) drain() string {
	for n := 0; len(w.net) > 0; n++ {
		if n > 400 {
			return "it finds no end"
		}
		if w.tell != nil {
			w.tell(w.describe(action{kind: actDeliver}), w.store)
		}
		w.deliver(0)
		if s := w.check(); s != "" {
			return s
		}
	}
	return ""
}

func (w *world) settled() string {
	mode := w.cfg.mode
	var owner *Object
	at := ""
	for i, c := range w.store.cells {
		if c.obj != nil && c.obj.Primary(mode) && w.counts(i) {
			owner, at = c.obj, peerName(i)
			if mode == Everywhere && owner.Edited() {
				return "K19: the edit in " + at + " is not committed"
			}
			if !owner.Committed() {
				return fmt.Sprintf("I6: %s %s in %s outlives its operation", owner.Stage, owner.Claim.Operation, at)
			}
		}
	}
	for i, c := range w.store.cells {
		x := c.obj
		switch {
		case !w.counts(i):
		case x != nil && x.Claimed && !x.Primary(mode) && w.suspendedAt(x):
		case x == nil && owner == nil, x != nil && !x.Claimed, x != nil && x.Primary(mode):
		case x == nil:
			return "I2: nothing in " + peerName(i) + " after the sweep"
		case owner == nil && w.waitsFor(x):
		case owner == nil || x.Of(mode) != Ref{at, owner.UID}:
			return fmt.Sprintf("I6: %s %s in %s outlives its operation", x.Stage, x.Claim.Operation, peerName(i))
		case mode == Everywhere && (x.Stage != Active || x.Revision != owner.Revision || x.Payload != owner.Payload):
			return "I7: the replica in " + peerName(i) + " stays behind"
		}
	}
	if s := w.forked(); s != "" {
		return s
	}
	if s := w.settledHome(owner); s != "" {
		return s
	}
	if s := w.overfull(); s != "" {
		return s
	}
	return w.outcomes()
}

// outcomes returns a violation if operations failed that must succeed by the configuration, or if
// not exactly one of the adds was committed although the configuration requires it.
func (w *world) outcomes() string {
	adds := 0
	for i, p := range w.cfg.plans {
		r := w.procs[i].result
		if p.op.Action == Add && r.Ending == Done {
			adds++
		}
		if w.cfg.allSucceed && r.Ending != Done && r.Ending != AlreadyDone {
			return fmt.Sprintf("L1: %s is %s (%s)", p.op.ID, r.Ending, r.Reason)
		}
	}
	for _, p := range w.procs {
		if ch := p.change; w.cfg.allSucceed && ch != nil && !ch.helper && ch.result.Ending != Done {
			return fmt.Sprintf("L1: %s is %s (%s)", ch.op.ID, ch.result.Ending, ch.result.Reason)
		}
	}
	if w.cfg.exactlyOne && adds != 1 {
		return fmt.Sprintf("L1: %d of the rivals were committed", adds)
	}
	return ""
}
