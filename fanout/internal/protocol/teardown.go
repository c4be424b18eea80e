// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

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
		s.Fresh = r.Class == Applied
		m.deleted(i, r)
	case "reread":
		m.send(i, "read", Command{Verb: Read, Peer: s.Peer})
	case "read":
		o := r.Object
		changed := m.Op.Mode == Everywhere && !(s.Fresh && o.Terminating) && o.RV != m.Primary.RV
		s.Fresh = false
		switch {
		case r.Code == NotFound, r.Code == OK && o.UID != m.Record.Primary.UID:
			m.Primary.UID = ""
			m.finish(i)
		case r.Code != OK:
			if !m.again(i, "reread") {
				m.unconfirmed(i)
			}
		case !o.Leaving():
			// The peer was restored from before the removal, which runs again.
			m.unconfirmed(i)
		case changed:
			m.changed(i, o)
		case !o.Terminating:
			m.send(i, "delete", Command{Verb: Delete, Peer: s.Peer, UID: o.UID, RV: o.RV})
		case o.Foreign:
			if m.Expired || m.Resumed || m.Op.Action == Sweep {
				m.unconfirmed(i)
				return
			}
			m.Primary = o
			m.pause(i, "reread")
		default:
			m.Primary = o
			m.finish(i)
		}
	}
}

// changed ends strand i: primary o has changed since its secondaries were deleted. Its peer
// may have been restored from before the removal, secondaries created again, and the
// primary removed once more.
func (m *Machine) changed(i int, o Object) {
	m.Primary = o
	m.Changed = true
	m.finish(i)
}

// clearAgain deletes the secondaries again if a strand found the primary changed. It
// reports whether it did.
func (m *Machine) clearAgain() bool {
	if !m.Changed {
		return false
	}
	m.Changed = false
	if m.Turns++; m.Turns > takeovers {
		m.pend(m.Record.Primary.Peer)
		m.await()
		return true
	}
	m.clear()
	return true
}

// deleted handles the reply to a delete of a removal. The reply proves nothing, so the
// strand reads the object next.
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
	case m.Primary.UID == "" && m.Op.Mode == Once && m.Op.Action == Remove:
		// Another process of this removal may have left guards behind for the log's entry.
		m.confirm()
	case m.Primary.UID == "":
		m.end(Done)
	case m.Op.Mode == Once:
		m.clear()
	case m.clearAgain():
	default:
		m.drop()
	}
}

// release has the kind delete the objects that it made in every peer.
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

// drop removes our finalizer from the primary, the last step of a removal.
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
		case !r.Object.Leaving(), !r.Object.Terminating:
			// The peer was restored from before the removal, which runs again.
			m.unconfirmed(i)
		case r.Object.RV != m.Primary.RV:
			m.changed(i, r.Object)
		default:
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
	switch {
	case len(m.Result.Pending) > 0:
		m.await()
	case m.clearAgain():
	default:
		m.end(Done)
	}
}
