// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// clear removes guards or replicas from all members as they are after the
// commit. A confirmation from before it does not count.
func (m *Machine) clear() {
	m.Stopping = false
	m.HaveSet = false
	m.enter(clearing)
	m.spawn(jobLook, m.Record.Primary.Peer)
	if m.Op.Holds {
		m.spawn(jobList, m.Record.Primary.Peer)
	}
}

// confirm takes away what still names a primary that is gone: guards in peers
// that could not be reached while it was being removed.
func (m *Machine) confirm() {
	m.Result.Reason, m.Result.Peer = "", ""
	m.Primary = Object{}
	m.Record.Committed = true
	m.Stopping = false
	m.enter(clearing)
	m.spread(jobClear)
}

// stepClear deletes the secondary of the removed object in the strand's peer,
// awaits its absence, and then lists the namespace there.
func (m *Machine) stepClear(i int, r Reply) {
	s := &m.Strands[i]
	switch s.Step {
	case "", "reread":
		m.send(i, "read", Command{Verb: Read, Peer: s.Peer})
	case "delete":
		m.deleted(i, r)
	case "read":
		o := r.Object
		mine := r.Code == OK && o.Claimed && !o.Primary(m.Op.Mode) &&
			(o.Of(m.Op.Mode) == m.Record.Primary || o.Sibling(m.Primary) || m.Op.Mode == Everywhere && o.Claim.Operation == m.Primary.Claim.Operation)
		switch {
		case r.Code == OK && m.Op.Action == Remove && m.superseded(o):
			// The home was replaced while its peer was given up: the other one is meant.
			m.astray(o, s.Peer)
			m.finish(i)
		case r.Code == OK && !mine && m.Record.Origin != "" && o.Claim.Operation != m.Record.Origin:
			// It is of another object that has the name by now.
			m.cleared(i)
		case r.Code == OK && !mine && m.Op.Mode == Everywhere && o.Claimed && o.Stage == Active && !o.Primary(Everywhere):
			s.X = o
			m.send(i, "judge", Command{Verb: Read, Peer: o.Of(m.Op.Mode).Peer})
		case r.Code == NotFound, r.Code == OK && !mine:
			m.cleared(i)
		case r.Code == Denied, r.Code == NoSuchPeer:
			m.unconfirmed(i)
		case r.Code == OK && m.Primary.UID != "" && m.outranked(o):
			// A later home has it: this one was given up for lost.
			m.unconfirmed(i)
		case r.Code == OK && o.former(m.Op.Mode):
			// It was home: what names it goes first.
			s.X = o
			m.finish(i)
		case r.Code != OK, o.Terminating:
			if !m.again(i, "reread") {
				m.unconfirmed(i)
			}
		default:
			// A peer that was restored meanwhile may have the object in force again.
			s.X = o
			m.send(i, "primary", Command{Verb: Read, Peer: m.Record.Primary.Peer})
		}
	case "primary":
		gone := m.Primary.UID == "" // when it was read: if it is there it was put back, and the removal is open
		switch {
		case r.Code == NotFound, r.Code == NoSuchPeer && gone, r.Code == OK && (r.Object.UID != m.Record.Primary.UID || r.Object.Leaving() && !gone):
			m.send(i, "delete", Command{Verb: Delete, Peer: s.Peer, UID: s.X.UID, RV: s.X.RV})
		case r.Code == OK || r.Code == Denied || !m.again(i, "reread"):
			m.unconfirmed(i)
		}
	case "judge":
		// It names an earlier home of what is being removed.
		switch m.verdict(s.X, r) {
		case dead:
			m.send(i, "delete", Command{Verb: Delete, Peer: s.Peer, UID: s.X.UID, RV: s.X.RV})
		case lost:
			switch {
			case m.Record.Origin != "":
				m.send(i, "delete", Command{Verb: Delete, Peer: s.Peer, UID: s.X.UID, RV: s.X.RV})
			case m.Primary.Claimed:
				// It is of another object that had the name later, and is lost.
				m.cleared(i)
			default:
				m.unconfirmed(i)
			}
		case owned, leaving, pending:
			m.cleared(i)
		default:
			if !m.again(i, "reread") {
				m.unconfirmed(i)
			}
		}
	}
}

func (m *Machine) cleared(i int) {
	peer := m.Strands[i].Peer
	m.finish(i)
	if m.Op.Holds && m.Primary.UID != "" {
		m.spawn(jobList, peer)
	}
}

func (m *Machine) afterClearing() {
	begun := slices.ContainsFunc(m.Strands, func(s Strand) bool { return s.Job == jobClear && s.Seq > 0 })
	switch {
	case m.Astray:
		m.Record.Committed, m.Unsure = false, true
		m.regain()
	case begun && m.retire(jobClear):
	case m.Primary.UID == "" && len(m.Result.Pending) > 0:
		m.await()
	case m.Primary.UID == "":
		m.end(Done)
	case !begun && m.HaveSet && m.accompanied():
		m.spread(jobClear)
	case !begun && !m.HaveSet && len(m.Op.Peers) > 1:
		// Who the members are is not known, so nothing is confirmed.
		m.pend(m.Record.Primary.Peer)
		m.await()
	case len(m.Result.Occupants) > 0:
		m.because(Occupied, m.Result.Occupants[0].Peer)
		m.await()
	case m.Op.Mode == Everywhere && len(m.Result.Pending) > 0:
		// A replica that is not confirmed gone keeps its tombstone.
		m.await()
	case m.Op.Mode == Everywhere:
		m.release()
	case m.untold():
		m.await()
	default:
		// The log's entry stays until the guards are gone that could not be reached.
		m.drop()
	}
}

// untold says whether a guard is left that only the primary tells of: a sweep has
// no log, that of a removal which found its object going says nothing yet, and none
// names peers that are not configured.
func (m *Machine) untold() bool {
	return slices.ContainsFunc(m.Result.Pending, func(p string) bool {
		return m.Op.Action != Remove || !m.Record.Committing || !slices.Contains(m.Op.Peers, p)
	})
}

// accompanied says whether the membership has others than the primary's peer,
// which need not list itself: one that comes back is told of the members first.
func (m *Machine) accompanied() bool {
	return slices.ContainsFunc(m.Set.reached(), func(p string) bool { return p != m.Record.Primary.Peer })
}
