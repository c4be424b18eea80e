// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// bring copies a committed object to every peer that must have it and activates it. Any process
// may run it, at any time and repeatedly.
func (m *Machine) bring() {
	if m.Op.Mode == Everywhere && m.Primary.Claimed && !m.Primary.Primary(Everywhere) {
		m.astray(m.Primary, m.Record.Primary.Peer)
		m.regain()
		return
	}
	if m.Primary.Leaving() {
		// The object is being removed: the removal is another operation and deletes the
		// replicas.
		m.superfluous()
		return
	}
	if m.Op.Mode == Everywhere && m.Primary.Edited() {
		m.accept()
		return
	}
	m.Stopping = false
	m.enter(bringing)
	m.spawn(jobActivate, m.Record.Primary.Peer)
	if m.Op.Mode == Once {
		return
	}
	m.Forked = Object{}
	if !m.HaveSet {
		// Read the members after the commit: a peer that joined while the commit was in flight
		// copied the older content.
		m.spawn(jobLook, m.Record.Primary.Peer)
		return
	}
	m.spread(jobBring)
}

// superfluous ends an operation whose object is being removed or is gone. An update gets the
// ending Ended, not Done: its home may have been replaced meanwhile, and the update lost.
func (m *Machine) superfluous() {
	switch {
	case m.Result.Reason == alreadyDone:
		m.end(AlreadyDone)
	case m.Op.Action == Update:
		m.end(Ended)
	default:
		m.end(Done)
	}
}

// spread starts a strand for every other member or, while the membership is unknown, for every
// other configured peer.
func (m *Machine) spread(j job) {
	reached := m.Op.Peers
	if m.HaveSet {
		reached = m.Set.reached()
	}
	for _, p := range reached {
		if p != m.Record.Primary.Peer {
			m.spawn(j, p)
		}
	}
	if from := m.Op.Met.Claim.Peer; m.outside(from) && from != m.Record.Primary.Peer {
		m.spawn(j, from)
	}
}

// afterBringing starts the strands of the other peers once the membership is known, and then
// ends the operation.
func (m *Machine) afterBringing() {
	if m.Op.Mode == Everywhere || m.Op.Action == Sweep {
		j := jobBring
		if m.Op.Mode == Once {
			j = jobGuard
		}
		begun := slices.ContainsFunc(m.Strands, func(s Strand) bool { return s.Job == j })
		switch {
		case m.Astray:
			m.regain()
			return
		case m.Undone:
			m.redo()
			return
		case m.Forked.Claimed:
			m.reconcile()
			return
		case begun && m.retire(j):
			return
		case begun:
		case m.HaveSet && m.reaches():
			m.spread(j)
			return
		case !m.HaveSet && len(m.Op.Peers) > 1:
			// The members are unknown, so nothing is confirmed.
			m.pend(m.Record.Primary.Peer)
		}
	}
	if m.bindsGuards() {
		m.bindGuards()
		return
	}
	m.brought()
}

// reaches reports whether there is another peer to bring the object to. The PeerSet of a
// rejoining peer lists only the other members; the change that readmits the peer uses that
// list.
func (m *Machine) reaches() bool {
	return len(m.Set.reached()) > 1 || !m.passing() && m.accompanied() || m.outside(m.Op.Met.Claim.Peer)
}

// brought ends an operation that is in effect.
func (m *Machine) brought() {
	if m.Op.Mode == Everywhere {
		m.Result.Durable = len(m.Result.Pending) == 0 && !m.Revoked
	}
	switch {
	case m.Result.Reason == alreadyDone:
		m.end(AlreadyDone)
	case len(m.Result.Pending) > 0:
		m.Result.Keep = true
		m.end(Committed)
	default:
		m.end(Done)
	}
}

// Unspread reports whether the operation is committed but has read or written no peer since,
// except the primary's: the other peers still have the state from before the commit.
func (m *Machine) Unspread() bool {
	spreads := m.Op.Mode == Everywhere || m.Op.Action == Remove
	found := m.Primary.UID != "" || m.Result.Reason == Unreachable
	return m.Result.Ending == Committed && spreads && found && !m.HaveSet
}

// pend records that peer has not confirmed.
func (m *Machine) pend(peer string) {
	if !slices.Contains(m.Result.Pending, peer) {
		m.Result.Pending = append(m.Result.Pending, peer)
	}
}

// unconfirmed ends strand i without a confirmation; a sweep or a recovery continues.
func (m *Machine) unconfirmed(i int) {
	m.pend(m.Strands[i].Peer)
	m.finish(i)
}

// secondaryOf returns a Reserved secondary of the committed primary for peer. It comes into
// force only by a later write, on a version that was read before the primary.
func (m *Machine) secondaryOf(peer string) Object {
	o := Object{Claimed: true, Stage: Reserved, Claim: m.Primary.Claim}
	o.Claim.Primary = false
	o.Claim.Peer = peer
	o.Claim.Of, o.Claim.Record = m.Record.Primary, ""
	if m.Op.Mode == Everywhere {
		o.Revision = m.Primary.Revision
		o.Home = m.Primary.Home
		if m.Primary.Edited() {
			// It waits for the content that will be committed.
			o.Revision.Number = 0
		}
		if !m.Op.Inert {
			o.Payload = m.Primary.Payload
		}
	}
	return o
}

// readMembers reads the PeerSet of the primary's peer, which shows whether the strand's peer is
// a member.
func (m *Machine) readMembers(i int) {
	m.send(i, "members", Command{Verb: ReadPeerSet, Peer: m.Record.Primary.Peer})
}

// follow makes replica X of strand i equal to primary y. A replica in force is evidence of y,
// so a Reserved one comes into force only if y's peer is still a full member. A Succeed skips
// that check: during a removal by force no peer can rejoin, since all slots are held, and the
// heir may be in a newcomer.
func (m *Machine) follow(i int, y Object) {
	s := &m.Strands[i]
	if m.passing() && m.Op.Action != Succeed && s.X.Stage == Reserved {
		s.Y = y
		m.send(i, "believed", Command{Verb: ReadPeerSet, Peer: m.Record.Primary.Peer})
		return
	}
	m.align(i, y)
}

// stepBring makes the replica in the strand's peer equal to the primary. It is safe because of
// its order: read the replica, then the membership, then the primary, then write on the replica
// as it was read. A removal that commits after the primary was read finds the strand's peer
// among the members.
func (m *Machine) stepBring(i int, r Reply) {
	s := &m.Strands[i]
	read := Command{Verb: Read, Peer: s.Peer}
	switch s.Step {
	case "":
		if c := m.Claims[s.Peer]; m.Phase == bringing && c.Held {
			// The reply to the create is the read of the replica, the reply to the commit that
			// of the primary.
			s.X = c.Object
			delete(m.Claims, s.Peer)
			m.align(i, m.Primary)
			return
		}
		m.send(i, "replica", read)
	case "again":
		m.send(i, "replica", read)
	case "replica":
		m.replica(i, r)
	case "create":
		if r.Class == Applied {
			m.Result.Mended = true
			s.X = r.Object
			m.readMembers(i)
			return
		}
		if r.Code == Denied || !m.again(i, "again") {
			m.unconfirmed(i)
		}
	case "rival record":
		m.rivalRecord(i, r)
	case "rival":
		switch v := m.verdict(s.X, r); {
		case v == dead:
			m.send(i, "remove", Command{Verb: Delete, Peer: s.Peer, UID: s.X.UID, RV: s.X.RV})
		case v == moved && s.X.Claim.Operation == m.Primary.Claim.Operation:
			// Its claim shows that it is a replica of this object that names an earlier home,
			// and not a replica of a later object with the same name.
			m.readMembers(i)
		default:
			m.rivaled(i, r)
		}
	case "remove":
		if !m.again(i, "again") {
			m.unconfirmed(i)
		}
	case "primary":
		switch {
		case r.Code == OK && m.strayed(r.Object):
			m.astray(r.Object, m.Record.Primary.Peer)
			m.finish(i)
		case (r.Code == NotFound || r.Code == OK && r.Object.UID != m.Record.Primary.UID) && m.evidence(s.X):
			// The next sweep judges it.
			m.unconfirmed(i)
		case r.Code == NotFound, r.Code == OK && (r.Object.UID != m.Record.Primary.UID || r.Object.Leaving()):
			m.undo(i)
		case r.Code != OK:
			if !m.again(i, "again") {
				m.unconfirmed(i)
			}
		case r.Object.Stage == Reserved:
			// Its peer was restored to a state from before the commit.
			m.unconfirmed(i)
		case m.unmadeAt(r.Object):
			m.Undone = true
			m.finish(i)
		case r.Object.Edited():
			// A replica never shows uncommitted content.
			m.sendAccepted(i, "accept", r.Object)
		default:
			m.follow(i, r.Object)
		}
	case "believed":
		switch {
		case r.Code == OK && r.PeerSet.current():
			m.align(i, s.Y)
		case r.Code == OK || !m.again(i, "again"):
			m.unconfirmed(i)
		}
	case "accept":
		if r.Class == Applied {
			m.follow(i, r.Object)
			return
		}
		if r.Code == Denied || !m.again(i, "again") {
			m.unconfirmed(i)
		}
	case "members":
		switch {
		case r.Code != OK:
			if !m.again(i, "again") {
				m.unconfirmed(i)
			}
		case m.outside(s.Peer) && s.X.former(m.Op.Mode):
			m.finish(i)
		case !slices.Contains(r.PeerSet.reached(), s.Peer):
			m.undo(i)
		case s.X.Stage == Reserved:
			m.send(i, "vouch", Command{Verb: ReadPeerSet, Peer: s.Peer})
		default:
			m.send(i, "primary", Command{Verb: Read, Peer: m.Record.Primary.Peer})
		}
	case "vouch":
		m.vouched(i, r)
	case "undo", "undid":
		m.undid(i, r)
	case "put", "renew":
		if r.Class == Applied {
			s.X, s.Fresh = r.Object, true
			m.Result.Mended = m.Result.Mended || s.Step == "put"
			m.send(i, "activate", Command{Verb: Activate, Peer: s.Peer, Object: s.X})
			return
		}
		if r.Code == Denied || !m.again(i, "again") {
			m.unconfirmed(i)
		}
	case "reactivate":
		m.send(i, "activate", Command{Verb: Activate, Peer: s.Peer, Object: s.X})
	case "activate":
		if r.Class == Applied {
			m.finish(i)
		} else if !m.again(i, "reactivate") {
			m.unconfirmed(i)
		}
	}
}

// stepActivate notifies the kind that the primary is in force.
func (m *Machine) stepActivate(i int, r Reply) {
	s := &m.Strands[i]
	switch {
	case s.Step != "activate":
		m.send(i, "activate", Command{Verb: Activate, Peer: s.Peer, Object: m.Primary})
	case r.Class == Applied:
		m.finish(i)
	case !m.again(i, "again"):
		m.unconfirmed(i)
	}
}
