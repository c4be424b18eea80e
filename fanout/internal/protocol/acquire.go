// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"cmp"
	"slices"
)

// claim returns the object that reserves the name in peer.
func (m *Machine) claim(peer string) Object {
	o := Object{
		Claimed: true,
		Stage:   Reserved,
		Claim: Claim{
			Operation:   m.Op.ID,
			Coordinator: m.Op.Coordinator,
			Digest:      m.Op.Digest,
			Start:       m.Op.Start,
			Epoch:       m.Set.Epoch,
			Primary:     peer == m.Op.Target,
			Peer:        peer,
			Target:      m.Op.Target,
		},
	}
	if !o.Claim.Primary {
		o.Claim.Of = m.Record.Primary
	}
	if m.Op.Action == Adopt {
		return m.waiting(o)
	}
	if m.Op.Mode == Everywhere {
		o.Revision = Revision{Number: 1, Operation: m.Op.ID, Digest: m.Op.Digest}
	}
	if !m.Op.Inert && (o.Claim.Primary || m.Op.Mode == Everywhere) {
		o.Payload = m.Op.Payload
	}
	return o
}

// stepAcquire takes the name in the strand's peer, with the primary in the target and with a
// secondary in every other peer.
func (m *Machine) stepAcquire(i int, r Reply) {
	s := &m.Strands[i]
	switch s.Step {
	case "", "retry":
		if m.Stopping || m.Expired {
			m.fail(i, Late)
			return
		}
		m.send(i, "create", Command{Verb: Create, Peer: s.Peer, Object: m.claim(s.Peer)})
	case "create":
		m.created(i, r)
	case "read":
		switch {
		case r.Code == OK:
			s.X = r.Object
			m.inspect(i)
		case r.Code == NotFound:
			m.recreate(i)
		case !m.again(i, "reread"):
			m.fail(i, Unreachable)
		}
	case "reread":
		m.send(i, "read", Command{Verb: Read, Peer: s.Peer})
	case "record":
		m.acquireRecord(i, s.Peer, s.X, r)
	case "primary record":
		m.acquireRecord(i, s.X.Of(m.Op.Mode).Peer, s.Y, r)
	case "decided":
		m.acquireDecided(i, r)
	case "judge":
		m.judged(i, m.verdict(s.X, r), r.Object)
	case "follow":
		if v := m.verdict(s.Y, r); v == owned || v == leaving {
			m.owner(i, s.Y.Of(m.Op.Mode).Peer, r.Object)
			return
		}
		m.linger(i)
	case "stray":
		v := judgeStray(m.Op.Mode, s.X, r)
		if at := s.X.Of(m.Op.Mode).Peer; v == undecidable && !slices.Contains(m.Op.Peers, at) {
			if m.Result.Reason == "" {
				m.Result.Reason, m.Result.Peer = UnknownOwner, at
			}
			m.fail(i, UnknownOwner)
			return
		}
		m.judged(i, v, Object{})
	case "fence":
		// Read again whatever the reply: a deleted primary makes its secondary dead, which the
		// next read finds.
		m.takeover(i, r)
	case "remove":
		if r.Class == Applied || r.Code == NotFound {
			m.recreate(i)
			return
		}
		m.takeover(i, r)
	}
}

// takeover reads again after an attempt to delete the object that holds the name. It fails the
// strand if the peer refuses the attempt or stays unavailable.
func (m *Machine) takeover(i int, r Reply) {
	switch {
	case r.Code == Denied, r.Code == NoSuchPeer:
		m.fail(i, Refused)
	case r.Code != Unavailable:
		m.send(i, "read", Command{Verb: Read, Peer: m.Strands[i].Peer})
	case !m.again(i, "reread"):
		m.fail(i, Unreachable)
	}
}

func (m *Machine) created(i int, r Reply) {
	s := &m.Strands[i]
	switch {
	case r.Class == Applied:
		s.X = r.Object
		m.hold(i)
	case r.Code == Exists:
		// It may be this operation's own create whose reply was lost.
		m.send(i, "read", Command{Verb: Read, Peer: s.Peer})
	case r.Class == Unknown:
		s.Unsure = true
		m.maybe(i)
		m.send(i, "read", Command{Verb: Read, Peer: s.Peer})
	case r.Code == Unavailable || r.Code == NoSuchPeer:
		if r.Code == NoSuchPeer || !m.again(i, "retry") {
			m.fail(i, Unreachable)
		}
	default:
		m.fail(i, Refused)
	}
}

// maybe records that a create in the strand's peer may be applied at any time.
func (m *Machine) maybe(i int) {
	s := &m.Strands[i]
	if s.Peer == m.Op.Target {
		m.Present, m.Adrift = true, true
		return
	}
	c := m.Claims[s.Peer]
	c.Unsure = true
	m.Claims[s.Peer] = c
}

// hold ends strand i after it has taken the name.
func (m *Machine) hold(i int) {
	s := &m.Strands[i]
	m.finish(i)
	if s.Peer == m.Op.Target {
		m.Present = true
		m.Primary = s.X
		m.Record.Primary = Ref{Peer: s.Peer, UID: s.X.UID}
		return
	}
	m.Claims[s.Peer] = Claimed{Object: s.X, Held: true, Unsure: s.Unsure}
}

func (m *Machine) recreate(i int) {
	s := &m.Strands[i]
	s.Turns++
	switch {
	case m.Stopping || m.Expired:
		m.fail(i, Late)
	case s.Turns > takeovers:
		m.fail(i, Contended)
	default:
		m.send(i, "create", Command{Verb: Create, Peer: s.Peer, Object: m.claim(s.Peer)})
	}
}

// inspect decides how to treat the object that already has the name.
func (m *Machine) inspect(i int) {
	s := &m.Strands[i]
	o := s.X
	switch {
	case m.guards(o) && o.Claim.Peer == s.Peer:
		m.hold(i)
	case m.guards(o), m.Op.Action == Adopt && o.UID == m.Record.Primary.UID:
		m.Result.Peers = []string{cmp.Or(o.Claim.Peer, m.Op.Target)}
		m.fail(i, OneCluster)
	case o.Claimed && o.Claim.Operation == m.Op.ID && m.Op.Action != Adopt:
		m.own(i)
	case (o.InEffect() || o.Leaving()) && o.Primary(m.Op.Mode):
		m.owner(i, s.Peer, o)
	case o.yielded(m.Op.Mode):
		m.owner(i, s.Peer, o)
	case o.Terminating:
		m.linger(i)
	case !o.Claimed:
		m.heldBy(i, HeldByOther, s.Peer, o)
	case o.Undecided():
		m.readRecord(i, "record", o)
	case o.Primary(m.Op.Mode):
		m.rival(i, s.Peer, o)
	default:
		m.send(i, "judge", Command{Verb: Read, Peer: o.Of(m.Op.Mode).Peer})
	}
}

// own handles an object of this operation: a create whose reply was lost, or the same cluster
// under a second peer name.
func (m *Machine) own(i int) {
	s := &m.Strands[i]
	switch {
	case s.X.Claim.Peer != s.Peer:
		m.Result.Peers = []string{s.X.Claim.Peer}
		m.fail(i, OneCluster)
	case s.X.Terminating, s.Peer == m.Op.Target && s.X.Stage != Reserved:
		m.hold(i)
		m.because(Fenced, s.Peer)
		m.Stopping = true
	case s.Peer != m.Op.Target && s.X.Claim.Of != m.Record.Primary:
		// A secondary is never bound to another primary: it may come from a create that was
		// sent twice.
		m.maybe(i)
		m.fail(i, Contended)
	default:
		m.hold(i)
	}
}

// judged acts on the verdict about the secondary that holds the name; y is its primary, if
// there is one.
func (m *Machine) judged(i int, v verdict, y Object) {
	s := &m.Strands[i]
	at := s.X.Of(m.Op.Mode).Peer
	switch v {
	case dead:
		m.send(i, "remove", Command{Verb: Delete, Peer: s.Peer, UID: s.X.UID, RV: s.X.RV})
	case pending:
		if y.Undecided() {
			s.Y = y
			m.readRecord(i, "primary record", y)
			return
		}
		m.rival(i, at, y)
	case moved:
		if y.yielded(m.Op.Mode) {
			m.owner(i, at, y)
			return
		}
		s.Y = y
		m.send(i, "follow", Command{Verb: Read, Peer: y.Of(m.Op.Mode).Peer})
	case fenced:
		m.linger(i)
	case owned, leaving:
		m.owner(i, at, y)
	case lost:
		m.heldBy(i, Suspect, s.Peer, s.X)
	case stray:
		m.send(i, "stray", Command{Verb: ReadPeerSet, Peer: s.Peer})
	default:
		if !m.again(i, "reread") {
			m.fail(i, Unreachable)
			if m.Result.Reason == Unreachable && m.Result.Peer == s.Peer {
				m.Result.Peer = at
			}
		}
	}
}

// linger waits for an object that is being deleted; a Hasty operation waits at most for a
// lease.
func (m *Machine) linger(i int) {
	s := &m.Strands[i]
	s.Tries++
	if m.Stopping || m.Expired || m.Op.Patience == Hasty && s.Tries > max(tries, m.Op.Lease) {
		m.heldBy(i, HeldByOther, s.Peer, s.X)
		return
	}
	m.pause(i, "reread")
}
