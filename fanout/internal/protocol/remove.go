// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// remove begins the removal of the primary that was found.
func (m *Machine) remove() {
	m.Op.UID = m.Primary.UID
	if !m.Primary.Leaving() {
		// If the removal was committed, the peer was restored from before it: commit it
		// again.
		m.Reverted = m.Reverted || m.Record.Committed
		m.Record.Committed = false
	}
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

// mark continues to the commit. It first writes to the log that a commit may be sent,
// unless the log of a recovered removal has that already. A removal that found its object
// Leaving, at a home that was replaced since, has sent no commit yet.
func (m *Machine) mark() {
	if m.Unsure && m.Record.Committing {
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
		case (r.Code == NotFound || r.Code == OK && o.UID != m.Record.Primary.UID) && m.Op.Mode == Everywhere:
			m.astray(Object{}, "")
			m.finish(i)
		case r.Code == OK && m.strayed(o):
			m.astray(o, s.Peer)
			m.finish(i)
		case r.Code == NotFound, r.Code == OK && o.UID != m.Record.Primary.UID:
			// A removal is by UID, and the object with that UID is gone.
			m.Primary.UID = ""
			m.Record.Committed = true
			m.finish(i)
		case r.Code != OK:
			m.ask(i, Reply{Code: Unavailable})
		case o.Leaving():
			m.Primary = o
			m.Record.Committed = true
			m.finish(i)
		case o.Stage == Reserved:
			m.uncommitted(i)
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
	o.Held = Held{}
	m.send(i, "put", Command{Verb: Put, Peer: m.Strands[i].Peer, Object: o, UID: o.UID, RV: o.RV})
}

// afterMark rolls a committed removal forward. If the object exists once, its guards are
// deleted after the finalizers of others are gone, so that the name is held while the
// object is torn down. If it exists everywhere, its replicas are deleted first, and the
// primary, the tombstone, last.
func (m *Machine) afterMark() {
	switch {
	case !m.Record.Committed && m.Op.Action == Sweep:
		// The next sweep judges it again.
		m.pend(m.Record.Primary.Peer)
		m.end(Done)
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

// await ends a removal that is committed and not complete. The log keeps the entry.
func (m *Machine) await() {
	m.Result.Keep = true
	m.end(Committed)
}
