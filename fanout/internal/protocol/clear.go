// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// clear deletes the guards or replicas in all members, read after the commit. An earlier
// confirmation does not count.
func (m *Machine) clear() {
	m.Stopping = false
	m.HaveSet = false
	m.enter(clearing)
	m.spawn(jobLook, m.Record.Primary.Peer)
	if m.Op.Holds {
		m.spawn(jobList, m.Record.Primary.Peer)
	}
}

// confirm deletes the secondaries that still name a primary which is gone: guards in peers that
// were unreachable during its removal.
func (m *Machine) confirm() {
	m.Result.Reason, m.Result.Peer = "", ""
	m.Primary = Object{}
	m.Record.Committed = true
	m.Stopping = false
	m.enter(clearing)
	m.spread(jobClear)
}

// stepClear deletes the secondary of the removed object in the strand's peer, waits until it is
// gone, and then lists the namespace there.
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
			// The home was replaced after its peer was removed by force: remove its
			// replacement.
			m.astray(o, s.Peer)
			m.finish(i)
		case r.Code == OK && !mine && m.Record.Origin != "" && o.Claim.Operation != m.Record.Origin:
			// It belongs to a later object with the same name.
			m.cleared(i)
		case r.Code == OK && !mine && m.Op.Mode == Everywhere && o.Claimed && o.Stage == Active && !o.Primary(Everywhere):
			s.X = o
			m.send(i, "judge", Command{Verb: Read, Peer: o.Of(m.Op.Mode).Peer})
		case r.Code == NotFound, r.Code == OK && !mine:
			m.cleared(i)
		case r.Code == Denied, r.Code == NoSuchPeer:
			m.unconfirmed(i)
		case r.Code == OK && m.Primary.UID != "" && m.outranked(o):
			// A later home replaced this one, which was taken for lost.
			m.unconfirmed(i)
		case r.Code == OK && o.former(m.Op.Mode):
			// It was home: the replicas that name it are deleted first.
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
		gone := m.Primary.UID == "" // if it exists now, it was restored and the removal is open
		switch {
		case r.Code == NotFound, r.Code == NoSuchPeer && gone, r.Code == OK && (r.Object.UID != m.Record.Primary.UID || r.Object.Leaving() && !gone):
			m.send(i, "delete", Command{Verb: Delete, Peer: s.Peer, UID: s.X.UID, RV: s.X.RV})
		case r.Code == OK || r.Code == Denied || !m.again(i, "reread"):
			m.unconfirmed(i)
		}
	case "judge":
		// It names an earlier home of the object that is being removed.
		switch m.verdict(s.X, r) {
		case dead:
			m.send(i, "delete", Command{Verb: Delete, Peer: s.Peer, UID: s.X.UID, RV: s.X.RV})
		case lost:
			switch {
			case m.Record.Origin != "":
				m.send(i, "delete", Command{Verb: Delete, Peer: s.Peer, UID: s.X.UID, RV: s.X.RV})
			case m.Primary.Claimed:
				// It belongs to a later object with the same name, which is lost.
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
		// The members are unknown, so nothing is confirmed.
		m.pend(m.Record.Primary.Peer)
		m.await()
	case len(m.Result.Occupants) > 0:
		m.because(Occupied, m.Result.Occupants[0].Peer)
		m.await()
	case m.Op.Mode == Everywhere && len(m.Result.Pending) > 0:
		// The tombstone stays until every replica is confirmed to be gone.
		m.await()
	case m.Op.Mode == Everywhere:
		m.release()
	case m.untold():
		m.await()
	default:
		// The log's entry stays until the guards in unreachable peers are gone.
		m.drop()
	}
}

// untold reports whether a guard is left that only the primary makes known. A sweep has no log
// entry, the entry of a removal that found its object already leaving says nothing yet, and no
// entry names a peer that is not configured.
func (m *Machine) untold() bool {
	return slices.ContainsFunc(m.Result.Pending, func(p string) bool {
		return m.Op.Action != Remove || !m.Record.Committing || !slices.Contains(m.Op.Peers, p)
	})
}

// accompanied reports whether the membership has a peer other than the primary's. The primary's
// peer need not list itself: a rejoining peer first lists only the others.
func (m *Machine) accompanied() bool {
	return slices.ContainsFunc(m.Set.reached(), func(p string) bool { return p != m.Record.Primary.Peer })
}
