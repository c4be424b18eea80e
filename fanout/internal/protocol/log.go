// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// end stops the machine with ending e. If a commit attempt has an unknown result, end
// reports that nothing was committed only if the primary's peer was not restored since.
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

// conclude stops the machine with ending e. It deletes the log's entry, unless a recovery
// needs the entry to finish the operation.
func (m *Machine) conclude(e Ending) {
	if e == Aborted && m.Result.Ending == Ended {
		e = Ended
	}
	m.Result.Ending = e
	m.Result.Primary = m.Record.Primary
	if e == AlreadyDone && m.Op.Action == Add {
		// The entry is about this operation's reservations, not about the object that it
		// found.
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
		// The record is deleted already.
	default:
		m.spawn(jobForget, "")
	}
}

// stepBegin writes the operation into the log.
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
		m.relinquish() // the entry may exist, and its recovery would run the adoption
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

// stepLog writes the log once. A failure before a commit stops the operation. After a
// commit, the entry stays open for a recovery. Conflict means that another coordinator has
// taken the entry over.
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
		// If the result is unknown, the log may hold that a commit may have been sent, and
		// a recovery would send it. The recovery of an adoption runs it again in any case.
		m.Unlogged = r.Class == Unknown || m.Op.Action == Adopt
		m.fail(i, LogFailed)
	}
}

// unended changes the ending to InDoubt if the entry could not be ended here. Another
// coordinator that took the entry over, or a recovery, sends the commit of an update, a
// removal or a move again if it may have been sent before, and runs an adoption again. Only
// its own process commits an add.
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

// relinquish ends the operation in doubt and leaves it to the coordinator that has taken it
// over, or to a recovery. It writes neither to the peers nor to the log.
func (m *Machine) relinquish() {
	m.Result.Ending, m.Result.Keep = InDoubt, true
	m.Result.Primary = m.Record.Primary
	m.enter(ending)
}
