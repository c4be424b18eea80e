// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// end stops the machine with an ending. That nothing was committed is said of an
// attempt whose result is unknown only if the primary's peer was not restored since.
func (m *Machine) end(e Ending) {
	undone := e == Aborted || e == Ended && m.Result.Reason == Outdated
	switch {
	case !undone || !m.Op.logged() || m.central():
	case m.Reverted:
		m.forgotten()
		e = Ended
	case m.Unsure:
		if e == Ended {
			m.Result.Ending = Ended
		}
		m.attest()
		return
	}
	m.conclude(e)
}

// conclude stops the machine. The log's entry goes unless it must be kept to settle
// what is left.
func (m *Machine) conclude(e Ending) {
	if e == Aborted && m.Result.Ending == Ended {
		e = Ended
	}
	m.Result.Ending = e
	m.Result.Primary = m.Record.Primary
	if e == AlreadyDone && m.Op.Action == Add {
		// The log's entry is about this operation's own reservations.
		m.Record.Primary = Ref{Peer: m.Op.Target}
	}
	m.enter(ending)
	switch {
	case !m.Op.logged():
	case e == InDoubt || m.Result.Keep:
		m.Result.Keep = true
		m.spawn(jobAdvance, "")
	case m.Result.Reason == LogFailed:
	case m.Withdrawn:
		// Its record is gone already.
	default:
		m.spawn(jobForget, "")
	}
}

// stepBegin makes the operation durable.
func (m *Machine) stepBegin(i int, r Reply) {
	switch m.Strands[i].Step {
	case "":
		m.send(i, "begin", Command{Verb: Begin})
	default:
		if r.Class != Applied {
			m.Unlogged = r.Class == Unknown
			m.fail(i, LogFailed)
			return
		}
		m.finish(i)
	}
}

func (m *Machine) afterBegin() {
	switch {
	case m.Unlogged && m.Op.Action == Adopt:
		m.relinquish() // its recovery would run it
	case m.Stopping:
		m.end(Aborted)
	case m.Op.Action == Add:
		m.enter(reserving)
		m.spawn(jobAcquire, m.Op.Target)
	case m.Op.Action == Adopt:
		m.meet()
	default:
		m.find()
	}
}

// stepLog writes the log once. Its failure is not undone by anything: before a
// commit it stops the operation, afterwards the entry is found open and settled
// again. Conflict says that another coordinator has taken the entry over.
func (m *Machine) stepLog(i int, r Reply) {
	s := &m.Strands[i]
	switch {
	case s.Step == "" && s.Job == jobForget:
		c := Command{Verb: Forget}
		if m.central() {
			c.Record, c.UID, c.RV = m.Op.ID, m.Decision.UID, m.Decision.RV
		}
		m.send(i, "log", c)
	case s.Step == "":
		m.send(i, "log", Command{Verb: Advance})
	case r.Class == Applied:
		m.finish(i)
	case m.Phase == ending:
		m.finish(i)
		m.unended(r)
	case r.Code == Conflict:
		m.finish(i)
		m.Result.Reason, m.Result.Peer = TakenOver, ""
	default:
		// If that is not known, the log may say that a commit may have been sent,
		// and its recovery would send it. That of an adoption runs it again anyway.
		m.Unlogged = r.Class == Unknown || m.Op.Action == Adopt
		m.fail(i, LogFailed)
	}
}

// unended corrects the ending of an operation whose entry did not end here.
// Another coordinator that has it, or a recovery that finds it open, sends the
// commit of an update, a removal or a move if it may have been sent before, and
// runs an adoption again. An add is committed by its own process alone.
func (m *Machine) unended(r Reply) {
	if m.Op.Action == Add || !m.Record.Committing && m.Op.Action != Adopt || m.Result.Ending != Aborted && m.Result.Ending != Ended {
		return
	}
	m.Result.Ending, m.Result.Keep = InDoubt, true
	m.Result.Reason, m.Result.Peer = LogFailed, ""
	if r.Code == Conflict {
		m.Result.Reason = TakenOver
	}
}

// relinquish leaves the operation to the coordinator that has taken it over, or to
// its recovery. It changes nothing more: neither the peers nor the log.
func (m *Machine) relinquish() {
	m.Result.Ending, m.Result.Keep = InDoubt, true
	m.Result.Primary = m.Record.Primary
	m.enter(ending)
}
