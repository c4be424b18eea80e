// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// revise commits a new revision on the primary that was found. The name is held
// already, so there is nothing to reserve: one conditional write is the commit.
func (m *Machine) revise() {
	number := m.Primary.Revision.Number
	switch {
	case m.Primary.Edited():
		// The edit came before this update, so it is committed first.
		m.accept()
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
		m.bring()
	default:
		m.Record.Base = number
		m.Record.Term = m.Primary.term()
		m.Record.Committing = true
		m.enter(advancing)
		m.spawn(jobAdvance, "")
	}
}

func (m *Machine) sendRevision(i int) {
	o := m.Primary
	next := Revision{Number: m.Record.Base + 1, Operation: m.Op.ID, Digest: m.Op.Digest}
	o.Payload = m.Op.Payload
	o.Revision = next
	o.History = append(append([]Revision(nil), m.Primary.History...), Revision{Number: next.Number, Operation: next.Operation})
	if len(o.History) > HistoryLength {
		o.History = o.History[len(o.History)-HistoryLength:]
	}
	m.send(i, "put", Command{Verb: Put, Peer: m.Strands[i].Peer, Object: o, UID: o.UID, RV: o.RV})
}

func (m *Machine) stepRevise(i int, r Reply) {
	s := &m.Strands[i]
	switch s.Step {
	case "":
		if m.Unsure || m.Turns > 0 {
			// An operation that is recovered, or that followed its object to another home,
			// first reads whether it was committed.
			m.send(i, "read", Command{Verb: Read, Peer: s.Peer})
			return
		}
		m.sendRevision(i)
	case "reread":
		m.send(i, "read", Command{Verb: Read, Peer: s.Peer})
	case "put":
		m.attempted(i, r)
	case "read":
		m.revisionRead(i, r)
	}
}

// revisionRead decides the result of an update whose commit was not confirmed. The history
// distinguishes an update that was committed and then overtaken from one that never was.
func (m *Machine) revisionRead(i int, r Reply) {
	s := &m.Strands[i]
	o := r.Object
	mine := m.Record.Base + 1
	switch {
	case r.Code == NotFound, r.Code == OK && o.UID != m.Record.Primary.UID:
		m.astray(Object{}, "")
		m.finish(i)
	case r.Code != OK:
		m.ask(i, Reply{Code: Unavailable})
	case m.strayed(o):
		// The history moves with the home.
		m.astray(o, s.Peer)
		m.finish(i)
	case o.Revision.Number >= mine:
		m.overtaken(i, o)
	case o.Edited():
		// The edit came between, like another update: no attempt can be applied to it.
		m.Result.Revision = o.Revision.Number
		m.because(Outdated, s.Peer)
		m.Result.Ending = m.unmade(o)
		m.finish(i)
	case o.Leaving():
		m.Result.Holder, m.Result.HolderAt = o, s.Peer
		m.because(HeldByOther, s.Peer)
		m.Result.Ending = m.unmade(o)
		m.finish(i)
	case o.Stage == Reserved:
		m.uncommitted(i)
	case m.Expired && !m.Unsure:
		m.fail(i, Late)
	default:
		// If the resourceVersion is unchanged, the first attempt may still be applied, and
		// this is the same write. Else the first one is void.
		m.Primary = o
		m.sendRevision(i)
	}
}

// remembered reports whether the home that was found has, or may have had, the revision
// that this update committed. In another generation only the history can prove it.
func (m *Machine) remembered() bool {
	return m.Primary.term()/generation == m.Record.Term/generation || m.Primary.made(m.Op.ID)
}

// made reports whether home o's history has a revision by operation. Numbers do not decide:
// a reconciled revision has another one than it was committed under.
func (o Object) made(operation string) bool {
	return slices.ContainsFunc(o.History, func(h Revision) bool { return h.Operation == operation })
}

// overtaken decides by the history of o, whose number is at least this update's.
func (m *Machine) overtaken(i int, o Object) {
	s := &m.Strands[i]
	m.finish(i)
	if o.made(m.Op.ID) {
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
		m.Result.Ending = m.unmade(o)
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
func (m *Machine) unmade(o Object) Ending {
	if m.Unsure && (m.Resumed || o.term()/generation != m.Record.Term/generation) {
		return Ended
	}
	return Aborted
}
