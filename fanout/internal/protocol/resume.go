// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// afterFollowing continues with the primary that was found.
func (j findJob) afterFollowing() {
	m := j.m
	lost := !m.Present && !m.Lead.Claimed
	m.Lead, m.LeadAt = Object{}, ""
	switch {
	case m.Present:
		m.Stopping = false
		j.excuse()
		j.resume()
	case lost && !m.Searched && (m.Record.Origin != "" || m.Op.logged() || m.Op.Action == Move):
		// The former home that led to the primary may be gone, because all other peers name the new
		// home: search all peers.
		m.Searched = true
		j.begin()
	case lost:
		j.nowhere()
	default:
		j.unfound()
	}
}

// excuse clears from the result why earlier searches did not find the primary.
func (j findJob) excuse() {
	m := j.m
	if m.Result.Reason != alreadyDone {
		m.Result.Reason, m.Result.Peer, m.Result.Problem = "", "", ""
		m.Result.Holder, m.Result.HolderAt = Object{}, ""
	}
}

// resume continues the operation at the primary that was found, with the job that follows from its
// action and from its progress in the record.
func (j findJob) resume() {
	m := j.m
	m.HaveSet = false
	first := m.Record.Origin == ""
	m.Record.Origin = m.Primary.Claim.Operation
	switch {
	case first && j.unnamed():
		m.because(Missing, m.Record.Primary.Peer)
		m.end(Aborted)
	case m.Op.Action == Sweep, m.Op.Action == Succeed, m.Op.Action == Cover:
		j.maintain()
	case m.Result.Reason == alreadyDone && m.Op.Action == Add && !(m.Primary.Committed() && addJob{m}.satisfies(m.Primary)):
		addJob{m}.heldAfterAll(m.Primary, m.Record.Primary.Peer)
	case m.Result.Reason == alreadyDone:
		bringJob{m}.begin()
	case m.Op.Action == Move:
		moveJob{m}.begin()
	case m.Op.Action == Remove:
		removeJob{m}.begin()
	case m.Record.Committed, m.Op.Action == Add:
		j.committed()
	case m.Record.Committing:
		m.enter(committing)
		m.spawn(taskRevise, m.Record.Primary.Peer)
	default:
		updateJob{m}.begin()
	}
}

// maintain continues an operation that commits nothing of its own.
func (j findJob) maintain() {
	m := j.m
	switch {
	case m.Op.Action == Cover:
		coverJob{m}.follow()
	case m.Primary.Leaving():
		m.Record.Committed = true
		removeJob{m}.afterMark()
	case m.Op.Action == Sweep && m.Primary.Requested():
		holdJob{m}.begin()
	default:
		m.Record.Committed = true
		bringJob{m}.begin()
	}
}

// committed brings a committed add or update to the other peers.
func (j findJob) committed() {
	m := j.m
	m.Result.Revision = m.Primary.Revision.Number
	if m.Record.Committed && m.Op.Action == Update && !(updateJob{m}).remembered() {
		// The update was committed at a home that was replaced, and is lost with that home.
		m.because(Outdated, m.Record.Primary.Peer)
		m.end(Ended)
		return
	}
	m.Record.Committed = true
	m.Result.Ending = Running
	bringJob{m}.begin()
}

// nowhere ends an operation whose object is in no peer: as Done if it was committed or has no log entry, as
// Ended if a commit may have been applied, and else as Aborted. An add or a removal first deletes the
// secondaries that are left.
func (j findJob) nowhere() {
	m := j.m
	switch {
	case !m.Op.logged() && m.Op.Action != Move:
		m.end(Done)
	case m.Result.Reason == alreadyDone && m.Op.Action == Add:
		addJob{m}.heldAfterAll(m.Result.Holder, m.Result.HolderAt)
	case m.Result.Reason == alreadyDone:
		m.end(AlreadyDone)
	case m.Op.Action == Remove && m.Record.Primary.UID != "":
		removeJob{m}.clearAfterPrimary()
	case m.central() && m.Record.Committed:
		centralJob{m}.lost()
	case m.Record.Committed && (m.Op.Action != Move || m.Record.Arrived):
		// Another operation removed the object since.
		m.end(Done)
	case m.Op.Action == Add:
		abortJob{m}.clean()
	case m.Unsure:
		m.because(Missing, m.Record.Primary.Peer)
		m.end(Ended)
	default:
		m.because(Missing, m.Record.Primary.Peer)
		m.end(Aborted)
	}
}

// unfound ends an operation whose object may be in a peer that did not answer.
func (j findJob) unfound() {
	m := j.m
	m.because(Unreachable, m.Record.Primary.Peer)
	switch {
	case !m.Op.logged() && m.Op.Action != Move:
		m.pend(m.Result.Peer)
		m.end(Done)
	case m.Result.Reason == alreadyDone && m.Op.Action == Add && m.Result.Holder.yielded(m.Op.Mode):
		m.Result.Reason, m.Result.Peer = Unreachable, m.Result.Holder.Home.Peer
		m.end(Aborted)
	case m.Result.Reason == alreadyDone:
		m.pend(m.Record.Primary.Peer)
		m.end(AlreadyDone)
	case m.Record.Committed:
		m.pend(m.Result.Peer)
		m.Result.Keep = true
		m.end(Committed)
	case m.Unsure:
		m.end(InDoubt)
	default:
		m.end(Aborted)
	}
}
