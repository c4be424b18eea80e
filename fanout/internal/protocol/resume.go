// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// afterFollowing continues with the primary that was found.
func (m *Machine) afterFollowing() {
	lost := !m.Present && !m.Lead.Claimed
	m.Lead, m.LeadAt = Object{}, ""
	switch {
	case m.Present:
		m.Stopping = false
		m.excuse()
		m.resume()
	case lost && !m.Searched && (m.Record.Origin != "" || m.Op.logged() || m.Op.Action == Move):
		// The former home that led to it may be gone, once all others named the new home.
		m.Searched = true
		m.find()
	case lost:
		m.nowhere()
	default:
		m.unfound()
	}
}

// excuse clears the reasons why the primary was not found.
func (m *Machine) excuse() {
	if m.Result.Reason != alreadyDone {
		m.Result.Reason, m.Result.Peer, m.Result.Problem = "", "", ""
		m.Result.Holder, m.Result.HolderAt = Object{}, ""
	}
}

// resume continues the operation at the primary that was found.
func (m *Machine) resume() {
	m.HaveSet = false
	first := m.Record.Origin == ""
	m.Record.Origin = m.Primary.Claim.Operation
	switch {
	case first && m.unnamed():
		m.because(Missing, m.Record.Primary.Peer)
		m.end(Aborted)
	case (m.Op.Action == Sweep || m.Op.Action == Succeed) && m.Primary.Leaving():
		m.Record.Committed = true
		m.afterMark()
	case m.Op.Action == Sweep && m.Primary.Requested():
		m.consider()
	case m.Op.Action == Cover:
		m.enter(covering)
		for _, p := range m.Op.Into {
			if p != m.Record.Primary.Peer && !m.Primary.Leaving() {
				m.spawn(jobBring, p)
			}
		}
	case m.Op.Action == Sweep, m.Op.Action == Succeed:
		m.Record.Committed = true
		m.bring()
	case m.Result.Reason == alreadyDone && m.Op.Action == Add && !(m.Primary.Committed() && m.satisfies(m.Primary)):
		m.heldAfterAll(m.Primary, m.Record.Primary.Peer)
	case m.Result.Reason == alreadyDone:
		m.bring()
	case m.Op.Action == Move:
		m.elect()
	case m.Op.Action == Remove:
		m.remove()
	case m.Record.Committed && m.Op.Action == Update && !m.remembered():
		// It was committed at a home that was replaced, and is lost with it.
		m.Result.Revision = m.Primary.Revision.Number
		m.because(Outdated, m.Record.Primary.Peer)
		m.end(Ended)
	case m.Record.Committed, m.Op.Action == Add:
		m.Record.Committed = true
		m.Result.Ending = Running
		m.Result.Revision = m.Primary.Revision.Number
		m.bring()
	case m.Record.Committing:
		m.enter(committing)
		m.spawn(jobRevise, m.Record.Primary.Peer)
	default:
		m.revise()
	}
}

// nowhere ends an operation whose object is in no peer.
func (m *Machine) nowhere() {
	switch {
	case !m.Op.logged() && m.Op.Action != Move:
		m.end(Done)
	case m.Result.Reason == alreadyDone && m.Op.Action == Add:
		m.heldAfterAll(m.Result.Holder, m.Result.HolderAt)
	case m.Result.Reason == alreadyDone:
		m.end(AlreadyDone)
	case m.Op.Action == Remove && m.Record.Primary.UID != "":
		m.confirm()
	case m.central() && m.Record.Committed:
		m.lost()
	case m.Record.Committed && (m.Op.Action != Move || m.Record.Arrived):
		// Another operation removed the object since.
		m.end(Done)
	case m.Op.Action == Add:
		m.clean()
	case m.Unsure:
		m.because(Missing, m.Record.Primary.Peer)
		m.end(Ended)
	default:
		m.because(Missing, m.Record.Primary.Peer)
		m.end(Aborted)
	}
}

// unfound ends an operation whose object may be in a peer that did not answer.
func (m *Machine) unfound() {
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
