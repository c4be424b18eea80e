// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// judgeRecord says what claim x is, from the reply to a read of its record that
// was begun after x had been read. Whether one that was decided elsewhere than
// for the target lives is for the object there to say: moved.
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

// observe counts for how long the record of strand i has shown no sign of life.
func (s *Strand) observe(d Decision) {
	if seen := d.UID + "@" + d.RV; seen != s.Seen {
		s.Seen, s.Quiet = seen, 0
	} else {
		s.Quiet++
	}
}

// readRecord asks for the record of the undecided claim o.
func (m *Machine) readRecord(i int, next step, o Object) {
	m.send(i, next, Command{Verb: ReadRecord, Record: o.Claim.Operation})
}

// acquireRecord decides about the undecided claim y in peer that stands in the
// way of strand i, by its record.
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

// acquireDecided decides about a claim by y, the object that it was decided for.
func (m *Machine) acquireDecided(i int, r Reply) {
	s := &m.Strands[i]
	v := judge(m.Op.Mode, s.X, r)
	if v == pending {
		m.help(i, s.X.Bound.Peer, r.Object)
		return
	}
	m.judged(i, v, r.Object)
}

// sweepRecord does what anybody does who meets the undecided claim y in peer.
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
			// Its content is in the log; its own sweep brings it into force.
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

// sweepDecided binds a claim to y, the object that its record was decided for,
// or removes it if that is gone.
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

// rivalRecord takes the undecided claim X of strand i out of the way if its
// record is gone.
func (m *Machine) rivalRecord(i int, r Reply) {
	s := &m.Strands[i]
	if judgeRecord(s.X, r) == dead {
		m.send(i, "remove", Command{Verb: Delete, Peer: s.Peer, UID: s.X.UID, RV: s.X.RV})
		return
	}
	m.unconfirmed(i)
}

// help brings y in peer into force, for which its record is decided, and looks
// again. Where the content is in the log alone it waits for who reads that.
func (m *Machine) help(i int, peer string, y Object) {
	if m.Op.Inert || y.Terminating {
		m.linger(i)
		return
	}
	m.send(i, "fence", Command{Verb: Put, Peer: peer, Object: m.converted(y), UID: y.UID, RV: y.RV})
}
