// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// bring carries a committed object to every peer that is to have it and tells
// the kind. It is safe at any time, by anybody, any number of times.
func (m *Machine) bring() {
	if m.Op.Mode == Everywhere && m.Primary.Claimed && !m.Primary.Primary(Everywhere) {
		m.astray(m.Primary, m.Record.Primary.Peer)
		m.regain()
		return
	}
	if m.Primary.Leaving() {
		// It is in effect no more: its removal, an operation of its own, has the
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
		// The members are read after the commit: a peer that joined while it
		// was on its way copied the older content.
		m.spawn(jobLook, m.Record.Primary.Peer)
		return
	}
	m.spread(jobBring)
}

// superfluous ends an operation whose object is being removed, or is gone. An update has
// ended, not succeeded: its home may have been replaced meanwhile, and the update lost.
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

// spread starts a strand for every other peer of the membership that was read.
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

// afterBringing starts on the other peers once the membership is known, then
// ends.
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
			// Who the members are is not known, so nothing is confirmed.
			m.pend(m.Record.Primary.Peer)
		}
	}
	if m.bindsGuards() {
		m.bindGuards()
		return
	}
	m.brought()
}

// reaches says whether there is another peer to bring the object to. A peer that comes back
// lists only the others: the change that brings it back uses that list.
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

// Unspread says that the operation is committed and has asked no peer since but the
// primary's: what the others are to let go or to take is in them as it was before.
func (m *Machine) Unspread() bool {
	spreads := m.Op.Mode == Everywhere || m.Op.Action == Remove
	found := m.Primary.UID != "" || m.Result.Reason == Unreachable
	return m.Result.Ending == Committed && spreads && found && !m.HaveSet
}

// pend notes that peer has not confirmed.
func (m *Machine) pend(peer string) {
	if !slices.Contains(m.Result.Pending, peer) {
		m.Result.Pending = append(m.Result.Pending, peer)
	}
}

// unconfirmed ends strand i; a sweep or a recovery goes on from there.
func (m *Machine) unconfirmed(i int) {
	m.pend(m.Strands[i].Peer)
	m.finish(i)
}

// secondaryOf is a secondary of the committed primary for peer, Reserved: it
// comes into force only by a later write on what was read before the primary.
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

// readMembers asks the primary's peer whether the strand's peer is a member.
func (m *Machine) readMembers(i int) {
	m.send(i, "members", Command{Verb: ReadPeerSet, Peer: m.Record.Primary.Peer})
}

// follow makes replica X of strand i equal to primary y. One that is not in force yet comes
// into force only if y's peer is believed: it would be evidence of y. A force-remove
// holds the slots of all members, so no peer comes back during it, and the heir may stand in a
// peer that joins.
func (m *Machine) follow(i int, y Object) {
	s := &m.Strands[i]
	if m.passing() && m.Op.Action != Succeed && s.X.Stage == Reserved {
		s.Y = y
		m.send(i, "believed", Command{Verb: ReadPeerSet, Peer: m.Record.Primary.Peer})
		return
	}
	m.align(i, y)
}

// stepBring makes the replica in the strand's peer equal to the primary. The
// order of its reads is what makes it safe: the replica, then the membership,
// then the primary, then a write on the replica as it was read. A removal that
// commits after the primary was read finds the strand's peer among the members.
func (m *Machine) stepBring(i int, r Reply) {
	s := &m.Strands[i]
	read := Command{Verb: Read, Peer: s.Peer}
	switch s.Step {
	case "":
		if c := m.Claims[s.Peer]; m.Phase == bringing && c.Held {
			// The create's answer is the read of the replica, the commit's
			// that of the primary.
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
			// It names an earlier home of this very object, by the claim that
			// all its replicas carry, and not of a later one of the name.
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
			// Its peer was restored from before the commit.
			m.unconfirmed(i)
		case m.unmadeAt(r.Object):
			m.Undone = true
			m.finish(i)
		case r.Object.Edited():
			// A replica never shows what is not committed.
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

// stepActivate tells the kind that the primary is in force.
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
