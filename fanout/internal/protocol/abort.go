// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"maps"
	"slices"
)

// abort deletes the operation's own reservations: the primary first, so that no commit can land
// while the secondaries are being deleted.
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

// tookDown records that the primary's incarnation uid is deleted or terminating and was not
// committed. That proves the abort, unless the commit may have been sent to another
// incarnation: a create that was sent twice can be applied after the first object was committed
// and removed.
func (m *Machine) tookDown(uid string) {
	m.Result.Ending = Aborted
	if m.Unsure && uid != m.Record.Primary.UID {
		m.Result.Ending = Ended
	}
}

// gone records that the primary does not exist. If no commit was sent, that is an abort.
func (m *Machine) gone() {
	m.Result.Ending = Aborted
	if m.Unsure {
		m.Result.Ending = Ended
	}
}

// unfenced ends strand i although the primary may still exist.
func (m *Machine) unfenced(i int) {
	peer := m.Strands[i].Peer
	m.leave(peer)
	if m.Unsure {
		m.Result.Ending = InDoubt
		m.because(Unreachable, peer)
	}
	m.finish(i)
}

// leave records that an object of the operation may still appear in peer.
func (m *Machine) leave(peer string) {
	if m.Withdrawn {
		// Its record is gone, so an object that appears late is dead.
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

// clean deletes the operation's secondaries. A missing primary may also have been committed and
// then moved: an Everywhere operation that Ended searches for its home first.
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
			// Its first home was restored and lacks the object, which may have or get another
			// home.
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

// outlives reports whether o is in force although its first home no longer has the object: o
// names that home or the one that replaced it, and no person has released o.
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
