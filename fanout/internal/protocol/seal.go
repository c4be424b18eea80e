// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// After the commit of an object that exists once, each of its guards is bound to it, by one
// write that the caller does not wait for. From then on the object is durable: if its peer
// is restored from a backup older than the commit, the guards hold the name and prove the
// loss.

// unbound reports whether guard x is to be bound to the committed primary.
func (m *Machine) unbound(x Object) bool {
	return m.Op.Mode == Once && x.Bound == (Ref{}) && x.Claim.Record == "" && m.Primary.Committed()
}

// bindsGuards reports whether the operation has guards to bind.
func (m *Machine) bindsGuards() bool {
	return m.Op.Mode == Once && (m.Op.Action == Add || m.Op.Action == Adopt) && !m.central() &&
		m.Result.Reason != alreadyDone && m.Primary.Committed()
}

// bindGuards begins to bind the guards after the commit is confirmed.
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

// Promise returns the result for the caller, before the guards are bound, and whether it is
// known yet.
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

// believed binds guard X of strand i if r, read after the primary, is the PeerSet of a full
// member. A restored peer proves no commit until it is back.
func (m *Machine) believed(i int, r Reply, retry step) {
	switch {
	case r.Code == OK && r.PeerSet.current():
		m.sendBound(i, m.Strands[i].X)
	case r.Code == OK || !m.again(i, retry):
		m.Result.Durable = false
		m.unconfirmed(i)
	}
}

// wasBound handles the reply to the write of sendBound. An API server with the schema of an
// earlier release rejects the write; the guard stays unbound then.
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

// undurable ends strand i without a bound guard. A sweep may bind it later.
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
			// The guard may come from a late create, after the removal.
			s.X = o
			m.send(i, "verify", Command{Verb: Read, Peer: m.Record.Primary.Peer})
		case r.Code == OK && o.Bound == m.Record.Primary:
			m.finish(i)
		case r.Code == OK, r.Code == NotFound, r.Code == Denied:
			// The guard was removed with its primary, or a sweep creates it again.
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
