// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "strings"

// An adoption puts an object that a person applied under the protocol: guards
// first, the claim last, in one conditional write. The object is never
// Reserved, so nobody may fence it, and nothing is taken down when an adoption
// fails: a secondary that names a living object without a claim is right by
// itself, and dead by UID when that object is gone.

// adoptionOf names, in all claims, the adoption of the object of that UID, whoever
// carries it out: claims of one operation are of one object, also after its home
// moved, and the guards of an adoption are shared.
func adoptionOf(uid string) string { return adoptionPrefix + uid }

const adoptionPrefix = "adopt-"

// Begins is what c's operation does: it adds the object, or adopts it.
func (c Claim) Begins() Action {
	if strings.HasPrefix(c.Operation, adoptionPrefix) {
		return Adopt
	}
	return Add
}

// meet reads the object that is to be adopted.
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
		// A guard stands there: whoever it names has the name.
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

// met takes the object that stands in the strand's peer for the one to adopt,
// or says who has the name there.
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
		m.Unsure = false // no attempt can land on what is being deleted
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
		// Removed by somebody since.
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
		// The guards were held before a commit could be sent, and nobody takes
		// a guard of this object down: the commit is sent again.
		m.enter(committing)
		m.claimMet()
	default:
		m.claimOthers()
	}
}

// unadopted ends an adoption without effect. Its guards stay: as long as the
// object lives they are right.
func (m *Machine) unadopted() {
	if m.Unsure {
		m.end(Ended)
		return
	}
	m.end(Aborted)
}

// guards says whether o, found in the peer of strand i, is a secondary of the
// object to adopt: held, whoever made it.
func (m *Machine) guards(o Object) bool {
	return m.Op.Action == Adopt && o.Claimed && !o.Primary(m.Op.Mode) && !o.Terminating && o.Of(m.Op.Mode) == m.Record.Primary
}

// waiting completes a secondary of an object without a claim. What exists
// everywhere has revision 0 there, so that the content which is committed in the
// end may be another one.
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

// claimMet sends the commit of an adoption, with the membership beside it as an
// add does.
func (m *Machine) claimMet() {
	m.spawn(jobAdopt, m.Record.Primary.Peer)
	m.HaveSet = false
	if m.Op.Mode == Everywhere {
		m.spawn(jobLook, m.Record.Primary.Peer)
	}
}

// adopted is the object as the commit makes it: the content is the person's.
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

// adoptionRead decides what became of an adoption that was not answered with
// yes.
func (m *Machine) adoptionRead(i int, r Reply) {
	s := &m.Strands[i]
	o := r.Object
	if r.Code == OK && o.RV != m.Primary.RV && !o.Claimed {
		// No attempt can land on what has changed since.
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
		// Whoever adopted it: what was asked for.
		m.Result.Holder, m.Result.HolderAt, m.Result.Reason = o, s.Peer, alreadyDone
		m.finish(i)
	case o.Claimed:
		// It was adopted, perhaps by this, and is being removed.
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
		// A person edited it: adopted as it is now.
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
