// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "cmp"

// enabled returns the actions that may happen next.
func (w *world) enabled() []action {
	var out []action
	add := func(k kind, a, b int) { out = append(out, action{k, uint8(a), uint8(b)}) }
	w.adoptable(add)
	w.losses(add)
	w.restores(add)
	w.strays(add)
	for i, p := range w.procs {
		switch {
		case p.adopter:
		case p.change != nil:
			switch {
			case p.spawned:
			case p.change.m != nil:
				if w.crashes > 0 && !p.change.helper {
					add(actCrash, i, 0)
				}
			case p.change.helper:
				for j, c := range w.store.cells {
					if c.set != nil && c.set.Change.ID != "" && !w.isDown(j) {
						add(actHelp, i, j)
					}
				}
			case p.state == idle && w.turn(i):
				add(actBegin, i, 0)
			case p.state == crashed:
				add(actRecover, i, 0)
			}
		case p.spawned:
		case p.m != nil:
			if !p.sweep && w.crashes > 0 {
				add(actCrash, i, 0)
			}
			if !p.sweep && w.expiries > 0 && !p.m.Expired {
				add(actExpire, i, 0)
			}
		case p.sweep && w.cfg.mutant.stale && p.seen == nil:
			add(actLook, i, 0)
		case p.sweep:
			for j, c := range w.store.cells {
				if c.obj != nil && c.obj.Claimed && !w.isDown(j) {
					add(actSweep, i, j)
				}
			}
		case p.taker && p.state == idle:
			w.takeable(i, add)
		case p.state == idle:
			if w.begins(w.cfg.plans[i]) {
				add(actBegin, i, 0)
			}
		case p.state == crashed:
			add(actRecover, i, 0)
		case p.state == waiting:
			if !w.rivalPending(p) {
				add(actRetry, i, 0)
			}
		}
	}
	if w.cfg.tenant > 0 && (w.tenant != outside || w.moves > 0) {
		add(actMove, 0, 0)
	}
	for k, m := range w.net {
		if m.cmd.Verb == Sleep && w.beats == 0 && !w.split {
			continue
		}
		if m.orphan && !m.applied && w.isDown(w.store.index(m.cmd.Peer)) {
			continue // the message may arrive when its peer is reachable again
		}
		if w.cfg.replies && m.awaited() {
			add(actApply, k, 0)
		} else {
			add(actDeliver, k, 0)
		}
		if w.split && !m.applied && !m.orphan && m.cmd.Verb != Sleep {
			add(actApply, k, 0)
		}
		if m.orphan || m.cmd.Verb == Sleep || (m.cmd.remote() || m.cmd.Verb == ReadPeerSet) && w.procs[m.proc].sweep && !w.split {
			continue
		}
		if w.timeouts > 0 && m.cmd.Verb != Forget && m.cmd.Verb != Begin {
			add(actTimeout, k, 0)
		}
		if w.unsent > 0 && !m.applied {
			add(actUnsent, k, 0)
		}
		if w.denials > 0 && !m.applied && m.cmd.remote() {
			add(actDeny, k, 0)
		}
		if w.duplicates > 0 && m.cmd.Verb == cmp.Or(w.cfg.twice, Create) && !m.applied {
			add(actDouble, k, 0)
		}
	}
	for j, c := range w.store.cells {
		if c.obj == nil || w.isDown(j) {
			continue
		}
		if w.bumps > 0 && c.obj.Claimed {
			add(actBump, j, 0)
		}
		if w.deletes > 0 && !c.obj.Terminating && (!c.obj.Claimed || c.obj.Primary(w.cfg.mode) && c.obj.Committed() || w.cfg.mode == Everywhere && c.obj.Committed()) {
			add(actDelete, j, 0)
		}
		if w.foreign > 0 && !c.obj.Foreign && !c.obj.Terminating {
			add(actHold, j, 0)
		}
		if c.obj.Foreign {
			add(actUnhold, j, 0)
		}
	}
	w.personal(add)
	return append(out, w.lodged()...)
}

// begins reports whether an operation of plan p may begin.
func (w *world) begins(p plan) bool {
	if i := w.store.index(p.member); i >= 0 && (w.store.cells[i].set == nil || !w.store.cells[i].set.current()) {
		return false
	}
	return p.after == 0 || w.procs[p.after-1].state == done || w.procs[p.after-1].state == crashed
}
