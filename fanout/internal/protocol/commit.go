// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// A commitJob sends the write that decides the operation, after the log has stored that it may be
// sent.
type commitJob struct{ m *Machine }

// begin sends the commit. For an Everywhere kind it reads the members at the same time, which saves
// activation (the update of the replicas) a round trip. Activation must read the replicas before
// the members. The replies to the creates of the replicas, which have arrived, serve as these reads.
func (j commitJob) begin() {
	m := j.m
	m.spawn(taskCommit, m.Record.Primary.Peer)
	m.HaveSet = false
	if m.Op.Mode == Everywhere {
		m.spawn(taskLook, m.Record.Primary.Peer)
	}
}

// configured returns the primary as the commit writes it. The commit adds our finalizer, which
// keeps a committed primary until its removal. A Reserved primary does not have it. So one delete
// removes a Reserved primary at once, and thereby aborts its operation.
func (j commitJob) configured() Object {
	m := j.m
	o := m.Primary
	o.Finalizer = true
	o.Payload = m.Op.Payload
	o.Stage = Configured
	if m.Op.Mode == Everywhere {
		o.Stage = Active
		o.Home = Home{Ref: m.Record.Primary, Term: 1}
		o.Revision = Revision{Number: 1, Operation: m.Op.ID, Digest: m.Op.Digest}
		o.History = []Revision{{Number: 1, Operation: m.Op.ID}}
	}
	return o
}

// A commitTask commits an add.
type commitTask struct{ attempt }

func (s commitTask) step(r Reply) {
	m := s.m
	switch s.Step {
	case stepStart:
		s.send(stepPut, Command{Verb: Put, Peer: s.Peer, Object: commitJob{m}.configured(), UID: m.Primary.UID, RV: m.Primary.RV})
	case stepPut:
		s.attempted(r)
	case stepReread:
		s.send(stepRead, readObject(s.Peer))
	case stepRead:
		s.afterRead(r)
	case stepTakeDown:
		if r.Class == Applied {
			// Our own delete of the reservation proves the abort.
			m.because(Late, s.Peer)
			m.Result.Ending = Aborted
			s.finish()
			return
		}
		s.ask(r)
	}
}

// An attempt is a task that sends the write which commits an operation, until its result is
// known.
type attempt struct{ strand }

// ask reads the primary after a write of the primary that was not acknowledged. After askLimit
// tries, or if the peer is not configured, it ends the strand (the running task). The ending is
// InDoubt then if the commit may have been applied.
func (s attempt) ask(r Reply) {
	m := s.m
	if r.Code == Denied {
		// An earlier attempt may still be applied, so this refusal is not final.
		r.Code = Unavailable
	}
	if s.reread(r, commitJob{m}.askLimit()) {
		return
	}
	m.because(Unreachable, s.Peer)
	if m.Unsure {
		m.Result.Ending = InDoubt
	}
	s.finish()
}

// attempted handles the reply to the put that commits an operation of any kind. Only a refusal
// without an earlier attempt of unknown result proves that nothing was committed; after any
// other failure it reads the primary.
func (s attempt) attempted(r Reply) {
	m := s.m
	switch {
	case r.Class == Applied:
		m.Primary = r.Object
		m.Record.Committed = true
		s.finish()
		return
	case r.Class == Unknown:
		m.Unsure = true
	case r.Code == Denied && !m.Unsure:
		s.fail(Refused)
		return
	}
	s.ask(r)
}

// afterRead determines the outcome of a commit that was not acknowledged, from r, the reply to a read of the
// primary. If the primary is still Reserved, it sends the commit again, or after the deadline deletes the
// primary.
func (s commitTask) afterRead(r Reply) {
	m := s.m
	o := r.Object
	switch {
	case r.Code == NotFound, r.Code == OK && o.UID != m.Record.Primary.UID:
		m.because(Fenced, s.Peer)
		m.Result.Ending = Aborted
		if m.Unsure {
			// The commit may have been applied and the object removed since.
			m.Result.Ending = Ended
		}
		s.finish()
	case r.Code != OK:
		s.ask(Reply{Code: Unavailable})
	case o.InEffect() || o.Leaving():
		m.Primary = o
		m.Record.Committed = true
		s.finish()
	case o.Terminating:
		m.because(Fenced, s.Peer)
		m.Result.Ending = Aborted
		s.finish()
	case m.Expired:
		s.send(stepTakeDown, deleteObject(s.Peer, o))
	default:
		// Another write changed the primary, or the commit has not been applied: send the commit
		// again on the version that was read.
		m.Primary = o
		s.send(stepPut, Command{Verb: Put, Peer: s.Peer, Object: commitJob{m}.configured(), UID: o.UID, RV: o.RV})
	}
}

// askLimit returns how often a peer is asked about an attempt of unknown result.
func (j commitJob) askLimit() int {
	m := j.m
	switch {
	case m.Expired:
		return tries
	case m.Op.Patience == Patient:
		return 1 << 30
	default:
		return max(tries, m.Op.Lease)
	}
}

// A lookTask reads the membership from the primary's peer for the work after a commit. If the read
// fails, the phase goes on, and work that needs the members leaves its peers unconfirmed.
type lookTask struct{ strand }

func (s lookTask) step(r Reply) {
	m := s.m
	switch {
	case s.Step != stepRead:
		s.send(stepRead, Command{Verb: ReadPeerSet, Peer: s.Peer})
	case r.Code == OK && (m.Op.logged() || m.Op.Action == Sweep && m.passing()) && !r.PeerSet.current():
		// The peer is no full member, for example because it rejoins. Its list of members is not
		// used, and the membership change that admits the peer decides about its objects.
		if m.Op.Action == Remove {
			m.because(Restored, s.Peer) // another member may have an object of the name
		}
		s.finish()
	case r.Code == OK:
		m.Set, m.HaveSet = r.PeerSet, true
		s.finish()
	case r.Code == NotFound || r.Code == Denied || !s.again(stepRetry):
		s.finish()
	}
}
