// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "strings"

// An adoption puts an object that a person applied under the protocol. It creates the guards
// first and writes the claim last, in one conditional write. The object is never Reserved, so
// no process may fence it. A failed adoption deletes nothing: a secondary of an unclaimed
// object is valid while that object exists, and dead by UID afterwards.

// adoptionOf returns the operation that the claims of an adoption of the object uid name. It is
// the same for every coordinator: claims of one operation belong to one object, also after its
// home moved, and concurrent adoptions share their guards.
func adoptionOf(uid string) string { return adoptionPrefix + uid }

const adoptionPrefix = "adopt-"

// Begins returns the action of c's operation: Add or Adopt.
func (c Claim) Begins() Action {
	if strings.HasPrefix(c.Operation, adoptionPrefix) {
		return Adopt
	}
	return Add
}

// meet reads the object to adopt.
func (m *Machine) meet() {
	m.enter(meeting)
	m.spawn(jobMeet, m.Op.Target)
}

func (m *Machine) stepMeet(i int, r Reply) {
	s := &m.Strands[i]
	switch {
	case s.Step == "" || s.Step == "retry":
		m.send(i, "read", Command{Verb: Read, Peer: s.Peer})
	case s.Step == "holder":
		// The object is a guard: its primary holds the name.
		if judge(m.Op.Mode, s.X, r) == dead {
			m.fail(i, Missing)
			return
		}
		holder := r.Object
		if r.Code != OK {
			holder = s.X
		}
		m.heldBy(i, HeldByOther, s.X.Of(m.Op.Mode).Peer, holder)
	case r.Code == OK:
		s.X = r.Object
		m.met(i)
	case r.Code == NotFound:
		m.fail(i, Missing)
	case r.Code == Denied:
		m.Result.Peers = append(m.Result.Peers, s.Peer)
		m.fail(i, Refused)
	case !m.again(i, "retry"):
		m.Result.Peers = append(m.Result.Peers, s.Peer)
		m.fail(i, Unreachable)
	}
}

// met accepts the object in the strand's peer as the one to adopt, or reports the holder of the
// name.
func (m *Machine) met(i int) {
	s := &m.Strands[i]
	o := s.X
	switch {
	case o.Claimed && !o.Primary(m.Op.Mode):
		m.send(i, "holder", Command{Verb: Read, Peer: o.Of(m.Op.Mode).Peer})
	case o.Claimed && o.Stage == Reserved:
		m.heldBy(i, HeldByOther, s.Peer, o)
	case m.Op.UID != "" && o.UID != m.Op.UID:
		m.Primary = o
		m.fail(i, Missing)
	case !o.Claimed && o.Terminating:
		m.Unsure = false // no attempt can land on a terminating object
		m.fail(i, Departing)
	default:
		m.Present = true
		m.Primary = o
		m.Record.Primary = Ref{Peer: s.Peer, UID: o.UID}
		m.finish(i)
	}
}

func (m *Machine) afterMeeting() {
	o := m.Primary
	switch {
	case len(m.Result.Peers) > 0 && m.Resumed:
		m.end(InDoubt)
	case !m.Present && m.Record.Committed:
		// It was adopted and has been removed since.
		m.Result.Reason, m.Result.Peer = "", ""
		m.end(Done)
	case !m.Present || m.Expired:
		m.abort()
	case m.Record.Committed:
		m.Result.Revision = o.Revision.Number
		m.bring()
	case o.Committed():
		m.Result.Holder, m.Result.HolderAt, m.Result.Reason = o, m.Op.Target, alreadyDone
		m.alreadyDone()
	case o.Claimed:
		m.Result.Holder, m.Result.HolderAt = o, m.Op.Target
		m.because(HeldByOther, m.Op.Target)
		m.abort()
	case m.Unsure:
		// All guards were held before a commit could be sent, and the guards of an existing
		// object are never deleted: send the commit again.
		m.enter(committing)
		m.claimMet()
	default:
		m.claimOthers()
	}
}

// unadopted ends an adoption without effect. Its guards stay: they are valid while the object
// exists.
func (m *Machine) unadopted() {
	if m.Unsure {
		m.end(Ended)
		return
	}
	m.end(Aborted)
}

// guards reports whether o is a live secondary of the object to adopt, whichever adoption
// created it.
func (m *Machine) guards(o Object) bool {
	return m.Op.Action == Adopt && o.Claimed && !o.Primary(m.Op.Mode) && !o.Terminating && o.Of(m.Op.Mode) == m.Record.Primary
}

// waiting completes o, a secondary of an unclaimed object. In an Everywhere object it gets
// revision 0, because the content that is finally committed may differ.
func (m *Machine) waiting(o Object) Object {
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
func (m *Machine) claimMet() {
	m.spawn(jobAdopt, m.Record.Primary.Peer)
	m.HaveSet = false
	if m.Op.Mode == Everywhere {
		m.spawn(jobLook, m.Record.Primary.Peer)
	}
}

// adopted returns the object as the commit writes it, with the person's content.
func (m *Machine) adopted() Object {
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

func (m *Machine) stepAdopt(i int, r Reply) {
	s := &m.Strands[i]
	switch s.Step {
	case "":
		m.sendAdoption(i)
	case "put":
		m.attempted(i, r)
	case "reread":
		m.send(i, "read", Command{Verb: Read, Peer: s.Peer})
	case "read":
		m.adoptionRead(i, r)
	}
}

func (m *Machine) sendAdoption(i int) {
	o := m.adopted()
	m.send(i, "put", Command{Verb: Put, Peer: m.Strands[i].Peer, Object: o, UID: o.UID, RV: o.RV})
}

// adoptionRead determines the outcome of an adoption whose commit was not acknowledged.
func (m *Machine) adoptionRead(i int, r Reply) {
	s := &m.Strands[i]
	o := r.Object
	if r.Code == OK && o.RV != m.Primary.RV && !o.Claimed {
		// The object has changed, so no earlier attempt can land.
		m.Unsure = false
	}
	switch {
	case r.Code == NotFound, r.Code == OK && o.UID != m.Record.Primary.UID:
		m.Result.Ending = Aborted
		if m.Unsure {
			m.Result.Ending = Ended
		}
		m.fail(i, Missing)
	case r.Code != OK:
		m.ask(i, Reply{Code: Unavailable})
	case o.Committed():
		// Adopted, by this operation or by another one.
		m.Result.Holder, m.Result.HolderAt, m.Result.Reason = o, s.Peer, alreadyDone
		m.finish(i)
	case o.Claimed:
		// An adoption, perhaps this one, was committed, and the object is being removed.
		m.Result.Ending = Aborted
		if m.Unsure {
			m.Result.Ending = Ended
		}
		m.heldBy(i, HeldByOther, s.Peer, o)
	case o.Terminating:
		m.fail(i, Departing)
	case m.Expired && !m.Unsure:
		m.fail(i, Late)
	default:
		// A person edited it: adopt the present content.
		m.Primary = o
		m.sendAdoption(i)
	}
}

// afterAdopting ends an adoption that this operation did not commit.
func (m *Machine) afterAdopting() {
	switch {
	case m.Result.Reason == alreadyDone:
		m.alreadyDone()
	case m.Result.Ending == Running:
		m.unadopted()
	default:
		m.end(m.Result.Ending)
	}
}
