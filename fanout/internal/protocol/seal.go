// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// Once an object that exists once is committed, its guards are bound to it: one
// write each, which the caller does not wait for. From then on the object is
// durable: if the backup that its peer is restored from is older than the commit,
// the guards hold the name and say what was lost.

// unbound says whether guard x is to be bound to the committed primary.
func (m *Machine) unbound(x Object) bool {
	return m.Op.Mode == Once && x.Bound == (Ref{}) && x.Claim.Record == "" && m.Primary.Committed()
}

// bindsGuards says whether the operation has guards to bind.
func (m *Machine) bindsGuards() bool {
	return m.Op.Mode == Once && (m.Op.Action == Add || m.Op.Action == Adopt) && !m.central() &&
		m.Result.Reason != alreadyDone && m.Primary.Committed()
}

// bindGuards goes on after the commit has been answered.
func (m *Machine) bindGuards() {
	m.Promised = len(m.Result.Pending) == 0 && m.Result.Reason != alreadyDone
	m.Stopping = false
	m.Result.Durable = true
	m.enter(sealing)
	for _, p := range m.Op.Peers {
		if p != m.Record.Primary.Peer {
			m.spawn(jobSeal, p)
		}
	}
}

// Promise returns what the caller is told before the guards are bound, and whether
// that is known yet.
func (m *Machine) Promise() (Result, bool) {
	r := m.Result
	r.Ending, r.Primary, r.Pending = Done, m.Record.Primary, nil
	return r, m.Promised
}

// sendBound binds guard x of strand i.
func (m *Machine) sendBound(i int, x Object) {
	x.Bound = m.Record.Primary
	m.send(i, "bound", Command{Verb: Put, Peer: m.Strands[i].Peer, Object: x, UID: x.UID, RV: x.RV})
}

// believed binds guard X of strand i if the primary's peer is a full member after the
// primary was read there: one that was restored proves no commit until it is back.
func (m *Machine) believed(i int, r Reply, retry step) {
	switch {
	case r.Code == OK && r.PeerSet.current():
		m.sendBound(i, m.Strands[i].X)
	case r.Code == OK || !m.again(i, retry):
		m.Result.Durable = false
		m.unconfirmed(i)
	}
}

// wasBound takes the answer to that write. An API server whose schema is of an
// earlier release refuses it: then the guard stays as it is.
func (m *Machine) wasBound(i int, r Reply, retry step) {
	switch {
	case r.Class == Applied:
		m.finish(i)
	case r.Code == Denied:
		m.undurable(i)
	case !m.again(i, retry):
		m.Result.Durable = false
		m.unconfirmed(i)
	}
}

// undurable ends strand i, whose guard a sweep may bind later.
func (m *Machine) undurable(i int) {
	m.Result.Durable = false
	m.finish(i)
}

// stepSeal binds the guard in the strand's peer.
func (m *Machine) stepSeal(i int, r Reply) {
	s := &m.Strands[i]
	switch s.Step {
	case "":
		if c := m.Claims[s.Peer]; c.Held && m.unbound(c.Object) {
			m.sendBound(i, c.Object)
			return
		}
		m.send(i, "read", Command{Verb: Read, Peer: s.Peer})
	case "reread":
		m.send(i, "read", Command{Verb: Read, Peer: s.Peer})
	case "read":
		switch o := r.Object; {
		case r.Code == OK && o.Claimed && o.Of(Once) == m.Record.Primary && m.unbound(o):
			// It may be of a late create, after the removal.
			s.X = o
			m.send(i, "verify", Command{Verb: Read, Peer: m.Record.Primary.Peer})
		case r.Code == OK && o.Bound == m.Record.Primary:
			m.finish(i)
		case r.Code == OK, r.Code == NotFound, r.Code == Denied:
			// It was removed with its primary, or a sweep makes it anew.
			m.undurable(i)
		case !m.again(i, "reread"):
			m.Result.Durable = false
			m.unconfirmed(i)
		}
	case "verify":
		switch {
		case r.Code == OK && r.Object.UID == m.Record.Primary.UID && r.Object.Committed():
			m.send(i, "believed", Command{Verb: ReadPeerSet, Peer: m.Record.Primary.Peer})
		case r.Code == OK, r.Code == NotFound, r.Code == Denied:
			m.undurable(i)
		case !m.again(i, "reread"):
			m.Result.Durable = false
			m.unconfirmed(i)
		}
	case "believed":
		m.believed(i, r, "reread")
	case "bound":
		if r.Code == Conflict || r.Code == NotFound {
			m.send(i, "read", Command{Verb: Read, Peer: s.Peer})
			return
		}
		m.wasBound(i, r, "reread")
	}
}
