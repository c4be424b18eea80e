// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// An updateJob commits a new revision.
type updateJob struct{ m *Machine }

// begin commits a new revision on the primary that was found. The name is held
// already, so there is nothing to reserve: one conditional write is the commit.
func (j updateJob) begin() {
	m := j.m
	number := m.Primary.Revision.Number
	switch {
	case m.Primary.Edited():
		// The edit came before this update, so it is committed first.
		acceptJob{m}.begin()
	case m.Primary.Leaving(), m.Primary.Stage != Active:
		m.Result.Holder, m.Result.HolderAt = m.Primary, m.Record.Primary.Peer
		m.because(HeldByOther, m.Record.Primary.Peer)
		m.end(Aborted)
	case m.Op.Base != 0 && number != m.Op.Base:
		m.Result.Revision = number
		m.because(Outdated, m.Record.Primary.Peer)
		m.end(Aborted)
	case m.Primary.Revision.Digest == m.Op.Digest && m.Primary.Payload == m.Op.Payload:
		m.Result.Revision = number
		m.Result.Reason = alreadyDone
		m.HaveSet = false
		bringJob{m}.begin()
	default:
		m.Record.Base = number
		m.Record.Term = m.Primary.term()
		m.Record.Committing = true
		m.enter(advancing)
		m.spawn(taskAdvance, "")
	}
}

// A reviseTask commits an update.
type reviseTask struct{ attempt }

func (s reviseTask) sendPut() {
	m := s.m
	o := m.Primary
	next := Revision{Number: m.Record.Base + 1, Operation: m.Op.ID, Digest: m.Op.Digest}
	o.Payload = m.Op.Payload
	o.Revision = next
	o.History = append(append([]Revision(nil), m.Primary.History...), Revision{Number: next.Number, Operation: next.Operation})
	if len(o.History) > HistoryLength {
		o.History = o.History[len(o.History)-HistoryLength:]
	}
	s.send(stepPut, Command{Verb: Put, Peer: s.Peer, Object: o, UID: o.UID, RV: o.RV})
}

func (s reviseTask) step(r Reply) {
	m := s.m
	switch s.Step {
	case stepStart:
		if m.Unsure || m.Turns > 0 {
			// An operation that is recovered, or that followed its object to another home,
			// first reads whether it was committed.
			s.send(stepRead, readObject(s.Peer))
			return
		}
		s.sendPut()
	case stepReread:
		s.send(stepRead, readObject(s.Peer))
	case stepPut:
		s.attempted(r)
	case stepRead:
		s.afterRead(r)
	}
}

// afterRead decides the result of an update whose commit was not confirmed. The history
// distinguishes an update that was committed and then overtaken from an update that was never
// committed.
func (s reviseTask) afterRead(r Reply) {
	m := s.m
	o := r.Object
	mine := m.Record.Base + 1
	switch {
	case r.Code == NotFound, r.Code == OK && o.UID != m.Record.Primary.UID:
		m.astray(Object{}, "")
		s.finish()
	case r.Code != OK:
		s.ask(Reply{Code: Unavailable})
	case m.strayed(o):
		// The history moves with the home.
		m.astray(o, s.Peer)
		s.finish()
	case o.Revision.Number >= mine:
		s.overtaken(o)
	case o.Edited():
		// The edit came before the commit, like another update: no attempt can be applied to the
		// edited home.
		m.Result.Revision = o.Revision.Number
		m.because(Outdated, s.Peer)
		m.Result.Ending = updateJob{m}.unmade(o)
		s.finish()
	case o.Leaving():
		m.Result.Holder, m.Result.HolderAt = o, s.Peer
		m.because(HeldByOther, s.Peer)
		m.Result.Ending = updateJob{m}.unmade(o)
		s.finish()
	case o.Stage == Reserved:
		s.uncommitted()
	case m.Expired && !m.Unsure:
		s.fail(Late)
	default:
		// If the resourceVersion is unchanged, the first attempt may still be applied, and this
		// write is the same. Else the first attempt is void.
		m.Primary = o
		s.sendPut()
	}
}

// remembered reports whether the home that was found has, or may have had, the revision
// that this update committed. If a home has replaced a lost one since the commit, which begins
// another generation of terms, only the history can prove it.
func (j updateJob) remembered() bool {
	m := j.m
	return m.Primary.term()/generation == m.Record.Term/generation || m.Primary.History.has(m.Op.ID)
}

// overtaken decides by the history of o, whose revision number is at least that of this update.
func (s reviseTask) overtaken(o Object) {
	m := s.m
	s.finish()
	if o.History.has(m.Op.ID) {
		m.Primary = o
		m.Record.Committed = true
		return
	}
	for _, h := range o.History {
		if h.Number != m.Record.Base+1 {
			continue
		}
		m.Result.Revision = o.Revision.Number
		m.because(Outdated, s.Peer)
		m.Result.Ending = updateJob{m}.unmade(o)
		return
	}
	m.Result.Revision = o.Revision.Number
	m.because(Outdated, s.Peer)
	m.Result.Ending = Aborted
	if m.Unsure {
		m.Result.Ending = Ended
	}
}

// unmade returns the ending of an update that home o does not have. It is Ended if the
// update may have been committed at another home that was lost since, or may still be
// committed by the process that began it.
func (j updateJob) unmade(o Object) Ending {
	m := j.m
	if m.Unsure && (m.Resumed || o.term()/generation != m.Record.Term/generation) {
		return Ended
	}
	return Aborted
}
