// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"maps"
	"slices"
)

// abort takes the operation's own reservations down: the primary first, so that
// nothing can be committed any more when the secondaries go.
func (m *Machine) abort() {
	m.Stopping = true
	if !m.Present {
		m.clean()
		return
	}
	m.enter(fencing)
	m.spawn(jobFence, m.Record.Primary.Peer)
}

func (m *Machine) stepFence(i int, r Reply) {
	s := &m.Strands[i]
	switch s.Step {
	case "":
		if m.Primary.UID == "" {
			m.send(i, "read", Command{Verb: Read, Peer: s.Peer})
			return
		}
		m.send(i, "delete", Command{Verb: Delete, Peer: s.Peer, UID: m.Primary.UID, RV: m.Primary.RV})
	case "reread":
		m.send(i, "read", Command{Verb: Read, Peer: s.Peer})
	case "delete":
		if r.Class == Applied {
			m.Result.Ending = Aborted
			m.finish(i)
			return
		}
		m.send(i, "read", Command{Verb: Read, Peer: s.Peer})
	case "read":
		o := r.Object
		switch {
		case r.Code == NotFound, r.Code == OK && o.Claim.Operation != m.Op.ID:
			m.gone(s.Peer)
			m.finish(i)
		case r.Code != OK:
			if s.Tries++; s.Tries < tries {
				m.pause(i, "reread")
				return
			}
			m.leave(s.Peer)
			if m.Unsure {
				m.Result.Ending = InDoubt
				m.because(Unreachable, s.Peer)
			}
			m.finish(i)
		case o.Stage != Reserved:
			m.Primary = o
			m.Record.Primary.UID = o.UID
			m.Record.Committed = true
			m.finish(i)
		case o.Terminating:
			m.Result.Ending = Aborted
			m.finish(i)
		default:
			m.send(i, "delete", Command{Verb: Delete, Peer: s.Peer, UID: o.UID, RV: o.RV})
		}
	}
}

// gone notes that the primary is not there. Without a commit attempt that is an
// abort; a create of unknown result may still be applied, and is then fenced by
// whoever meets it.
func (m *Machine) gone(peer string) {
	if m.Primary.UID == "" {
		m.leave(peer)
	}
	m.Result.Ending = Aborted
	if m.Unsure {
		m.Result.Ending = Ended
	}
}

// leave notes that something of the operation may yet appear in peer.
func (m *Machine) leave(peer string) {
	m.Result.Keep = true
	if !slices.Contains(m.Record.Leftover, peer) {
		m.Record.Leftover = append(m.Record.Leftover, peer)
	}
}

func (m *Machine) afterFencing() {
	switch {
	case m.Record.Committed:
		m.Result.Ending, m.Result.Reason = Running, ""
		m.bring()
	case m.Result.Ending == InDoubt:
		m.end(InDoubt)
	default:
		m.clean()
	}
}

// clean removes the operation's secondaries.
func (m *Machine) clean() {
	m.enter(cleaning)
	for _, p := range slices.Sorted(maps.Keys(m.Claims)) {
		m.spawn(jobClean, p)
	}
}

func (m *Machine) stepClean(i int, r Reply) {
	s := &m.Strands[i]
	c := m.Claims[s.Peer]
	switch s.Step {
	case "":
		if !c.Held {
			m.send(i, "read", Command{Verb: Read, Peer: s.Peer})
			return
		}
		m.send(i, "delete", Command{Verb: Delete, Peer: s.Peer, UID: c.Object.UID, RV: c.Object.RV})
	case "reread":
		m.send(i, "read", Command{Verb: Read, Peer: s.Peer})
	case "delete":
		if r.Class == Applied {
			m.finish(i)
			return
		}
		m.send(i, "read", Command{Verb: Read, Peer: s.Peer})
	case "read":
		switch {
		case r.Code == OK && r.Object.Claim.Operation == m.Op.ID && !r.Object.Terminating && !r.Object.Primary(m.Op.Mode):
			m.send(i, "delete", Command{Verb: Delete, Peer: s.Peer, UID: r.Object.UID, RV: r.Object.RV})
		case r.Code == OK:
			m.finish(i)
		case r.Code == NotFound:
			if c.Unsure {
				m.leave(s.Peer)
			}
			m.finish(i)
		default:
			if s.Tries++; s.Tries < tries {
				m.pause(i, "reread")
				return
			}
			m.leave(s.Peer)
			m.finish(i)
		}
	}
}

func (m *Machine) afterCleaning() {
	switch {
	case m.Result.Reason == alreadyDone && m.Op.Mode == Everywhere:
		// The rival's commit is what was asked for: help it to every peer.
		m.Primary = m.Result.Holder
		m.Record.Primary = Ref{Peer: m.Result.HolderAt, UID: m.Primary.UID}
		m.Result.Revision = m.Primary.Revision.Number
		m.Claims = map[string]Claimed{}
		m.bring()
	case m.Result.Reason == alreadyDone:
		m.Record.Primary = Ref{Peer: m.Result.HolderAt, UID: m.Result.Holder.UID}
		m.end(AlreadyDone)
	case m.Result.Ending == Running:
		m.end(Aborted)
	default:
		m.end(m.Result.Ending)
	}
}
