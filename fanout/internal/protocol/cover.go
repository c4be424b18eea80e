// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// cover ensures that the primary Op.Met has its secondaries in the peers Into: the newcomers,
// or all members if its own peer is a newcomer.
func (m *Machine) cover() {
	m.Primary = m.Op.Met
	if m.Op.Mode == Everywhere && m.Primary.Claimed && !m.Primary.Primary(Everywhere) {
		// It is moving: a newcomer must copy it from its present home.
		m.astray(m.Primary, m.Op.Target)
		m.regain()
		return
	}
	if !m.Primary.Claimed {
		// A secondary of an unclaimed object is valid.
		m.Primary.Claim = Claim{Operation: adoptionOf(m.Op.Met.UID), Coordinator: m.Op.Coordinator, Target: m.Op.Target}
	}
	m.Record.Primary = Ref{Peer: m.Op.Target, UID: m.Op.Met.UID}
	m.enter(covering)
	for _, p := range m.Op.Into {
		switch {
		case p == m.Op.Target:
		case m.Op.Mode == Everywhere && m.Op.Met.InEffect():
			m.spawn(jobBring, p)
		default:
			m.spawn(jobGuard, p)
		}
	}
}

// outlived reports whether the secondary in the strand's peer may have been judged by an
// earlier membership. A secondary that names a departed peer is dead; once that peer has
// rejoined it is alive, but a process that judged it before may still be about to delete it.
func (m *Machine) outlived(i int) bool { return m.Op.Action == Cover && !m.Strands[i].Fresh }

// renew writes a secondary again with a new heartbeat only, which voids any delete that was
// decided on its earlier version.
func (m *Machine) renew(i int) {
	s := &m.Strands[i]
	x := s.X
	x.Heartbeat++
	m.send(i, "renew", Command{Verb: Put, Peer: s.Peer, Object: x, UID: x.UID, RV: x.RV})
}

// obstructed ends strand i because o in peer has the name that the strand is to guard or to
// elect. The operation reports o as the holder: a move always, a cover only if o is unclaimed or
// in effect, because any other o may still disappear by itself.
func (m *Machine) obstructed(i int, o Object, peer string) {
	lasts := !o.Claimed || o.Primary(m.Op.Mode) && o.InEffect()
	if m.Result.HolderAt == "" && o.UID != "" && (m.Phase == electing || m.Op.Action == Cover && lasts) {
		m.Result.Holder, m.Result.HolderAt = o, peer
	}
	m.unconfirmed(i)
}

// unproved ends strand i, whose peer holds no secondary of the primary: the primary may have
// been removed after the state to which its peer was restored.
func (m *Machine) unproved(i int) {
	m.Result.Unproved = append(m.Result.Unproved, m.Strands[i].Peer)
	m.finish(i)
}

// rivaled ends strand i because secondary X of another primary has the name; y is the reply to
// the read of the other primary. If one of the two primaries is committed, a later round finds
// it alone. If the restored peer no longer has X's primary either, X's primary is newer than
// the object to prove, which stays unproved.
func (m *Machine) rivaled(i int, y Reply) {
	if m.Op.Prove && m.verdict(m.Strands[i].X, y) == lost {
		m.unproved(i)
		return
	}
	if y.Code == OK && (!y.Object.Claimed || m.Phase == electing) {
		m.obstructed(i, y.Object, m.Strands[i].X.Of(m.Op.Mode).Peer)
		return
	}
	m.unconfirmed(i)
}

// discard deletes Op.Met in a peer that is no member, if it is still a reservation, or if it is
// a secondary and the PeerSet of its peer still says that the peer is no member.
func (m *Machine) discard() {
	m.enter(covering)
	m.spawn(jobDiscard, m.Op.Target)
}

func (m *Machine) stepDiscard(i int, r Reply) {
	s := &m.Strands[i]
	switch s.Step {
	case "", "again":
		m.send(i, "read", Command{Verb: Read, Peer: s.Peer})
	case "read":
		o := r.Object
		switch {
		case r.Code == NotFound, r.Code == OK && o.UID != m.Op.Met.UID:
			m.finish(i)
		case r.Code == OK && o.Primary(m.Op.Mode) && o.Stage != Reserved:
			// It was committed meanwhile.
			m.finish(i)
		case r.Code == OK && (o.former(m.Op.Mode) || o.yielded(m.Op.Mode)):
			// The replicas that name it must be updated first.
			m.unconfirmed(i)
		case r.Code == OK && !o.Terminating && o.Primary(m.Op.Mode):
			m.send(i, "delete", Command{Verb: Delete, Peer: s.Peer, UID: o.UID, RV: o.RV})
		case r.Code == OK && !o.Terminating:
			s.X = o
			m.send(i, "set", Command{Verb: ReadPeerSet, Peer: s.Peer})
		case !m.again(i, "again"):
			m.unconfirmed(i)
		}
	case "set":
		switch state := r.PeerSet.Self.State; {
		case r.Code == OK && (state == peerActive || state == peerJoining):
			// The peer is a member again and may have received X as such.
			m.because(Membership, s.Peer)
			m.finish(i)
		case r.Code == OK:
			m.send(i, "delete", Command{Verb: Delete, Peer: s.Peer, UID: s.X.UID, RV: s.X.RV})
		case !m.again(i, "again"):
			m.unconfirmed(i)
		}
	case "delete":
		m.Result.Removed = m.Result.Removed || r.Class == Applied
		if r.Code == Denied || !m.again(i, "again") {
			m.unconfirmed(i)
		}
	}
}

// afterCovering ends a cover or a discard.
func (m *Machine) afterCovering() {
	if m.Forked.Claimed {
		m.reconcile()
		return
	}
	if m.Astray {
		// Its home has moved: the next list shows where to.
		m.pend(m.Op.Target)
	}
	m.end(Done)
}
