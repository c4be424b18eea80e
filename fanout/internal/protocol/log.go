// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// end stops the machine with ending e. If a commit attempt has an unknown result, end reports that
// nothing was committed only if the primary's peer was not restored after the operation began.
func (m *Machine) end(e Ending) {
	undone := e == Aborted || e == Ended && m.Result.Reason == Outdated
	switch {
	case !undone || !m.Op.logged() || m.central():
	case m.Reverted:
		endJob{m}.forgotten()
		e = Ended
	case m.Unsure:
		if e == Ended {
			m.Result.Ending = Ended
		}
		endJob{m}.attest()
		return
	}
	endJob{m}.conclude(e)
}

// conclude stops the machine with ending e. It deletes the log's entry, unless a recovery
// needs the entry to finish the operation.
func (j endJob) conclude(e Ending) {
	m := j.m
	if e == Aborted && m.Result.Ending == Ended {
		e = Ended
	}
	m.Result.Ending = e
	m.Result.Primary = m.Record.Primary
	if e == AlreadyDone && m.Op.Action == Add {
		// The entry is about this operation's reservations, not about the object that the operation
		// found.
		m.Record.Primary = Ref{Peer: m.Op.Target}
	}
	m.enter(ending)
	switch {
	case !m.Op.logged():
	case e == InDoubt || m.Result.Keep:
		m.Result.Keep = true
		m.spawn(taskAdvance, "")
	case m.Result.Reason == LogFailed:
	case m.Withdrawn:
		// The central record, which is the log's entry, is deleted already.
	default:
		m.spawn(taskForget, "")
	}
}

// A beginTask writes the operation into the log.
type beginTask struct{ strand }

func (s beginTask) step(r Reply) {
	m := s.m
	switch s.Step {
	case stepStart:
		s.send(stepBegin, Command{Verb: Begin})
	default:
		if r.Class != Applied {
			m.LogUnsure = r.Class == Unknown
			s.fail(LogFailed)
			return
		}
		s.finish()
	}
}

func (j endJob) afterBegin() {
	m := j.m
	switch {
	case m.LogUnsure && m.Op.Action == Adopt:
		j.relinquish() // the entry may exist, and its recovery would run the adoption
	case m.Stopping:
		m.end(Aborted)
	case m.Op.Action == Add:
		m.enter(reserving)
		m.spawn(taskAcquire, m.Op.Target)
	case m.Op.Action == Adopt:
		adoptJob{m}.begin()
	default:
		findJob{m}.begin()
	}
}

// A logTask writes the log entry once. A failure before a commit stops the operation. After a
// commit, the entry stays open for a recovery. Conflict means that another coordinator has taken
// the entry over.
type logTask struct{ strand }

func (s logTask) step(r Reply) {
	m := s.m
	switch {
	case s.Step == stepStart && s.Task == taskForget:
		c := Command{Verb: Forget}
		if m.central() {
			c.Record, c.UID, c.RV = m.Op.ID, m.Decision.UID, m.Decision.RV
		}
		s.send(stepLog, c)
	case s.Step == stepStart:
		s.send(stepLog, Command{Verb: Advance})
	case r.Class == Applied:
		s.finish()
	case m.Phase == ending:
		s.finish()
		endJob{m}.unended(r)
	case r.Code == Conflict:
		s.finish()
		m.Result.Reason, m.Result.Peer = TakenOver, ""
	default:
		// If the result is unknown, the log may state that a commit may be sent, and a recovery
		// would send the commit. A recovery runs an adoption again in any case.
		m.LogUnsure = r.Class == Unknown || m.Op.Action == Adopt
		s.fail(LogFailed)
	}
}

// unended changes the ending to InDoubt if the entry could not be ended here and another process
// may bring the operation into effect: a coordinator that took the entry over, or a recovery. Such a
// process runs an adoption again. It sends the commit of an update, a removal or a move again
// if the entry states that a commit may have been sent. An add is committed only by its own process.
func (j endJob) unended(r Reply) {
	m := j.m
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
func (j endJob) relinquish() {
	m := j.m
	m.Result.Ending, m.Result.Keep = InDoubt, true
	m.Result.Primary = m.Record.Primary
	m.enter(ending)
}
