// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"
	"strings"
)

// shrink looks for a smaller schedule that fails in the same way: with fewer operations, peers,
// sweepers and events. It returns the smallest schedule that it found, and its violation.
func (s *schedule) shrink(what string) (schedule, string) {
	best, as := *s, what
	try := func(smaller schedule) bool {
		got, events := smaller.attempt()
		if family(got) != family(what) {
			return false
		}
		best, as = schedule{smaller.cfg, events}, got
		return true
	}
	for again := true; again; {
		size := best.size()
		for i := len(best.cfg.plans) - 1; i >= 0; i-- {
			if smaller := best.withoutPlan(i); !try(smaller) {
				// Perhaps the plan is needed only because an object is committed at the
				// start.
				smaller.cfg.committed = ""
				try(smaller)
			}
		}
		try(best.withoutPeer())
		for _, smaller := range best.plainer() {
			try(smaller)
		}
		for size := len(best.events); size > 0; size /= 2 {
			for from := 0; from < len(best.events); {
				to := min(from+size, len(best.events))
				if !try(schedule{best.cfg, slices.Concat(best.events[:from], best.events[to:])}) {
					from = to
				}
			}
		}
		try(best.withoutFaults())
		again = best.size() < size
	}
	return best, as
}

// family returns the part of a violation by which two violations count as the same.
func family(what string) string {
	kind, _, _ := strings.Cut(what, ":")
	return kind
}

func (s *schedule) size() int {
	return len(s.events) + len(s.cfg.plans) + len(s.cfg.changes) + s.cfg.peers + s.cfg.sweepers + len(s.cfg.committed)
}

// attempt replays a schedule that may no longer make sense. A panic counts as no violation.
func (s *schedule) attempt() (what string, events []event) {
	defer func() {
		if recover() != nil {
			what = ""
		}
	}()
	return s.replay(nil)
}

func (s *schedule) withoutPlan(i int) schedule {
	smaller := schedule{cfg: s.cfg}
	gone := s.cfg.plans[i].after
	smaller.cfg.plans = slices.Delete(slices.Clone(s.cfg.plans), i, i+1)
	for j := range smaller.cfg.plans {
		switch after := &smaller.cfg.plans[j].after; {
		case *after == i+1:
			*after = gone
		case *after > i+1:
			*after--
		}
	}
	for _, e := range s.events {
		if e.ofProcess() {
			if e.a == i {
				continue
			}
			if e.a > i {
				e.a--
			}
		}
		smaller.events = append(smaller.events, e)
	}
	return smaller
}

// ofProcess reports whether e.a is the number of a process.
func (e event) ofProcess() bool {
	switch e.kind {
	case actRead, actBump, actDelete, actHold, actUnhold, actMove, actCreate, actEdit, actWithdraw, actLose, actRestart, actBackup, actRestore, actNotice, actRelease:
		return false
	}
	return true
}

// withoutPeer returns the schedule without the last peer. It returns the schedule unchanged if a
// change is about that peer, or if a restore needs the peer.
func (s *schedule) withoutPeer() schedule {
	smaller := schedule{cfg: s.cfg, events: s.events}
	last := peerName(smaller.cfg.peers - 1)
	if last == s.cfg.restored || s.cfg.restored != "" && s.cfg.peers == 2 || slices.ContainsFunc(s.cfg.changes, func(op ChangeOperation) bool { return op.Peer == last }) {
		return smaller
	}
	smaller.cfg.peers--
	smaller.cfg.strangers = strings.ReplaceAll(s.cfg.strangers, last, "")
	smaller.cfg.plans = slices.Clone(s.cfg.plans)
	for i := range smaller.cfg.plans {
		p := &smaller.cfg.plans[i]
		if p.op.Target == last {
			p.op.Target = "a"
		}
		p.peers = min(p.peers, smaller.cfg.peers)
	}
	return smaller
}

// plainer returns schedules that each lack one feature which is not always needed.
func (s *schedule) plainer() []schedule {
	free, idle, stable := *s, *s, *s
	free.cfg.committed = ""
	idle.cfg.lease = 0
	stable.cfg.changes, stable.cfg.ring, stable.cfg.loss = nil, 0, loss{}
	plainer := []schedule{free, idle}
	if s.cfg.restored == "" {
		plainer = append(plainer, stable)
	} else if len(s.cfg.changes) > 1 {
		once := *s
		once.cfg.changes = s.cfg.changes[:1]
		plainer = append(plainer, once)
	}
	if s.cfg.ring > 0 && s.cfg.ring < s.cfg.peers {
		// Also leave out the peers that the changes are about.
		members := stable
		for members.cfg.peers > s.cfg.ring {
			members = members.withoutPeer()
		}
		plainer = append(plainer, members)
	}
	if s.cfg.inert {
		filled := *s
		filled.cfg.inert = false
		plainer = append(plainer, filled)
	}
	return plainer
}

// withoutFaults returns the schedule without faults that no event needs.
func (s *schedule) withoutFaults() schedule {
	smaller := *s
	smaller.cfg.sweepers = 0
	smaller.cfg.timeouts, smaller.cfg.unsent, smaller.cfg.denials, smaller.cfg.crashes = 0, 0, 0, 0
	smaller.cfg.duplicates, smaller.cfg.expiries, smaller.cfg.bumps, smaller.cfg.deletes = 0, 0, 0, 0
	smaller.cfg.foreign, smaller.cfg.moves = 0, 0
	smaller.cfg.persons = persons{}
	for _, e := range s.events {
		switch e.kind {
		case actSweep, actLook:
			smaller.cfg.sweepers = s.cfg.sweepers
		case actTimeout:
			smaller.cfg.timeouts++
		case actUnsent:
			smaller.cfg.unsent++
		case actDeny:
			smaller.cfg.denials++
		case actCrash:
			smaller.cfg.crashes++
		case actDouble:
			smaller.cfg.duplicates++
		case actExpire:
			smaller.cfg.expiries++
		case actBump:
			smaller.cfg.bumps++
		case actDelete:
			smaller.cfg.deletes++
		case actHold:
			smaller.cfg.foreign++
		case actCreate:
			smaller.cfg.creates++
		case actEdit:
			smaller.cfg.edits++
		case actWithdraw:
			smaller.cfg.withdrawals++
		case actMove:
			smaller.cfg.moves++
		}
	}
	return smaller
}
