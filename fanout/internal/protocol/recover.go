// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// recover settles an operation whose process ended. An add that was not
// committed is never committed by it: it is fenced and cleaned. An update or a
// removal has no reservation that could be fenced, so that a commit which may
// have been sent could land at any later time: it is sent again, on the
// incarnation and, of an update, on the revision that it was meant for. What
// was committed goes forward.
func (m *Machine) recover() {
	if m.central() {
		m.recoverCentral()
		return
	}
	switch m.Op.Action {
	case Add:
		m.spawn(jobFind, m.Record.Primary.Peer)
	case Adopt:
		// Nothing of it could be taken down: it runs again.
		if m.Record.Committing {
			m.Op.UID = m.Record.Primary.UID
		}
		m.meet()
	default:
		if !m.Record.Committing && !m.Record.Committed {
			// Nothing was written before the commit.
			m.Result.Ending = Aborted
			m.because(Late, "")
			m.end(Aborted)
			return
		}
		m.Op.UID = m.Record.Primary.UID
		if m.Op.Action == Move {
			m.find()
			return
		}
		if m.Op.Mode == Everywhere && m.Record.Origin != "" && !slices.Contains(m.Op.Peers, m.Record.Primary.Peer) {
			// Its peer is gone for good: it may have another home.
			m.find()
			return
		}
		m.spawn(jobFind, m.Record.Primary.Peer)
	}
}

// afterRecovering decides by what stands in the primary's place.
func (m *Machine) afterRecovering() {
	if m.central() {
		m.afterRecord()
		return
	}
	unread := len(m.Result.Peers) > 0
	m.Stopping = false
	switch {
	case unread:
		m.because(Unreachable, m.Record.Primary.Peer)
		m.end(InDoubt)
	case m.Op.Action == Add:
		m.recoverAdd()
	case m.Astray:
		m.Record.Primary.UID = m.Op.UID
		m.regain()
	case m.Op.Mode == Everywhere && m.Record.Origin != "" && (!m.Present || m.Primary.UID != m.Op.UID):
		m.Record.Primary.UID = m.Op.UID
		m.find()
	case !m.Present || m.Primary.UID != m.Op.UID:
		m.Record.Primary.UID = m.Op.UID
		if m.Op.Action == Remove {
			m.confirm()
			return
		}
		if m.Record.Committed {
			// Removed by somebody since.
			m.end(Done)
			return
		}
		m.because(Missing, m.Record.Primary.Peer)
		m.end(Ended)
	case m.Op.Action == Remove:
		m.Result.Reason = ""
		m.remove()
	case m.Record.Committed:
		m.Result.Revision = m.Primary.Revision.Number
		m.bring()
	default:
		m.enter(committing)
		m.spawn(jobRevise, m.Record.Primary.Peer)
	}
}

// claimUnsure notes that every peer may hold a secondary, or get it yet.
func (m *Machine) claimUnsure() {
	for _, p := range m.Op.Peers {
		if p != m.Record.Primary.Peer {
			m.Claims[p] = Claimed{Unsure: true}
		}
	}
}

func (m *Machine) recoverAdd() {
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
		m.bring()
		return
	}
	if mine && o.Pending() && m.Record.Committed && o.UID == m.Record.Primary.UID {
		// Its peer was restored from before the commit, which the log knows of.
		m.Primary = o
		m.Record.Committed, m.Unsure, m.Reverted = false, true, true
		m.claimUnsure()
		m.enter(committing)
		m.commit()
		return
	}
	if m.Record.Committed {
		// Removed by somebody since, and so are its guards or replicas, or dead.
		m.end(Done)
		return
	}
	m.claimUnsure()
	m.Present, m.Adrift = true, true
	m.Primary = Object{}
	if mine {
		m.Primary = o
	}
	m.because(Late, m.Record.Primary.Peer)
	m.abort()
}
