// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// withdraw aborts a pending record, which makes its claims dead.
func (m *Machine) withdraw() {
	m.enter(withdrawing)
	m.spawn(jobWithdraw, "")
}

func (m *Machine) stepWithdraw(i int, r Reply) {
	s := &m.Strands[i]
	read := Command{Verb: ReadRecord, Record: m.Op.ID}
	switch s.Step {
	case "":
		m.send(i, "withdraw", Command{Verb: Withdraw, Record: m.Op.ID, UID: m.Decision.UID, RV: m.Decision.RV})
	case "withdraw":
		if r.Class != Applied {
			m.send(i, "read", read)
			return
		}
		m.Withdrawn = true
		m.finish(i)
	case "reread":
		m.send(i, "read", read)
	case "read":
		switch {
		case r.Code == NotFound, r.Code == OK && r.Decision.UID != m.Decision.UID:
			// Another process withdrew it. If another coordinator holds the operation, it may
			// also have been committed and finished.
			m.Withdrawn = true
			m.finish(i)
		case r.Code == OK && r.Decision.Committed:
			m.decided(i, *r.Decision)
		case r.Code == OK && r.Decision.Taken:
			m.Withdrawn = true
			m.Result.Reason, m.Result.Peer = TakenOver, ""
			m.finish(i)
		case r.Code == OK:
			m.Decision = *r.Decision
			m.send(i, "withdraw", Command{Verb: Withdraw, Record: m.Op.ID, UID: m.Decision.UID, RV: m.Decision.RV})
		default:
			if s.Tries++; s.Tries < tries {
				m.pause(i, "reread")
				return
			}
			// A pending record is never rolled forward, so a process that knows that no commit
			// was sent may delete the claims.
			m.Result.Keep = true
			m.finish(i)
		}
	}
}

func (m *Machine) afterWithdrawing() {
	switch {
	case m.Result.Reason == TakenOver:
		// The record is undecided. Its creator may still commit it if it does not know that the
		// record was taken over.
		m.relinquish()
	case m.Decision.Committed:
		m.Result.Ending, m.Result.Reason = Running, ""
		m.bind()
	case !m.Withdrawn && m.Unsure:
		m.end(InDoubt)
	case m.Record.Committed:
		m.Result.Ending, m.Result.Reason = Done, ""
		m.clean()
	default:
		// This record was never committed. An earlier record of the operation may have been, if
		// the create was sent twice.
		m.Result.Ending, m.Unsure = Ended, true
		m.clean()
	}
}
