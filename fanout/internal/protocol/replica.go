// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// undo deletes a replica that must not exist. A former home stays until the removal has
// deleted the replicas that may name it.
func (s bringTask) undo() {
	m := s.m
	if s.X.former(m.Op.Mode) {
		s.unconfirmed()
		return
	}
	s.send(stepUndo, Command{Verb: Delete, Peer: s.Peer, UID: s.X.UID, RV: s.X.RV})
}

// undid handles replies after the delete of an undo, and ends the strand once the replica is
// read as absent. Until then, for example while another finalizer holds it, the replica
// still names its home, and must not count as a confirmation.
func (s bringTask) undid(r Reply) {
	m := s.m
	switch {
	case r.Code == NotFound, s.Step == stepUndid && r.Code == OK && r.Object.UID != s.X.UID:
		s.X, m.Revoked = Object{}, true
		s.finish()
	case s.Step == stepUndo && r.Class == Applied:
		s.send(stepUndid, Command{Verb: Read, Peer: s.Peer})
	default:
		s.unconfirmed()
	}
}

// replica acts on the reply r to the read in the strand's peer.
func (s bringTask) replica(r Reply) {
	m := s.m
	s.X = r.Object
	switch {
	case r.Code == NotFound && m.outside(s.Peer):
		s.finish()
	case r.Code == NotFound && m.Op.Prove, m.Op.Prove && r.Code == OK && s.X.Of(m.Op.Mode) == m.Record.Primary && s.X.Stage == Reserved:
		s.unproved()
	case r.Code == NotFound:
		s.send(stepCreate, Command{Verb: Create, Peer: s.Peer, Object: bringJob{m}.secondaryOf(s.Peer)})
	case r.Code == Denied, r.Code == NoSuchPeer:
		s.unconfirmed()
	case r.Code != OK, s.X.Terminating && !s.X.former(m.Op.Mode):
		if !s.again(stepAgain) {
			s.unconfirmed()
		}
	case (m.Op.Action == Cover || m.Op.Action == Succeed) && s.X.Primary(m.Op.Mode) && s.X.Pending() && !s.X.Undecided():
		// No add commits it, and no sweep deletes it, in a peer that is not a full member yet.
		s.send(stepRemove, Command{Verb: Delete, Peer: s.Peer, UID: s.X.UID, RV: s.X.RV})
	case retireJob{m}.outranked(s.X):
		m.astray(s.X, s.Peer)
		s.finish()
	case s.X.Undecided() && s.X.Primary(m.Op.Mode):
		// The reservation must be settled here: sweeps visit members only.
		s.send(stepRivalRecord, readRecord(s.X.Claim.Operation))
	case !s.X.Claimed, s.X.Primary(m.Op.Mode):
		s.obstructed(s.X, s.Peer)
	case s.X.Of(m.Op.Mode) == m.Record.Primary, retireJob{m}.outdated(s.X), s.X.Undecided() && s.X.Sibling(m.Primary):
		s.send(stepMembers, Command{Verb: ReadPeerSet, Peer: m.Record.Primary.Peer})
	case s.X.Undecided():
		s.send(stepRivalRecord, readRecord(s.X.Claim.Operation))
	default:
		s.send(stepRival, Command{Verb: Read, Peer: s.X.Of(m.Op.Mode).Peer})
	}
}

// vouched continues the activation of a replica that is not Active, unless the replica's
// own peer lists the primary's peer as removed by force. A peer that was removed by force,
// and answers all the same, still takes itself for a member.
func (s bringTask) vouched(r Reply) {
	m := s.m
	switch {
	case r.Code == OK && r.PeerSet.forced(m.Record.Primary.Peer):
		s.undo()
	case r.Code == OK:
		s.send(stepPrimary, Command{Verb: Read, Peer: m.Record.Primary.Peer})
	case !s.again(stepAgain):
		s.unconfirmed()
	}
}

// lost reports whether replica o has a revision that home y never had, because it was lost
// with an earlier home. Its number may belong to other content by now, so the replica
// cannot be updated, only created again.
func (o Object) lost(y Object) bool {
	return o.Revision.Number > y.Revision.Number ||
		o.Revision.Number == y.Revision.Number && o.Revision != y.Revision
}

// align writes replica X with the content of primary y.
func (s bringTask) align(y Object) {
	m := s.m
	switch {
	case s.X.term() > y.term():
		s.unconfirmed()
		return
	case s.X.term() < y.term() && s.X.former(Everywhere) && s.X.lost(y):
		s.unconfirmed()
		return
	case (s.X.term() < y.term() || s.X.Stage == Reserved) && s.X.lost(y):
		s.send(stepRemove, Command{Verb: Delete, Peer: s.Peer, UID: s.X.UID, RV: s.X.RV})
		return
	case s.X.Stage == Active && s.X.term() == y.term() && !s.X.Home.Yielded && s.X.lost(y):
		s.forked()
		return
	case s.X.Stage == Active && s.X.Revision.Number >= y.Revision.Number && s.X.term() == y.term() && !s.X.Home.Yielded && s.outlived():
		s.renew()
		return
	case s.X.Stage == Active && s.X.Revision.Number >= y.Revision.Number && s.X.term() == y.term() && !s.X.Home.Yielded:
		s.send(stepActivate, Command{Verb: Activate, Peer: s.Peer, Object: s.X})
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
	s.send(stepPut, Command{Verb: Put, Peer: s.Peer, Object: x, UID: s.X.UID, RV: s.X.RV})
}
