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
	s.remove(stepUndo)
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
		s.read(stepUndid)
	default:
		s.unconfirmed()
	}
}

// afterReplica acts on the reply to the read in the strand's peer.
func (s bringTask) afterReplica(r Reply) {
	s.X = r.Object
	switch {
	case r.Code == NotFound:
		s.absent()
	case r.Code == OK:
		s.found()
	case r.Code == Denied, r.Code == NoSuchPeer:
		s.unconfirmed()
	default:
		s.retry(stepAgain)
	}
}

// absent creates the replica, unless nothing but evidence of the primary counts.
func (s bringTask) absent() {
	m := s.m
	switch {
	case m.outside(s.Peer):
		s.finish()
	case m.Op.Prove:
		s.unproved()
	default:
		s.send(stepCreate, Command{Verb: Create, Peer: s.Peer, Object: bringJob{m}.secondaryOf(s.Peer)})
	}
}

// found acts on X, the object that has the name in the strand's peer.
func (s bringTask) found() {
	m := s.m
	secondary := s.X.Claimed && !s.X.Primary(m.Op.Mode)
	switch {
	case m.Op.Prove && s.X.Of(m.Op.Mode) == m.Record.Primary && s.X.Stage == Reserved:
		s.unproved()
	case s.X.Terminating && !s.X.former(m.Op.Mode):
		s.retry(stepAgain)
	case (m.Op.Action == Cover || m.Op.Action == Succeed) && s.X.Primary(m.Op.Mode) && s.X.Pending() && !s.X.Undecided():
		// No add commits it, and no sweep deletes it, in a peer that is not a full member yet.
		s.remove(stepRemove)
	case retireJob{m}.outranked(s.X):
		m.astray(s.X, s.Peer)
		s.finish()
	case secondary && (s.X.Of(m.Op.Mode) == m.Record.Primary || retireJob{m}.outdated(s.X) || s.X.Undecided() && s.X.Sibling(m.Primary)):
		s.send(stepMembers, Command{Verb: ReadPeerSet, Peer: m.Record.Primary.Peer})
	default:
		s.rival()
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
		s.readPrimary(stepPrimary)
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
	older, lost := s.X.term() < y.term(), s.X.lost(y)
	inForce := s.X.Stage == Active && s.X.term() == y.term() && !s.X.Home.Yielded
	switch {
	case s.X.term() > y.term(), older && lost && s.X.former(Everywhere):
		s.unconfirmed()
	case lost && (older || s.X.Stage == Reserved):
		s.remove(stepRemove)
	case lost && inForce:
		s.forked()
	case inForce && s.X.Revision.Number >= y.Revision.Number && s.outlived():
		s.renew()
	case inForce && s.X.Revision.Number >= y.Revision.Number:
		s.send(stepActivate, Command{Verb: Activate, Peer: s.Peer, Object: s.X})
	default:
		s.copy(y)
	}
}

// copy writes the content of primary y into replica X, which comes into force.
func (s bringTask) copy(y Object) {
	m := s.m
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
