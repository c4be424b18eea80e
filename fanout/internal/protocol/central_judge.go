// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// judgeRecord returns the verdict on claim x from a read of its record that began after x was
// read. A secondary of a committed record is moved: the object in the record decides about it.
func judgeRecord(x Object, r Reply) verdict {
	switch {
	case r.Code == NotFound, r.Code == OK && r.Decision.UID != x.Claim.Record:
		return dead
	case r.Code != OK:
		return undecidable
	case !r.Decision.Committed:
		return pending
	case !x.Claim.Primary:
		return moved
	case x.UID == r.Decision.Of.UID:
		return owned
	default:
		return dead
	}
}

// observe counts in Quiet how often the record of strand i was read without a change.
func (s *Strand) observe(d Decision) {
	if seen := d.UID + "@" + d.RV; seen != s.Seen {
		s.Seen, s.Quiet = seen, 0
	} else {
		s.Quiet++
	}
}

// readRecord reads the record of the undecided claim o.
func (m *Machine) readRecord(i int, next step, o Object) {
	m.send(i, next, Command{Verb: ReadRecord, Record: o.Claim.Operation})
}

// acquireRecord decides by its record about the undecided claim y in peer, which obstructs
// strand i.
func (m *Machine) acquireRecord(i int, peer string, y Object, r Reply) {
	s := &m.Strands[i]
	switch judgeRecord(y, r) {
	case dead:
		m.send(i, "fence", Command{Verb: Delete, Peer: peer, UID: y.UID, RV: y.RV})
	case pending:
		s.Y = y
		s.observe(*r.Decision)
		mine := rival{m.Op.Start, m.Op.ID}
		switch {
		case s.Quiet >= m.Op.Lease && !m.Stopping && !m.Expired:
			m.send(i, "fence", Command{Verb: Withdraw, Record: y.Claim.Operation, UID: r.Decision.UID, RV: r.Decision.RV})
		case !mine.olderThan(rival{y.Claim.Start, y.Claim.Operation}):
			m.heldBy(i, GaveWay, peer, y)
		case m.Stopping || m.Expired:
			m.heldBy(i, HeldByOther, peer, y)
		default:
			m.pause(i, "reread")
		}
	case moved:
		s.X = y
		s.X.Bound = r.Decision.Of
		m.send(i, "decided", Command{Verb: Read, Peer: r.Decision.Of.Peer})
	case owned:
		m.help(i, peer, y)
	default:
		if !m.again(i, "reread") {
			m.fail(i, Unreachable)
			if m.Result.Reason == Unreachable && m.Result.Peer == s.Peer {
				m.Result.Peer = ""
			}
		}
	}
}

// acquireDecided decides about a claim by the primary that its record names.
func (m *Machine) acquireDecided(i int, r Reply) {
	s := &m.Strands[i]
	v := judge(m.Op.Mode, s.X, r)
	if v == pending {
		m.help(i, s.X.Bound.Peer, r.Object)
		return
	}
	m.judged(i, v, r.Object)
}

// sweepRecord settles the undecided claim y in peer by its record, as any process may.
func (m *Machine) sweepRecord(i int, peer string, y Object, r Reply) {
	s := &m.Strands[i]
	switch judgeRecord(y, r) {
	case dead:
		m.send(i, "fence", Command{Verb: Delete, Peer: peer, UID: y.UID, RV: y.RV})
	case pending:
		s.observe(*r.Decision)
		switch {
		case s.Quiet >= m.Op.Lease:
			m.send(i, "fence", Command{Verb: Withdraw, Record: y.Claim.Operation, UID: r.Decision.UID, RV: r.Decision.RV})
		case !m.Op.Watch || m.Expired:
			m.Result.Holder, m.Result.HolderAt = y, peer
			m.unconfirmed(i)
		default:
			m.pause(i, "reread")
		}
	case moved:
		s.X.Bound = r.Decision.Of
		m.send(i, "decided", Command{Verb: Read, Peer: r.Decision.Of.Peer})
	case owned:
		if m.Op.Inert || peer != s.Peer {
			// Only the log has its content, or y is in another peer: its own sweep brings it
			// into force.
			m.Result.Holder, m.Result.HolderAt = y, peer
			m.unconfirmed(i)
			return
		}
		m.Result.Mended = true
		m.send(i, "mend", Command{Verb: Put, Peer: peer, Object: m.converted(y), UID: y.UID, RV: y.RV})
	default:
		m.pend(peer)
		m.finish(i)
	}
}

// sweepDecided binds a claim to the primary that its record names, or deletes the claim if that
// primary is gone.
func (m *Machine) sweepDecided(i int, r Reply) {
	s := &m.Strands[i]
	of := s.X.Bound
	switch v := judge(m.Op.Mode, s.X, r); v {
	case pending, owned:
		m.Result.Mended = true
		m.Result.Holder, m.Result.HolderAt = r.Object, of.Peer
		x := s.X
		m.send(i, "mend", Command{Verb: Put, Peer: s.Peer, Object: x, UID: x.UID, RV: x.RV})
	default:
		m.sweepSecondary(i, v, r.Object)
	}
}

// rivalRecord deletes the undecided claim X of strand i if its record is gone.
func (m *Machine) rivalRecord(i int, r Reply) {
	s := &m.Strands[i]
	if judgeRecord(s.X, r) == dead {
		m.send(i, "remove", Command{Verb: Delete, Peer: s.Peer, UID: s.X.UID, RV: s.X.RV})
		return
	}
	m.obstructed(i, s.X, s.Peer)
}

// help brings y in peer into force, as its record decided, and reads again. If only the log has
// the content, it waits for a process that reads the log.
func (m *Machine) help(i int, peer string, y Object) {
	if m.Op.Inert || y.Terminating {
		m.linger(i)
		return
	}
	m.send(i, "fence", Command{Verb: Put, Peer: peer, Object: m.converted(y), UID: y.UID, RV: y.RV})
}
