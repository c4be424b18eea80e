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
	if m.Op.Action == Adopt {
		m.unadopted()
		return
	}
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
		m.takeDown(i, m.Primary)
	case "reread":
		m.send(i, "read", Command{Verb: Read, Peer: s.Peer})
	case "delete":
		switch {
		case r.Class == Applied:
			m.tookDown(s.X.UID)
			m.finish(i)
		case !m.reread(i, r, tries):
			m.unfenced(i)
		}
	case "read":
		o := r.Object
		switch {
		case r.Code == NotFound, r.Code == OK && o.Claim.Operation != m.Op.ID:
			m.gone()
			m.finish(i)
		case r.Code != OK:
			if !m.reread(i, Reply{Code: Unavailable}, tries) {
				m.unfenced(i)
			}
		case o.Stage != Reserved:
			m.Primary = o
			m.Record.Primary.UID = o.UID
			m.Record.Committed = true
			m.finish(i)
		case o.Terminating:
			m.tookDown(o.UID)
			m.finish(i)
		default:
			m.takeDown(i, o)
		}
	}
}

// takeDown deletes the reservation o.
func (m *Machine) takeDown(i int, o Object) {
	m.Strands[i].X = o
	m.send(i, "delete", Command{Verb: Delete, Peer: m.Strands[i].Peer, UID: o.UID, RV: o.RV})
}

// tookDown notes that the primary's incarnation uid is deleted, or about to be,
// without having been committed. That proves the abort, unless the commit that
// may have been sent was of another incarnation: a create that was sent twice
// may come to life after the first one was committed and removed.
func (m *Machine) tookDown(uid string) {
	m.Result.Ending = Aborted
	if m.Unsure && uid != m.Record.Primary.UID {
		m.Result.Ending = Ended
	}
}

// gone notes that the primary is not there. Without a commit attempt that is an
// abort.
func (m *Machine) gone() {
	m.Result.Ending = Aborted
	if m.Unsure {
		m.Result.Ending = Ended
	}
}

// unfenced ends strand i with the primary where it may be.
func (m *Machine) unfenced(i int) {
	peer := m.Strands[i].Peer
	m.leave(peer)
	if m.Unsure {
		m.Result.Ending = InDoubt
		m.because(Unreachable, peer)
	}
	m.finish(i)
}

// leave notes that something of the operation may yet appear in peer.
func (m *Machine) leave(peer string) {
	if m.Withdrawn {
		// Whatever appears is dead: its record is gone.
		return
	}
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

// clean removes the operation's secondaries. That the primary is gone may also
// mean that it was committed and that its home has moved.
func (m *Machine) clean() {
	if m.central() && m.Op.Mode == Everywhere && m.Result.Ending == Ended && !m.Searched {
		m.inquire()
		return
	}
	if m.Op.Mode == Everywhere && m.Result.Ending == Ended && !m.Searched {
		m.Record.Origin, m.Searched = m.Op.ID, true
		m.find()
		return
	}
	if m.Adrift {
		m.leave(m.Record.Primary.Peer)
	}
	m.enter(cleaning)
	for _, p := range slices.Sorted(maps.Keys(m.Claims)) {
		m.spawn(jobClean, p)
	}
}

func (m *Machine) stepClean(i int, r Reply) {
	s := &m.Strands[i]
	c := m.Claims[s.Peer]
	if c.Unsure {
		m.leave(s.Peer)
	}
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
		switch {
		case r.Class == Applied:
			m.finish(i)
		case !m.reread(i, r, tries):
			m.leave(s.Peer)
			m.unconfirmed(i)
		}
	case "read":
		switch {
		case r.Code == OK && r.Object.Claim.Operation == m.Op.ID && r.Object.Pending() && m.ours(r.Object):
			m.send(i, "delete", Command{Verb: Delete, Peer: s.Peer, UID: r.Object.UID, RV: r.Object.RV})
		case r.Code == OK && m.Op.Mode == Everywhere && r.Object.Claim.Operation == m.Op.ID && r.Object.outlives():
			// Its home has forgotten it: it may have, or get, another one.
			m.Result.Ending, m.Result.Reason, m.Result.Peer = InDoubt, Suspect, s.Peer
			m.Result.Holder, m.Result.HolderAt = r.Object, s.Peer
			m.finish(i)
		case r.Code == OK, r.Code == NotFound:
			m.finish(i)
		case !m.reread(i, Reply{Code: Unavailable}, tries):
			m.leave(s.Peer)
			m.unconfirmed(i)
		}
	}
}

// outlives says that o is in force though its first home forgot it: it names that one, or
// the one that it got instead. A person may have released it.
func (o Object) outlives() bool {
	return !o.Released && (o.Evidence(Everywhere) || o.inForce() && o.Home.Term > 0 && o.Home.Term%generation == 0)
}

func (m *Machine) afterCleaning() {
	switch {
	case m.Result.Reason == alreadyDone:
		m.alreadyDone()
	case m.Result.Ending == Running:
		m.end(Aborted)
	default:
		m.end(m.Result.Ending)
	}
}
