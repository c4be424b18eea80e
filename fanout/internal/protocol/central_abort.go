// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// withdraw aborts a pending record; its claims are dead then.
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
			// Withdrawn by somebody; or, for one who does not hold the operation,
			// committed and finished since.
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
			// Nobody rolls a pending record forward: whoever knows that no commit
			// was sent may take the claims down.
			m.Result.Keep = true
			m.finish(i)
		}
	}
}

func (m *Machine) afterWithdrawing() {
	switch {
	case m.Result.Reason == TakenOver:
		// The record is not decided. Its maker may still do so if it never learned
		// that the record was taken from it.
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
		// This record was never committed. An earlier one of the operation may have
		// been, if its create was sent twice.
		m.Result.Ending, m.Unsure = Ended, true
		m.clean()
	}
}
