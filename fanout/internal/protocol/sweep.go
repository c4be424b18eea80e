// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// A sweepJob judges a listed object (decides by the present state of its primary whether the object
// stays), and repairs the objects that belong to it.
type sweepJob struct{ m *Machine }

// begin judges the listed object Met and repairs the objects that belong to it.
func (j sweepJob) begin() {
	m := j.m
	x := m.Op.Met
	m.Primary = x
	switch {
	case !x.Claimed:
		m.end(Done)
	case x.Primary(m.Op.Mode) && x.Committed():
		m.Record.Primary = Ref{Peer: m.Op.Target, UID: x.UID}
		m.Record.Committed = true
		if m.Op.Mode == Everywhere {
			bringJob{m}.begin()
			return
		}
		m.enter(bringing)
		m.spawn(taskActivate, m.Op.Target)
		m.spawn(taskLook, m.Op.Target)
	case x.Requested():
		m.Record.Primary = Ref{Peer: m.Op.Target, UID: x.UID}
		holdJob{m}.begin()
	case x.Primary(m.Op.Mode) && x.Leaving():
		m.Record.Primary = Ref{Peer: m.Op.Target, UID: x.UID}
		m.Record.Committed = true
		removeJob{m}.afterMark()
		m.proceed()
	default:
		m.enter(judging)
		m.spawn(taskJudge, m.Op.Target)
	}
}

// afterJudging ends a sweep, or continues at a home in another peer if a strand (a running task) found
// that the home has moved.
func (j sweepJob) afterJudging() {
	m := j.m
	if m.Astray {
		findJob{m}.regain()
		return
	}
	m.end(Done)
}

// A judgeTask judges a secondary or a Reserved primary. It deletes a secondary that is dead: its
// primary is gone and cannot come back. It fences (deletes) a pending primary only if the primary did
// not change for one lease while this strand watched it.
type judgeTask struct{ strand }

func (s judgeTask) step(r Reply) {
	m := s.m
	switch s.Step {
	case stepStart:
		s.X = m.Op.Met
		s.judge()
	case stepReread:
		s.send(stepMet, readObject(s.Peer))
	case stepMet:
		s.afterMet(r)
	case stepRecord:
		s.decideByRecord(s.Peer, s.X, r)
	case stepPrimaryRecord:
		s.decideByRecord(s.X.Of(m.Op.Mode).Peer, s.Y, r)
	case stepDecided:
		s.decideByPrimary(r)
	case stepPrimary:
		s.secondary(m.verdict(s.X, r), r.Object)
	case stepStray:
		s.secondary(judgeStray(m.Op.Mode, s.X, r), Object{})
	case stepUnchanged, stepWitnessMember, stepWitness:
		s.stepDoubt(r)
	case stepFence, stepRemove, stepMend, stepScrub:
		s.afterFence(r)
	}
}

func (s judgeTask) afterMet(r Reply) {
	m := s.m
	switch {
	case r.Code == OK && r.Object.UID == m.Op.Met.UID:
		s.X = r.Object
		s.judge()
	case r.Code == OK || r.Code == NotFound:
		s.finish()
	case !s.again(stepReread):
		s.unconfirmed()
	}
}

func (s judgeTask) afterFence(r Reply) {
	m := s.m
	m.Result.Removed = m.Result.Removed || (s.Step == stepFence || s.Step == stepRemove) && r.Class == Applied
	m.Result.Mended = m.Result.Mended || s.Step == stepScrub && r.Class == Applied
	switch {
	case s.Step == stepRemove && r.Class == Applied:
		s.finish()
	case r.Code == Denied, r.Code == NoSuchPeer:
		s.unconfirmed()
	case r.Code != Unavailable:
		s.send(stepMet, readObject(s.Peer))
	case !s.again(stepReread):
		s.unconfirmed()
	}
}

// judge requests what decides about object X: its record, or the primary of a secondary. It fences X
// if X is a Reserved primary whose lease has run out.
func (s judgeTask) judge() {
	m := s.m
	switch {
	case !s.X.Claimed:
		s.finish()
	case s.X.Undecided():
		s.send(stepRecord, readRecord(s.X.Claim.Operation))
	case !s.X.Primary(m.Op.Mode):
		s.send(stepPrimary, readObject(s.X.Of(m.Op.Mode).Peer))
	case s.X.Pending():
		s.fenceIfExpired(s.Peer, s.X)
	default:
		// X was committed meanwhile, or is being deleted.
		s.finish()
	}
}

func (s judgeTask) secondary(v verdict, y Object) {
	m := s.m
	switch v {
	case dead, leaving:
		s.send(stepRemove, deleteObject(s.Peer, s.X))
	case pending:
		if y.Undecided() {
			s.Y = y
			s.send(stepPrimaryRecord, readRecord(y.Claim.Operation))
			return
		}
		s.fenceIfExpired(s.X.Of(m.Op.Mode).Peer, y)
	case stray:
		s.send(stepStray, Command{Verb: ReadPeerSet, Peer: s.Peer})
	case owned, undecidable, lost:
		if s.X.Overfull(m.Op.Mode) {
			s.scrub()
			return
		}
		if v == lost {
			s.doubt()
			return
		}
		if v == undecidable {
			m.pend(s.X.Of(m.Op.Mode).Peer)
			s.finish()
			return
		}
		m.Result.Holder, m.Result.HolderAt = y, s.X.Of(m.Op.Mode).Peer
		s.finish()
	case moved:
		if s.X.yielded(m.Op.Mode) {
			m.astray(s.X, s.Peer)
		} else {
			m.astray(y, s.X.Of(m.Op.Mode).Peer)
		}
		s.finish()
	default:
		s.unconfirmed()
	}
}

// scrub removes the payload from guard X. The claim stays, so the protocol sees
// no difference. The strand then reads and judges the guard again.
func (s judgeTask) scrub() {
	x := s.X
	x.Payload = ""
	s.send(stepScrub, Command{Verb: Put, Peer: s.Peer, Object: x, UID: x.UID, RV: x.RV})
}

// fenceIfExpired fences pending primary y in peer once its lease has run out.
func (s judgeTask) fenceIfExpired(peer string, y Object) {
	m := s.m
	s.observe(y.UID, y.RV)
	switch {
	case s.Quiet >= m.Op.Lease:
		s.send(stepFence, deleteObject(peer, y))
	case !m.Op.Watch || m.Expired:
		m.Result.Holder, m.Result.HolderAt = y, peer
		s.unconfirmed()
	default:
		s.pause(stepReread)
	}
}

// A guardTask makes sure that its peer has a secondary of the primary. The secondary is a guard of
// an object that exists once or, in a cover, a reservation for a primary that is not in effect yet.
type guardTask struct{ secondaryTask }

func (s guardTask) step(r Reply) {
	m := s.m
	switch s.Step {
	case stepStart, stepAgain:
		s.send(stepRead, readObject(s.Peer))
	case stepRead:
		s.afterRead(r)
	case stepRivalRecord:
		s.rivalRecord(r)
	case stepRival:
		if m.verdict(s.X, r) == dead {
			s.send(stepRemove, deleteObject(s.Peer, s.X))
			return
		}
		s.rivaled(r)
	case stepRenew:
		s.afterRenew(r)
	case stepCreate, stepRemove, stepPut:
		s.afterWrite(r)
	case stepVerify:
		s.afterVerify(r)
	case stepBelieved:
		sealedTask{s.strand}.believed(r, stepAgain)
	case stepBound:
		sealedTask{s.strand}.wasBound(r, stepAgain)
	case stepWithdraw:
		if r.Code == Unavailable && s.again(stepAgain) {
			return
		}
		s.finish()
	}
}

func (s guardTask) afterRead(r Reply) {
	m := s.m
	s.X = r.Object
	switch {
	case r.Code == NotFound && m.Op.Prove:
		s.unproved()
	case r.Code == NotFound:
		s.Unsure = true
		s.send(stepCreate, Command{Verb: Create, Peer: s.Peer, Object: bringJob{m}.secondaryOf(s.Peer)})
	case r.Code == Denied, r.Code == NoSuchPeer:
		s.unconfirmed()
	case r.Code == OK && s.X.Primary(m.Op.Mode) && s.X.Leaving():
		s.obstructed(s.X, s.Peer)
	case r.Code != OK, s.X.Terminating:
		s.retry(stepAgain)
	case s.X.Claimed && s.X.Of(m.Op.Mode) == m.Record.Primary:
		s.own()
	default:
		s.other()
	}
}

// own handles X, a guard of the primary: the strand ends, or first writes X once more, or reads the
// primary again before it binds X.
func (s guardTask) own() {
	m := s.m
	switch {
	case m.Op.Prove && !s.X.Evidence(m.Op.Mode):
		s.unproved()
	case s.maybeJudgedBefore():
		s.renew()
	case s.Unsure || sealJob{m}.unbound(s.X):
		s.send(stepVerify, readObject(m.Record.Primary.Peer))
	default:
		s.finish()
	}
}

// other handles X, which has the name and does not name the primary.
func (s guardTask) other() {
	m := s.m
	sibling := s.X.Undecided() && s.X.Sibling(m.Primary)
	switch {
	case sibling && m.Primary.Stage == Reserved:
		// The primary is not committed yet. The process that settles X's record (of the first
		// release) binds X.
		s.finish()
	case sibling:
		sealedTask{s.strand}.sendBind(m.Record.Primary)
	case m.Op.Action == Cover && s.X.Primary(m.Op.Mode) && s.X.Pending() && !s.X.Undecided():
		// X cannot be committed in a peer that is no full member yet.
		s.send(stepRemove, deleteObject(s.Peer, s.X))
	default:
		s.rival()
	}
}

func (s guardTask) afterRenew(r Reply) {
	m := s.m
	switch {
	case r.Class == Applied && (s.Unsure || sealJob{m}.unbound(r.Object)):
		s.X, s.Fresh = r.Object, true
		s.send(stepVerify, readObject(m.Record.Primary.Peer))
	case r.Class == Applied:
		s.finish()
	case r.Code == Denied || !s.again(stepAgain):
		s.unconfirmed()
	}
}

func (s guardTask) afterWrite(r Reply) {
	m := s.m
	m.Result.Mended = m.Result.Mended || s.Step == stepCreate && r.Class == Applied
	if s.Step == stepCreate && r.Class == Applied {
		s.X = r.Object
		s.send(stepVerify, readObject(m.Record.Primary.Peer))
	} else if r.Code == Denied || !s.again(stepAgain) {
		s.unconfirmed()
	}
}

func (s guardTask) afterVerify(r Reply) {
	m := s.m
	gone := r.Code == NotFound || r.Code == OK && r.Object.UID != m.Record.Primary.UID
	switch {
	case gone && m.evidence(s.X):
		// The guard is evidence of a missing primary: the next sweep decides.
		s.unconfirmed()
	case gone, r.Code == OK && r.Object.Leaving():
		// A removal may have cleared this peer before the guard was created.
		s.send(stepWithdraw, deleteObject(s.Peer, s.X))
	case r.Code == OK && r.Object.Committed() && sealJob{m}.unbound(s.X) && m.passing():
		s.send(stepBelieved, Command{Verb: ReadPeerSet, Peer: m.Record.Primary.Peer})
	case r.Code == OK && r.Object.Committed() && sealJob{m}.unbound(s.X):
		sealedTask{s.strand}.sendBound(s.X)
	default:
		s.finish()
	}
}
