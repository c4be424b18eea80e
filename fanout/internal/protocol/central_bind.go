// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// A centralJob finishes or undoes an add of the first release, as its record in the central log
// decides.
type centralJob struct{ m *Machine }

// begin carries out a committed record: it writes the target's claim as the committed primary, and
// binds every other claim to it (writes the primary's UID into the claim). It only writes existing
// objects and creates none. Any process may run it at any time.
func (j centralJob) begin() {
	m := j.m
	m.Stopping = false
	m.enter(binding)
	m.spawn(taskConvert, m.Record.Primary.Peer)
	for _, p := range m.Op.Peers {
		if p != m.Record.Primary.Peer {
			m.spawn(taskBind, p)
		}
	}
}

// converted returns the target's claim x as the committed primary.
func (j centralJob) converted(x Object) Object {
	m := j.m
	x.Finalizer = true
	if x.Payload == "" {
		x.Payload = m.Op.Payload
	}
	x.Stage = Configured
	if m.Op.Mode == Everywhere {
		first := Revision{Number: 1, Operation: x.Claim.Operation, Digest: x.Claim.Digest}
		x.Stage = Active
		x.Home = Home{Ref: Ref{Peer: x.Claim.Peer, UID: x.UID}, Term: 1}
		x.Revision = first
		first.Digest = ""
		x.History = []Revision{first}
	}
	return x
}

// A convertTask writes the target's claim as the committed primary.
type convertTask struct{ sealedTask }

func (s convertTask) step(r Reply) {
	m := s.m
	switch s.Step {
	case stepStart, stepReread:
		s.send(stepRead, readObject(s.Peer))
	case stepPut:
		if r.Class == Applied {
			m.Primary = r.Object
			s.finish()
			return
		}
		s.retake(r)
	case stepRead:
		switch {
		case r.Code == NotFound, r.Code == OK && r.Object.UID != m.Record.Primary.UID:
			// The primary was committed and has been removed since.
			m.Primary = Object{}
			s.finish()
		case r.Code == OK && r.Object.Stage != Reserved:
			m.Primary = r.Object
			s.finish()
		case r.Code == OK && !r.Object.Terminating:
			s.sendPut(r.Object)
		default:
			s.retake(Reply{Code: Unavailable})
		}
	}
}

func (s convertTask) sendPut(x Object) {
	m := s.m
	s.send(stepPut, Command{Verb: Put, Peer: s.Peer, Object: centralJob{m}.converted(x), UID: x.UID, RV: x.RV})
}

// retake handles a read or write of a claim that failed: it reads the claim again. It ends the
// strand unconfirmed if the peer rejected the request, is not configured, or stays unavailable.
func (s sealedTask) retake(r Reply) {
	switch {
	case r.Code == Denied, r.Code == NoSuchPeer:
		s.unconfirmed()
	case r.Code != Unavailable:
		s.send(stepRead, readObject(s.Peer))
	case !s.again(stepReread):
		s.unconfirmed()
	}
}

// A bindTask binds the claim in its peer to the committed primary.
type bindTask struct{ sealedTask }

func (s bindTask) step(r Reply) {
	m := s.m
	switch s.Step {
	case stepStart, stepReread:
		s.send(stepRead, readObject(s.Peer))
	case stepPut:
		if r.Class == Applied {
			s.finish()
			return
		}
		s.retake(r)
	case stepRead:
		s.X = r.Object
		switch {
		case r.Code == OK && s.X.Undecided() && s.X.Claim.Operation == m.Op.ID && s.X.Claim.Record == m.Decision.UID:
			s.sendBind(m.Record.Primary)
		case r.Code == OK, r.Code == NotFound:
			// Another process bound the claim, or the claim was removed.
			s.finish()
		default:
			s.retake(r)
		}
	}
}

// A sealedTask is a task that binds a guard or a claim to its primary.
type sealedTask struct{ strand }

// sendBind binds s.X, a guard or a claim of the first release, to the primary that parameter "of"
// identifies.
func (s sealedTask) sendBind(of Ref) {
	x := s.X
	x.Bound = of
	s.send(stepPut, Command{Verb: Put, Peer: s.Peer, Object: x, UID: x.UID, RV: x.RV})
}

// afterBinding continues as after any commit. The record is deleted last, when no claim depends on
// it. A claim in a peer that has left the ring is ignored. The target's PeerSet shows which peers
// have left; it was read after the target's object was committed. So a peer that rejoins after this
// read gets its secondary from the rejoin.
func (j centralJob) afterBinding() {
	m := j.m
	asked := slices.ContainsFunc(m.Strands, func(s Strand) bool { return s.Task == taskLook })
	if asked && m.HaveSet {
		m.Result.Pending = slices.DeleteFunc(m.Result.Pending, m.Set.Gone)
		m.HaveSet = false
	}
	target := m.Record.Primary.Peer
	switch {
	case len(m.Result.Pending) > 0 && !asked && m.Primary.UID != "" && !slices.Contains(m.Result.Pending, target):
		m.spawn(taskLook, target)
	case len(m.Result.Pending) > 0 && m.Primary.UID == "" && !slices.Contains(m.Result.Pending, target):
		// The primary is gone, so the claims are dead.
		m.Result.Pending = nil
		m.end(Done)
	case slices.Contains(m.Result.Pending, target):
		j.inquire()
	case len(m.Result.Pending) > 0:
		m.Result.Keep = true
		m.end(Committed)
	case m.Primary.UID == "":
		m.end(Done)
	default:
		m.Result.Revision = m.Primary.Revision.Number
		bringJob{m}.begin()
	}
}

// recover reads the record of the operation. After that, afterRecord aborts a pending record and
// finishes a committed one. It rolls no pending record forward, because the record's create may
// have been sent twice.
func (j centralJob) recover() {
	m := j.m
	m.spawn(taskRecord, "")
}

// A recordTask reads the record of the operation, and the target if the record is gone.
type recordTask struct{ strand }

func (s recordTask) step(r Reply) {
	m := s.m
	switch s.Step {
	case stepStart, stepReread:
		s.send(stepRead, Command{Verb: ReadRecord, Record: m.Op.ID})
	case stepRead:
		s.afterRead(r)
	case stepTargetAgain:
		s.send(stepTarget, readObject(m.Op.Target))
	case stepTarget:
		s.afterTarget(r)
	}
}

func (s recordTask) afterRead(r Reply) {
	m := s.m
	switch {
	case r.Code == NotFound:
		m.Withdrawn, m.Unsure = true, true
		s.send(stepTarget, readObject(m.Op.Target))
	case r.Code != OK:
		if r.Code == Denied || !s.again(stepReread) {
			m.because(Unreachable, "")
			m.Result.Ending = InDoubt
			s.finish()
		}
	case r.Decision.Committed:
		m.decided(*r.Decision)
		s.finish()
	default:
		m.Decision = *r.Decision
		s.finish()
	}
}

func (s recordTask) afterTarget(r Reply) {
	m := s.m
	o := r.Object
	switch {
	case r.Code == OK && o.Claim.Operation == m.Op.ID && o.Claim.Primary && o.Stage != Reserved:
		m.Primary = o
		m.Record.Primary = Ref{Peer: s.Peer, UID: o.UID}
		m.Record.Committed = true
		s.finish()
	case r.Code == OK, r.Code == NotFound:
		m.Result.Ending = Ended
		m.Searched = r.Code == OK && o.Claim.Operation == m.Op.ID && o.Claim.Primary
		s.finish()
	case r.Code == Denied || !s.again(stepTargetAgain):
		m.because(Unreachable, m.Op.Target)
		m.Result.Ending = InDoubt
		s.finish()
	}
}

func (j centralJob) afterRecord() {
	m := j.m
	m.Stopping = false
	switch {
	case m.Result.Ending == Ended && m.Record.Committed:
		// The record was committed and is gone, so every peer has confirmed.
		m.end(Done)
	case m.Result.Ending == Ended:
		m.because(Late, "")
		abortJob{m}.clean()
	case m.Result.Ending == InDoubt && m.Withdrawn:
		j.inquire()
	case m.Result.Ending != Running:
		m.because(Late, "")
		m.end(m.Result.Ending)
	case m.Decision.UID == "" || m.Decision.Committed:
		m.Result.Reason = ""
		j.begin()
	default:
		// This record was never committed. If the log entry shows a commit, an earlier record was
		// committed, and this record comes from a late duplicate of the create.
		for _, p := range m.Op.Peers {
			m.Claims[p] = Claimed{}
		}
		m.because(Late, "")
		j.withdraw()
	}
}
