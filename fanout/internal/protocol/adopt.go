// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "strings"

// An adoption gives the protocol control of an object that a person applied. It creates the
// secondaries first and writes the claim last, in one conditional write. The object is never
// Reserved, so no process may delete it as an abandoned reservation. A failed adoption deletes
// nothing: a secondary names the UID of the unclaimed object. It is valid while that object exists,
// and afterwards is dead: any process may delete it.

// adoptionOf returns the operation ID that an adoption of the object with the UID uid writes into
// all its claims (a claim shows which operation took the name). Every coordinator writes the same
// ID. So claims with one ID belong to one object, also after its home moved, and concurrent
// adoptions share their guards.
func adoptionOf(uid string) string { return adoptionPrefix + uid }

const adoptionPrefix = "adopt-"

// Begins returns the action of the operation that c names: Add or Adopt.
func (c Claim) Begins() Action {
	if strings.HasPrefix(c.Operation, adoptionPrefix) {
		return Adopt
	}
	return Add
}

// An adoptJob gives the protocol control of an object that a person applied.
type adoptJob struct{ m *Machine }

// begin reads the object to adopt.
func (j adoptJob) begin() {
	m := j.m
	m.enter(meeting)
	m.spawn(taskMeet, m.Op.Target)
}

// A meetTask reads the object to adopt.
type meetTask struct{ strand }

func (s meetTask) step(r Reply) {
	m := s.m
	switch {
	case s.Step == stepStart || s.Step == stepRetry:
		s.send(stepRead, readObject(s.Peer))
	case s.Step == stepHolder:
		// The object is a guard: its primary holds the name.
		if judge(m.Op.Mode, s.X, r) == dead {
			s.fail(Missing)
			return
		}
		holder := r.Object
		if r.Code != OK {
			holder = s.X
		}
		s.heldBy(HeldByOther, s.X.Of(m.Op.Mode).Peer, holder)
	case r.Code == OK:
		s.X = r.Object
		s.met()
	case r.Code == NotFound:
		s.fail(Missing)
	case r.Code == Denied:
		m.Result.Peers = append(m.Result.Peers, s.Peer)
		s.fail(Refused)
	case !s.again(stepRetry):
		m.Result.Peers = append(m.Result.Peers, s.Peer)
		s.fail(Unreachable)
	}
}

// met accepts s.X as the object to adopt, or ends the task with the reason why s.X cannot be
// adopted. If s.X is a secondary (a guard or a replica), met reads the primary of s.X, and step
// then ends the task.
func (s meetTask) met() {
	m := s.m
	o := s.X
	switch {
	case o.Claimed && !o.Primary(m.Op.Mode):
		s.send(stepHolder, readObject(o.Of(m.Op.Mode).Peer))
	case o.Claimed && o.Stage == Reserved:
		s.heldBy(HeldByOther, s.Peer, o)
	case m.Op.UID != "" && o.UID != m.Op.UID:
		m.Primary = o
		s.fail(Missing)
	case !o.Claimed && o.Terminating:
		m.Unsure = false // no commit can be applied to a terminating object
		s.fail(Departing)
	default:
		m.Present = true
		m.Primary = o
		m.Record.Primary = Ref{Peer: s.Peer, UID: o.UID}
		s.finish()
	}
}

func (j adoptJob) afterMeeting() {
	m := j.m
	o := m.Primary
	switch {
	case len(m.Result.Peers) > 0 && m.Resumed:
		m.end(InDoubt)
	case !m.Present && m.Record.Committed:
		// The object was adopted and has been removed since.
		m.Result.Reason, m.Result.Peer = "", ""
		m.end(Done)
	case !m.Present || m.Expired:
		abortJob{m}.begin()
	case m.Record.Committed:
		m.Result.Revision = o.Revision.Number
		bringJob{m}.begin()
	case o.Committed():
		m.Result.Holder, m.Result.HolderAt, m.Result.Reason = o, m.Op.Target, alreadyDone
		addJob{m}.alreadyDone()
	case o.Claimed:
		m.Result.Holder, m.Result.HolderAt = o, m.Op.Target
		m.because(HeldByOther, m.Op.Target)
		abortJob{m}.begin()
	case m.Unsure:
		// All guards were held before a commit could be sent, and the guards of an existing
		// object are never deleted: send the commit again.
		m.enter(committing)
		j.claimMet()
	default:
		addJob{m}.claimOthers()
	}
}

// unadopted ends an adoption that is not in effect. If a commit may have been applied, the ending
// is Ended, otherwise Aborted. The secondaries stay: they are valid while the object that was to be
// adopted exists.
func (j adoptJob) unadopted() {
	m := j.m
	if m.Unsure {
		m.end(Ended)
		return
	}
	m.end(Aborted)
}

// guards reports whether o is a secondary of the object to adopt and is not terminating. This or
// any other adoption may have created o.
func (j adoptJob) guards(o Object) bool {
	m := j.m
	return m.Op.Action == Adopt && o.Claimed && !o.Primary(m.Op.Mode) && !o.Terminating && o.Of(m.Op.Mode) == m.Record.Primary
}

// waiting completes o, the secondary that an adoption creates. A replica gets revision 0, because a
// person may edit the object before the adoption commits. Then the committed content differs from
// the replica's.
func (j adoptJob) waiting(o Object) Object {
	m := j.m
	o.Claim.Operation = adoptionOf(m.Primary.UID)
	o.Claim.Digest = m.Primary.Digest
	if m.Op.Mode == Everywhere {
		o.Revision = Revision{Operation: o.Claim.Operation, Digest: m.Primary.Digest}
		if !m.Op.Inert {
			o.Payload = m.Primary.Payload
		}
	}
	return o
}

// claimMet sends the commit of an adoption. For an Everywhere object it reads the membership in
// parallel, as an add does.
func (j adoptJob) claimMet() {
	m := j.m
	m.spawn(taskAdopt, m.Record.Primary.Peer)
	m.HaveSet = false
	if m.Op.Mode == Everywhere {
		m.spawn(taskLook, m.Record.Primary.Peer)
	}
}

// adopted returns the object as the commit writes it, with the person's content.
func (j adoptJob) adopted() Object {
	m := j.m
	o := m.Primary
	o.Claimed, o.Finalizer = true, true
	o.Claim = Claim{
		Operation:   adoptionOf(o.UID),
		Coordinator: m.Op.Coordinator,
		Digest:      o.Digest,
		Start:       m.Op.Start,
		Epoch:       m.Set.Epoch,
		Primary:     true,
		Peer:        m.Op.Target,
		Target:      m.Op.Target,
	}
	o.Stage = Configured
	if m.Op.Mode == Everywhere {
		o.Stage = Active
		o.Home = Home{Ref: m.Record.Primary, Term: 1}
		o.Revision = Revision{Number: 1, Operation: o.Claim.Operation, Digest: o.Digest}
		o.History = []Revision{{Number: 1, Operation: o.Claim.Operation}}
	}
	return o
}

// An adoptTask commits an adoption.
type adoptTask struct{ attempt }

func (s adoptTask) step(r Reply) {
	switch s.Step {
	case stepStart:
		s.sendPut()
	case stepPut:
		s.attempted(r)
	case stepReread:
		s.send(stepRead, readObject(s.Peer))
	case stepRead:
		s.afterRead(r)
	}
}

func (s adoptTask) sendPut() {
	m := s.m
	o := adoptJob{m}.adopted()
	s.send(stepPut, Command{Verb: Put, Peer: s.Peer, Object: o, UID: o.UID, RV: o.RV})
}

// afterRead determines the outcome of an adoption whose commit was not acknowledged, from r, the reply to a
// read of the object. If the object has no claim yet, it sends the commit again.
func (s adoptTask) afterRead(r Reply) {
	m := s.m
	o := r.Object
	if r.Code == OK && o.UID == m.Record.Primary.UID && o.RV != m.Primary.RV && !o.Claimed {
		// The object has another resourceVersion and no claim. So no earlier commit attempt was applied, and
		// none can be applied later.
		m.Unsure = false
	}
	switch {
	case r.Code == NotFound, r.Code == OK && o.UID != m.Record.Primary.UID:
		m.Result.Ending = Aborted
		if m.Unsure {
			m.Result.Ending = Ended
		}
		s.fail(Missing)
	case r.Code != OK:
		s.ask(Reply{Code: Unavailable})
	case o.Committed():
		// This operation or another one has adopted the object.
		m.Result.Holder, m.Result.HolderAt, m.Result.Reason = o, s.Peer, alreadyDone
		s.finish()
	case o.Claimed:
		// An adoption, perhaps this operation's, was committed, and the object is being removed.
		m.Result.Ending = Aborted
		if m.Unsure {
			m.Result.Ending = Ended
		}
		s.heldBy(HeldByOther, s.Peer, o)
	case o.Terminating:
		s.fail(Departing)
	case m.Expired && !m.Unsure:
		s.fail(Late)
	default:
		// A person may have edited the object: adopt its present content.
		m.Primary = o
		s.sendPut()
	}
}

// afterAdopting ends an adoption that this operation did not commit.
func (j adoptJob) afterAdopting() {
	m := j.m
	switch {
	case m.Result.Reason == alreadyDone:
		addJob{m}.alreadyDone()
	case m.Result.Ending == Running:
		j.unadopted()
	default:
		m.end(m.Result.Ending)
	}
}
