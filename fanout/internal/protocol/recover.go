// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// A recoverJob settles an operation whose process ended.
type recoverJob struct{ m *Machine }

// begin begins to settle an operation whose process ended. Recovery never commits an add that was
// not committed: it deletes the add's reservation, which aborts the add, and then its secondaries. An
// update or a removal has no reservation, so a commit that may have been sent could be applied later.
// Recovery sends such a commit again, to the object with the same UID and, for an update, on the
// same revision. It rolls a committed operation forward.
func (j recoverJob) begin() {
	m := j.m
	if m.central() {
		centralJob{m}.recover()
		return
	}
	switch m.Op.Action {
	case Add:
		m.spawn(taskFind, m.Record.Primary.Peer)
	case Adopt:
		// An adoption has nothing to roll back: it runs again.
		if m.Record.Committing {
			m.Op.UID = m.Record.Primary.UID
		}
		adoptJob{m}.begin()
	default:
		if !m.Record.Committing && !m.Record.Committed {
			// No commit was sent, so there is nothing to finish or undo.
			m.Result.Ending = Aborted
			m.because(Late, "")
			m.end(Aborted)
			return
		}
		m.Op.UID = m.Record.Primary.UID
		if m.Op.Action == Move {
			findJob{m}.begin()
			return
		}
		if m.Op.Mode == Everywhere && m.Record.Origin != "" && !slices.Contains(m.Op.Peers, m.Record.Primary.Peer) {
			// The primary's peer is no longer configured: the object may have another home.
			findJob{m}.begin()
			return
		}
		m.spawn(taskFind, m.Record.Primary.Peer)
	}
}

// afterRecovering decides how the operation ends by the object that now has the primary's name in the
// primary's peer.
func (j recoverJob) afterRecovering() {
	m := j.m
	if m.central() {
		centralJob{m}.afterRecord()
		return
	}
	unread := len(m.Result.Peers) > 0
	m.Stopping = false
	switch {
	case unread:
		m.because(Unreachable, m.Record.Primary.Peer)
		m.end(InDoubt)
	case m.Op.Action == Add:
		j.recoverAdd()
	case m.Astray:
		m.Record.Primary.UID = m.Op.UID
		findJob{m}.regain()
	case m.Op.Mode == Everywhere && m.Record.Origin != "" && (!m.Present || m.Primary.UID != m.Op.UID):
		m.Record.Primary.UID = m.Op.UID
		findJob{m}.begin()
	case !m.Present || m.Primary.UID != m.Op.UID:
		m.Record.Primary.UID = m.Op.UID
		if m.Op.Action == Remove {
			removeJob{m}.clearAfterPrimary()
			return
		}
		if m.Record.Committed {
			// Another operation removed the object since.
			m.end(Done)
			return
		}
		m.because(Missing, m.Record.Primary.Peer)
		m.end(Ended)
	case m.Op.Action == Remove:
		m.Result.Reason = ""
		removeJob{m}.begin()
	case m.Record.Committed:
		m.Result.Revision = m.Primary.Revision.Number
		bringJob{m}.begin()
	default:
		m.enter(committing)
		m.spawn(taskRevise, m.Record.Primary.Peer)
	}
}

// claimUnsure marks every configured peer except the primary's: it may hold a secondary, now or
// later.
func (j recoverJob) claimUnsure() {
	m := j.m
	for _, p := range m.Op.Peers {
		if p != m.Record.Primary.Peer {
			m.Claims[p] = Claimed{Unsure: true}
		}
	}
}

func (j recoverJob) recoverAdd() {
	m := j.m
	m.Astray, m.Lead = false, Object{}
	o := m.Primary
	if !m.Present {
		o = m.Result.Holder
	}
	m.Result.Holder, m.Result.HolderAt = Object{}, ""
	mine := o.Claimed && o.Claim.Operation == m.Op.ID && o.Claim.Primary
	if mine && o.Stage != Reserved {
		m.Primary = o
		m.Record.Committed = true
		m.Result.Revision = o.Revision.Number
		bringJob{m}.begin()
		return
	}
	if mine && o.Pending() && m.Record.Committed && o.UID == m.Record.Primary.UID {
		// The log has the commit, so the peer was restored to a state from before the commit.
		m.Primary = o
		m.Record.Committed, m.Unsure, m.Reverted = false, true, true
		j.claimUnsure()
		m.enter(committing)
		commitJob{m}.begin()
		return
	}
	if m.Record.Committed {
		// Another operation removed the object since. A sweep (a check and repair of all peers)
		// deletes secondaries that are left.
		m.end(Done)
		return
	}
	j.claimUnsure()
	m.Present, m.Adrift = true, true
	m.Primary = Object{}
	if mine {
		m.Primary = o
	}
	m.because(Late, m.Record.Primary.Peer)
	abortJob{m}.begin()
}
