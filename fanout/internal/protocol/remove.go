// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// remove begins the removal of the primary that was found.
func (m *Machine) remove() {
	m.Op.UID = m.Primary.UID
	switch {
	case m.Primary.Leaving():
		m.Record.Committed = true
		m.afterMark()
	case m.Op.Holds:
		m.enter(listing)
		for _, p := range m.Op.Peers {
			m.spawn(jobList, p)
		}
	default:
		m.mark()
	}
}

// stepList lists what lives in the namespace in the strand's peer. What is only
// Reserved is settled first: it may be of a dead operation.
func (m *Machine) stepList(i int, r Reply) {
	s := &m.Strands[i]
	list := Command{Verb: List, Peer: s.Peer}
	switch s.Step {
	case "", "retry":
		m.send(i, "list", list)
	case "settle":
		// What is left belongs to somebody alive.
		alive := slices.ContainsFunc(r.Occupants, func(o Occupant) bool { return o.Stage != Reserved })
		switch {
		case r.Code == OK && len(r.Occupants) == 0:
			m.finish(i)
		case r.Code == OK && (alive || s.Tries >= m.patience() || m.Expired):
			m.Result.Occupants = append(m.Result.Occupants, r.Occupants...)
			m.finish(i)
		default:
			m.pause(i, "relist")
		}
	case "relist":
		m.send(i, "list", list)
	case "list":
		switch {
		case r.Code == NotFound:
			m.finish(i)
		case r.Code != OK:
			if r.Code != NoSuchPeer && r.Code != Denied && m.again(i, "retry") {
				return
			}
			if m.Record.Committed || m.Op.Patience == Onward {
				m.unconfirmed(i)
				return
			}
			m.fail(i, reasonOf(r))
		case len(r.Occupants) == 0:
			m.finish(i)
		case !slices.ContainsFunc(r.Occupants, func(o Occupant) bool { return o.Stage != Reserved }):
			s.Tries++
			m.send(i, "settle", Command{Verb: Settle, Peer: s.Peer})
		default:
			m.Result.Occupants = append(m.Result.Occupants, r.Occupants...)
			m.finish(i)
		}
	}
}

func reasonOf(r Reply) Reason {
	if r.Code == Denied {
		return Refused
	}
	return Unreachable
}

// afterListing commits the removal unless something still lives in the
// namespace.
func (m *Machine) afterListing() {
	switch {
	case len(m.Result.Occupants) > 0:
		m.because(Occupied, m.Result.Occupants[0].Peer)
		if m.Unsure {
			m.end(InDoubt)
			return
		}
		m.end(Aborted)
	case m.Stopping || m.Expired:
		m.because(Late, "")
		if m.Unsure {
			m.end(InDoubt)
			return
		}
		m.end(Aborted)
	default:
		m.Result.Pending = nil
		m.mark()
	}
}

// mark goes on to the commit. A recovered removal may have sent it already: the
// log says so, and only the primary tells.
func (m *Machine) mark() {
	if m.Unsure {
		m.enter(committing)
		m.spawn(jobMark, m.Record.Primary.Peer)
		return
	}
	m.Record.Committing = true
	m.enter(advancing)
	m.spawn(jobAdvance, "")
}

// stepMark commits the removal: the primary becomes Removing.
func (m *Machine) stepMark(i int, r Reply) {
	s := &m.Strands[i]
	switch s.Step {
	case "":
		m.sendMark(i)
	case "reread":
		m.send(i, "read", Command{Verb: Read, Peer: s.Peer})
	case "put":
		m.attempted(i, r)
	case "read":
		o := r.Object
		switch {
		case r.Code == NotFound, r.Code == OK && o.UID != m.Record.Primary.UID:
			// A removal is by UID: what it was to remove is gone.
			m.Primary.UID = ""
			m.Record.Committed = true
			m.finish(i)
		case r.Code != OK:
			m.ask(i, Reply{Code: Unavailable})
		case o.Leaving():
			m.Primary = o
			m.Record.Committed = true
			m.finish(i)
		case m.Expired && !m.Unsure:
			m.fail(i, Late)
		default:
			m.Primary = o
			m.sendMark(i)
		}
	}
}

func (m *Machine) sendMark(i int) {
	o := m.Primary
	o.Stage = Removing
	o.Removal = m.Op.ID
	m.send(i, "put", Command{Verb: Put, Peer: m.Strands[i].Peer, Object: o, UID: o.UID, RV: o.RV})
}

// afterMark goes forward only. The guards of an object that exists once go
// after the foreign finalizers, so that the name is held while the old object
// is still being torn down; the replicas of one that exists everywhere go
// first, and their primary, the tombstone, last.
func (m *Machine) afterMark() {
	switch {
	case !m.Record.Committed && m.Unsure:
		m.end(InDoubt)
	case !m.Record.Committed:
		m.end(Aborted)
	case m.Primary.UID == "":
		m.confirm()
	case m.Op.Mode == Once:
		m.Result.Reason = ""
		m.empty()
	default:
		m.Result.Reason = ""
		m.clear()
	}
}

func (m *Machine) empty() {
	m.Stopping = false
	m.enter(emptying)
	m.spawn(jobEmpty, m.Record.Primary.Peer)
}

// stepEmpty deletes the primary, which our finalizer holds, and waits until
// ours is the only one left.
func (m *Machine) stepEmpty(i int, r Reply) {
	s := &m.Strands[i]
	switch s.Step {
	case "":
		m.send(i, "delete", Command{Verb: Delete, Peer: s.Peer, UID: m.Primary.UID, RV: m.Primary.RV})
	case "delete":
		m.deleted(i, r)
	case "reread":
		m.send(i, "read", Command{Verb: Read, Peer: s.Peer})
	case "read":
		o := r.Object
		switch {
		case r.Code == NotFound, r.Code == OK && o.UID != m.Record.Primary.UID:
			m.Primary.UID = ""
			m.finish(i)
		case r.Code != OK:
			if !m.again(i, "reread") {
				m.unconfirmed(i)
			}
		case !o.Terminating:
			m.send(i, "delete", Command{Verb: Delete, Peer: s.Peer, UID: o.UID, RV: o.RV})
		case o.Foreign:
			if m.Expired || m.Resumed || m.Op.Action == Sweep {
				m.unconfirmed(i)
				return
			}
			m.pause(i, "reread")
		default:
			m.Primary = o
			m.finish(i)
		}
	}
}

// deleted looks at what a delete of a removal came to. The answer is not
// believed: what counts is what is read afterwards.
func (m *Machine) deleted(i int, r Reply) {
	switch {
	case r.Code == Denied, r.Code == NoSuchPeer:
		m.unconfirmed(i)
	case r.Code != Unavailable:
		m.send(i, "read", Command{Verb: Read, Peer: m.Strands[i].Peer})
	case !m.again(i, "reread"):
		m.unconfirmed(i)
	}
}

func (m *Machine) afterEmptying() {
	switch {
	case len(m.Result.Pending) > 0:
		m.await()
	case m.Primary.UID == "":
		m.end(Done)
	case m.Op.Mode == Once:
		m.clear()
	default:
		m.drop()
	}
}

// await ends a removal that goes on later.
func (m *Machine) await() {
	m.Result.Keep = true
	m.end(Committed)
}

// clear removes guards or replicas from all members as they are after the
// commit. A confirmation from before it does not count.
func (m *Machine) clear() {
	m.Stopping = false
	m.HaveSet = false
	m.enter(clearing)
	m.spawn(jobLook, m.Record.Primary.Peer)
	if m.Op.Holds {
		m.spawn(jobList, m.Record.Primary.Peer)
	}
}

// confirm takes away what still names a primary that is gone: guards in peers
// that could not be reached while it was being removed.
func (m *Machine) confirm() {
	m.Result.Reason, m.Result.Peer = "", ""
	m.Primary = Object{}
	m.Record.Committed = true
	m.Stopping = false
	m.enter(clearing)
	m.spread(jobClear)
}

// stepClear deletes the secondary of the removed object in the strand's peer,
// awaits its absence, and then lists the namespace there.
func (m *Machine) stepClear(i int, r Reply) {
	s := &m.Strands[i]
	switch s.Step {
	case "", "reread":
		m.send(i, "read", Command{Verb: Read, Peer: s.Peer})
	case "delete":
		m.deleted(i, r)
	case "read":
		o := r.Object
		mine := r.Code == OK && o.Claimed && !o.Primary(m.Op.Mode) &&
			(o.Of(m.Op.Mode) == m.Record.Primary || m.Op.Mode == Everywhere && o.Claim.Operation == m.Primary.Claim.Operation)
		switch {
		case r.Code == NotFound, r.Code == OK && !mine:
			m.cleared(i)
		case r.Code == Denied, r.Code == NoSuchPeer:
			m.unconfirmed(i)
		case r.Code != OK, o.Terminating:
			if !m.again(i, "reread") {
				m.unconfirmed(i)
			}
		default:
			m.send(i, "delete", Command{Verb: Delete, Peer: s.Peer, UID: o.UID, RV: o.RV})
		}
	}
}

func (m *Machine) cleared(i int) {
	peer := m.Strands[i].Peer
	m.finish(i)
	if m.Op.Holds && m.Primary.UID != "" {
		m.spawn(jobList, peer)
	}
}

func (m *Machine) afterClearing() {
	begun := slices.ContainsFunc(m.Strands, func(s Strand) bool { return s.Job == jobClear && s.Seq > 0 })
	switch {
	case m.Primary.UID == "" && len(m.Result.Pending) > 0:
		m.await()
	case m.Primary.UID == "":
		m.end(Done)
	case !begun && m.HaveSet && len(m.Set.reached()) > 1:
		m.spread(jobClear)
	case !begun && !m.HaveSet && len(m.Op.Peers) > 1:
		// Who the members are is not known, so nothing is confirmed.
		m.pend(m.Record.Primary.Peer)
		m.await()
	case len(m.Result.Occupants) > 0:
		m.because(Occupied, m.Result.Occupants[0].Peer)
		m.await()
	case m.Op.Mode == Everywhere && len(m.Result.Pending) > 0:
		// A replica that is not confirmed gone keeps its tombstone.
		m.await()
	case m.Op.Mode == Everywhere:
		m.release()
	default:
		// A guard that could not be reached is dead once its primary is gone.
		m.drop()
	}
}

// release lets the kind take away what it made in every peer.
func (m *Machine) release() {
	m.enter(releasing)
	m.spawn(jobRelease, m.Record.Primary.Peer)
	m.spread(jobRelease)
}

func (m *Machine) stepRelease(i int, r Reply) {
	s := &m.Strands[i]
	switch {
	case s.Step != "release":
		m.send(i, "release", Command{Verb: Release, Peer: s.Peer, Object: m.Primary})
	case r.Class == Applied:
		m.finish(i)
	case !m.again(i, "retry"):
		m.unconfirmed(i)
	}
}

func (m *Machine) afterReleasing() {
	if len(m.Result.Pending) > 0 {
		m.await()
		return
	}
	m.empty()
}

// drop takes our finalizer away, the very last step.
func (m *Machine) drop() {
	m.enter(dropping)
	m.spawn(jobDrop, m.Record.Primary.Peer)
}

func (m *Machine) stepDrop(i int, r Reply) {
	s := &m.Strands[i]
	switch s.Step {
	case "":
		m.sendDrop(i)
	case "put":
		if r.Class == Applied || r.Code == NotFound && r.Class == NotApplied {
			m.finish(i)
			return
		}
		m.deleted(i, r)
	case "reread":
		m.send(i, "read", Command{Verb: Read, Peer: s.Peer})
	case "read":
		switch {
		case r.Code == NotFound, r.Code == OK && r.Object.UID != m.Record.Primary.UID:
			m.finish(i)
		case r.Code != OK:
			if !m.again(i, "reread") {
				m.unconfirmed(i)
			}
		default:
			m.Primary = r.Object
			m.sendDrop(i)
		}
	}
}

func (m *Machine) sendDrop(i int) {
	o := m.Primary
	o.Finalizer = false
	m.send(i, "put", Command{Verb: Put, Peer: m.Strands[i].Peer, Object: o, UID: o.UID, RV: o.RV})
}

func (m *Machine) afterDropping() {
	if len(m.Result.Pending) > 0 {
		m.await()
		return
	}
	m.end(Done)
}
