// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// cover sees to it that the primary that was met has its secondaries in peers
// that are becoming members, or in all if its own peer is.
func (m *Machine) cover() {
	m.Primary = m.Op.Met
	if m.Op.Mode == Everywhere && m.Primary.Claimed && !m.Primary.Primary(Everywhere) {
		// It moves: whoever joins needs it from where it is now.
		m.astray(m.Primary, m.Op.Target)
		m.regain()
		return
	}
	if !m.Primary.Claimed {
		// A secondary of an object that nobody has claimed is right by itself.
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

// outlived says whether what stands in the strand's peer may have been judged by
// a membership that is past. A secondary of a peer that has departed is dead; once
// the peer is back it is not, and who judged it before may still be about to
// delete it.
func (m *Machine) outlived(i int) bool { return m.Op.Action == Cover && !m.Strands[i].Fresh }

// renew writes a secondary as it is, with a sign of life: that makes a delete
// void that was judged on what stood there before.
func (m *Machine) renew(i int) {
	s := &m.Strands[i]
	x := s.X
	x.Heartbeat++
	m.send(i, "renew", Command{Verb: Put, Peer: s.Peer, Object: x, UID: x.UID, RV: x.RV})
}

// obstructed ends strand i because o in peer has the name that it is to guard. A
// cover tells by whom, unless that one may yet go by itself.
func (m *Machine) obstructed(i int, o Object, peer string) {
	if m.Op.Action == Cover && m.Result.HolderAt == "" && o.UID != "" && (!o.Claimed || o.Primary(m.Op.Mode) && o.InEffect()) {
		m.Result.Holder, m.Result.HolderAt = o, peer
	}
	m.unconfirmed(i)
}

// unproved ends strand i, whose peer holds nothing of the primary: it may have been
// removed after the state that its peer was restored from.
func (m *Machine) unproved(i int) {
	m.Result.Unproved = append(m.Result.Unproved, m.Strands[i].Peer)
	m.finish(i)
}

// rivaled ends strand i because a secondary of another primary has the name, as
// y answers. A committed one will be found to be the only one. If the restored peer has
// forgotten that one too, it came after the object that is to be proved.
func (m *Machine) rivaled(i int, y Reply) {
	if m.Op.Prove && m.verdict(m.Strands[i].X, y) == lost {
		m.unproved(i)
		return
	}
	if y.Code == OK && !y.Object.Claimed {
		m.obstructed(i, y.Object, m.Strands[i].X.Of(m.Op.Mode).Peer)
		return
	}
	m.unconfirmed(i)
}

// discard deletes what was met in a peer that is no member, as long as it is a
// reservation, or a secondary and the peer still knows that it is no member.
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
			// What names it is to be brought along first.
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
			// It is a member again, and this may be what it was given.
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
