// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// withdraw aborts a pending record. Its claims no longer hold the name then (they are dead).
func (j centralJob) withdraw() {
	m := j.m
	m.enter(withdrawing)
	m.spawn(taskWithdraw, "")
}

// A withdrawTask aborts the record of the operation.
type withdrawTask struct{ strand }

func (s withdrawTask) step(r Reply) {
	m := s.m
	read := Command{Verb: ReadRecord, Record: m.Op.ID}
	switch s.Step {
	case stepStart:
		s.send(stepWithdraw, Command{Verb: Withdraw, Record: m.Op.ID, UID: m.Decision.UID, RV: m.Decision.RV})
	case stepWithdraw:
		if r.Class != Applied {
			s.send(stepRead, read)
			return
		}
		m.Withdrawn = true
		s.finish()
	case stepReread:
		s.send(stepRead, read)
	case stepRead:
		switch {
		case r.Code == NotFound, r.Code == OK && r.Decision.UID != m.Decision.UID:
			// Another process withdrew the record. If another coordinator has the operation, the
			// record may also have been committed and ended.
			m.Withdrawn = true
			s.finish()
		case r.Code == OK && r.Decision.Committed:
			m.decided(*r.Decision)
			s.finish()
		case r.Code == OK && r.Decision.Taken:
			m.Withdrawn = true
			m.Result.Reason, m.Result.Peer = TakenOver, ""
			s.finish()
		case r.Code == OK:
			m.Decision = *r.Decision
			s.send(stepWithdraw, Command{Verb: Withdraw, Record: m.Op.ID, UID: m.Decision.UID, RV: m.Decision.RV})
		default:
			if s.Tries++; s.Tries < tries {
				s.pause(stepReread)
				return
			}
			// A pending record is never rolled forward, so a process that knows that no commit
			// was sent may delete the claims.
			m.Result.Keep = true
			s.finish()
		}
	}
}

func (j centralJob) afterWithdrawing() {
	m := j.m
	switch {
	case m.Result.Reason == TakenOver:
		// The record is pending. The process that created it may still commit it, if that process has not
		// read that another coordinator took the record over.
		endJob{m}.relinquish()
	case m.Decision.Committed:
		m.Result.Ending, m.Result.Reason = Running, ""
		j.begin()
	case !m.Withdrawn && m.Unsure:
		m.end(InDoubt)
	case m.Record.Committed:
		m.Result.Ending, m.Result.Reason = Done, ""
		abortJob{m}.clean()
	default:
		// This record was never committed. If the create of the record was sent twice, an earlier
		// record of the operation may have been committed.
		m.Result.Ending, m.Unsure = Ended, true
		abortJob{m}.clean()
	}
}
