// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// undo deletes a replica that must not exist. A former home stays until the removal has
// deleted the replicas that may name it.
func (m *Machine) undo(i int) {
	s := &m.Strands[i]
	if s.X.former(m.Op.Mode) {
		m.unconfirmed(i)
		return
	}
	m.send(i, "undo", Command{Verb: Delete, Peer: s.Peer, UID: s.X.UID, RV: s.X.RV})
}

// undid handles replies after the delete of an undo, and ends strand i once the replica is
// read as absent. Until then, for example while another finalizer holds it, the replica
// still names its home, and must not count as a confirmation.
func (m *Machine) undid(i int, r Reply) {
	s := &m.Strands[i]
	switch {
	case r.Code == NotFound, s.Step == "undid" && r.Code == OK && r.Object.UID != s.X.UID:
		s.X, m.Revoked = Object{}, true
		m.finish(i)
	case s.Step == "undo" && r.Class == Applied:
		m.send(i, "undid", Command{Verb: Read, Peer: s.Peer})
	default:
		m.unconfirmed(i)
	}
}

// replica acts on the reply r to the read in the strand's peer.
func (m *Machine) replica(i int, r Reply) {
	s := &m.Strands[i]
	s.X = r.Object
	switch {
	case r.Code == NotFound && m.outside(s.Peer):
		m.finish(i)
	case r.Code == NotFound && m.Op.Prove, m.Op.Prove && r.Code == OK && s.X.Of(m.Op.Mode) == m.Record.Primary && s.X.Stage == Reserved:
		m.unproved(i)
	case r.Code == NotFound:
		m.send(i, "create", Command{Verb: Create, Peer: s.Peer, Object: m.secondaryOf(s.Peer)})
	case r.Code == Denied, r.Code == NoSuchPeer:
		m.unconfirmed(i)
	case r.Code != OK, s.X.Terminating && !s.X.former(m.Op.Mode):
		if !m.again(i, "again") {
			m.unconfirmed(i)
		}
	case (m.Op.Action == Cover || m.Op.Action == Succeed) && s.X.Primary(m.Op.Mode) && s.X.Pending() && !s.X.Undecided():
		// No add commits it, and no sweep deletes it, in a peer that is not a full member yet.
		m.send(i, "remove", Command{Verb: Delete, Peer: s.Peer, UID: s.X.UID, RV: s.X.RV})
	case m.outranked(s.X):
		m.astray(s.X, s.Peer)
		m.finish(i)
	case s.X.Undecided() && s.X.Primary(m.Op.Mode):
		// The reservation must be settled here: sweeps visit members only.
		m.readRecord(i, "rival record", s.X)
	case !s.X.Claimed, s.X.Primary(m.Op.Mode):
		m.obstructed(i, s.X, s.Peer)
	case s.X.Of(m.Op.Mode) == m.Record.Primary, m.outdated(s.X), s.X.Undecided() && s.X.Sibling(m.Primary):
		m.readMembers(i)
	case s.X.Undecided():
		m.readRecord(i, "rival record", s.X)
	default:
		m.send(i, "rival", Command{Verb: Read, Peer: s.X.Of(m.Op.Mode).Peer})
	}
}

// vouched continues the activation of a replica that is not Active, unless the replica's
// own peer lists the primary's peer as removed by force. A peer that was removed by force,
// and answers all the same, still takes itself for a member.
func (m *Machine) vouched(i int, r Reply) {
	switch {
	case r.Code == OK && r.PeerSet.forced(m.Record.Primary.Peer):
		m.undo(i)
	case r.Code == OK:
		m.send(i, "primary", Command{Verb: Read, Peer: m.Record.Primary.Peer})
	case !m.again(i, "again"):
		m.unconfirmed(i)
	}
}

// lost reports whether replica o has a revision that home y never had, because it was lost
// with an earlier home. Its number may belong to other content by now, so the replica
// cannot be updated, only created again.
func (o Object) lost(y Object) bool {
	return o.Revision.Number > y.Revision.Number ||
		o.Revision.Number == y.Revision.Number && o.Revision != y.Revision
}

// align writes replica X of strand i with the content of primary y.
func (m *Machine) align(i int, y Object) {
	s := &m.Strands[i]
	switch {
	case s.X.term() > y.term():
		m.unconfirmed(i)
		return
	case s.X.term() < y.term() && s.X.former(Everywhere) && s.X.lost(y):
		m.unconfirmed(i)
		return
	case (s.X.term() < y.term() || s.X.Stage == Reserved) && s.X.lost(y):
		m.send(i, "remove", Command{Verb: Delete, Peer: s.Peer, UID: s.X.UID, RV: s.X.RV})
		return
	case s.X.Stage == Active && s.X.term() == y.term() && !s.X.Home.Yielded && s.X.lost(y):
		m.forked(i)
		return
	case s.X.Stage == Active && s.X.Revision.Number >= y.Revision.Number && s.X.term() == y.term() && !s.X.Home.Yielded && m.outlived(i):
		m.renew(i)
		return
	case s.X.Stage == Active && s.X.Revision.Number >= y.Revision.Number && s.X.term() == y.term() && !s.X.Home.Yielded:
		m.send(i, "activate", Command{Verb: Activate, Peer: s.Peer, Object: s.X})
		return
	}
	x := s.X
	if x.Undecided() {
		x.Bound = m.Record.Primary
	}
	x.Stage = Active
	x.Revision = y.Revision
	x.History = nil
	x.Home = y.Home
	x.Payload = y.Payload
	x.Held = Held{}
	m.send(i, "put", Command{Verb: Put, Peer: s.Peer, Object: x, UID: s.X.UID, RV: s.X.RV})
}
