// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// judgeRecord returns the verdict on claim x from a read of its record that began after x was read.
// The verdict on a secondary of a committed record is moved: the object that the record names
// decides about the secondary.
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

// decideByRecord acts on the undecided claim y in peer, which keeps this task from taking the name.
// r is the reply to a read of y's record.
func (s acquireTask) decideByRecord(peer string, y Object, r Reply) {
	m := s.m
	switch judgeRecord(y, r) {
	case dead:
		s.send(stepFence, deleteObject(peer, y))
	case pending:
		s.Y = y
		s.observe(r.Decision.UID, r.Decision.RV)
		mine := rival{m.Op.Start, m.Op.ID}
		switch {
		case s.Quiet >= m.Op.Lease && !m.Stopping && !m.Expired:
			s.send(stepFence, Command{Verb: Withdraw, Record: y.Claim.Operation, UID: r.Decision.UID, RV: r.Decision.RV})
		case !mine.olderThan(rival{y.Claim.Start, y.Claim.Operation}):
			s.heldBy(GaveWay, peer, y)
		case m.Stopping || m.Expired:
			s.heldBy(HeldByOther, peer, y)
		default:
			s.pause(stepReread)
		}
	case moved:
		s.X = y
		s.X.Bound = r.Decision.Of
		s.send(stepDecided, readObject(r.Decision.Of.Peer))
	case owned:
		s.help(peer, y)
	default:
		if !s.again(stepReread) {
			s.fail(Unreachable)
			if m.Result.Reason == Unreachable && m.Result.Peer == s.Peer {
				m.Result.Peer = ""
			}
		}
	}
}

// decideByPrimary acts on claim X. r is the reply to a read of the primary that X's record names.
func (s acquireTask) decideByPrimary(r Reply) {
	m := s.m
	v := judge(m.Op.Mode, s.X, r)
	if v == pending {
		s.help(s.X.Bound.Peer, r.Object)
		return
	}
	s.judged(v, r.Object)
}

// decideByRecord completes or deletes the undecided claim y in peer, as y's record decides. Any
// process may do this. r is the reply to a read of the record.
func (s judgeTask) decideByRecord(peer string, y Object, r Reply) {
	m := s.m
	switch judgeRecord(y, r) {
	case dead:
		s.send(stepFence, deleteObject(peer, y))
	case pending:
		s.observe(r.Decision.UID, r.Decision.RV)
		switch {
		case s.Quiet >= m.Op.Lease:
			s.send(stepFence, Command{Verb: Withdraw, Record: y.Claim.Operation, UID: r.Decision.UID, RV: r.Decision.RV})
		case !m.Op.Watch || m.Expired:
			m.Result.Holder, m.Result.HolderAt = y, peer
			s.unconfirmed()
		default:
			s.pause(stepReread)
		}
	case moved:
		s.X.Bound = r.Decision.Of
		s.send(stepDecided, readObject(r.Decision.Of.Peer))
	case owned:
		if m.Op.Inert || peer != s.Peer {
			// Only the log has y's content, or y is in another peer: the sweep (check and repair) of y there
			// completes it.
			m.Result.Holder, m.Result.HolderAt = y, peer
			s.unconfirmed()
			return
		}
		m.Result.Mended = true
		s.send(stepMend, Command{Verb: Put, Peer: peer, Object: centralJob{m}.converted(y), UID: y.UID, RV: y.RV})
	default:
		m.pend(peer)
		s.finish()
	}
}

// decideByPrimary binds a claim to the primary that its record names. If that primary is gone,
// moved or being removed, the claim is handled as any other secondary, and deleted if it is dead.
func (s judgeTask) decideByPrimary(r Reply) {
	m := s.m
	of := s.X.Bound
	switch v := judge(m.Op.Mode, s.X, r); v {
	case pending, owned:
		m.Result.Mended = true
		m.Result.Holder, m.Result.HolderAt = r.Object, of.Peer
		x := s.X
		s.send(stepMend, Command{Verb: Put, Peer: s.Peer, Object: x, UID: x.UID, RV: x.RV})
	default:
		s.secondary(v, r.Object)
	}
}

// A secondaryTask is a task that makes a peer hold a secondary of the primary.
type secondaryTask struct{ strand }

// rivalRecord deletes the undecided claim X if r, the reply to a read of its record, shows that X
// is dead.
func (s secondaryTask) rivalRecord(r Reply) {
	if judgeRecord(s.X, r) == dead {
		s.send(stepRemove, deleteObject(s.Peer, s.X))
		return
	}
	s.obstructed(s.X, s.Peer)
}

// help completes y in peer, whose record is committed: it writes y as the committed primary. After
// that the strand (the state of this task) reads the object in its own peer again. If only the log
// has the content, or y is being deleted, help waits for another process instead.
func (s acquireTask) help(peer string, y Object) {
	m := s.m
	if m.Op.Inert || y.Terminating {
		s.linger()
		return
	}
	s.send(stepFence, Command{Verb: Put, Peer: peer, Object: centralJob{m}.converted(y), UID: y.UID, RV: y.RV})
}
