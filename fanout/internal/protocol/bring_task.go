// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// A bringTask makes the replica in its peer equal to the primary. The order of its steps makes it
// safe: it reads the replica, then the membership, then the primary, and then writes on the version
// of the replica that it read. A removal that commits after the primary was read finds the
// replica's peer among the members.
type bringTask struct{ secondaryTask }

func (s bringTask) step(r Reply) {
	switch s.Step {
	case stepStart:
		s.afterStart()
	case stepAgain:
		s.send(stepReplica, readObject(s.Peer))
	case stepReplica:
		s.afterReplica(r)
	case stepCreate:
		s.afterCreate(r)
	case stepRivalRecord:
		s.rivalRecord(r)
	case stepRival:
		s.afterRival(r)
	case stepRemove:
		s.retry(stepAgain)
	case stepPrimary:
		replicaTask(s).afterPrimary(r)
	case stepBelieved:
		replicaTask(s).afterBelieved(r)
	case stepAccept:
		replicaTask(s).afterAccept(r)
	case stepMembers:
		s.afterMembers(r)
	case stepVouch:
		s.vouched(r)
	case stepUndo, stepUndid:
		replicaTask(s).undid(r)
	case stepPut, stepRenew:
		replicaTask(s).afterPut(r)
	case stepReactivate:
		s.send(stepActivate, Command{Verb: Activate, Peer: s.Peer, Object: s.X})
	case stepActivate:
		replicaTask(s).afterActivate(r)
	}
}

func (s bringTask) afterStart() {
	m := s.m
	if c := m.Claims[s.Peer]; m.Phase == bringing && c.Held {
		// The reply to the create serves as the read of the replica, and the reply to the commit as
		// the read of the primary.
		s.X = c.Object
		delete(m.Claims, s.Peer)
		replicaTask(s).align(m.Primary)
		return
	}
	s.send(stepReplica, readObject(s.Peer))
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

// absent creates the replica, unless the operation moves the home out of this peer and the peer is
// no longer a member. If Op.Prove is set, absent creates nothing and reports the peer in
// Result.Unproved.
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
		// X is a reservation in a peer that is not a full member yet (Active or Leaving by its own PeerSet):
		// no add commits it there, and no sweep (a check and repair of all peers) deletes it.
		s.send(stepRemove, deleteObject(s.Peer, s.X))
	case retireJob{m}.outranked(s.X):
		m.astray(s.X, s.Peer)
		s.finish()
	case secondary && (s.X.Of(m.Op.Mode) == m.Record.Primary || retireJob{m}.outdated(s.X) || s.X.Undecided() && s.X.Sibling(m.Primary)):
		s.send(stepMembers, Command{Verb: ReadPeerSet, Peer: m.Record.Primary.Peer})
	default:
		s.rival()
	}
}

// vouched continues the activation of a replica that is not Active, unless the replica's own peer
// lists the primary's peer as removed by force. A removed peer that is still reachable lists itself
// as a member, so its own PeerSet does not show the removal.
func (s bringTask) vouched(r Reply) {
	m := s.m
	switch {
	case r.Code == OK && r.PeerSet.forced(m.Record.Primary.Peer):
		replicaTask(s).undo()
	case r.Code == OK:
		s.send(stepPrimary, readObject(m.Record.Primary.Peer))
	case !s.again(stepAgain):
		s.unconfirmed()
	}
}

func (s bringTask) afterCreate(r Reply) {
	m := s.m
	if r.Class == Applied {
		m.Result.Mended = true
		s.X = r.Object
		s.send(stepMembers, Command{Verb: ReadPeerSet, Peer: m.Record.Primary.Peer})
		return
	}
	if r.Code == Denied || !s.again(stepAgain) {
		s.unconfirmed()
	}
}

func (s bringTask) afterRival(r Reply) {
	m := s.m
	switch v := m.verdict(s.X, r); {
	case v == dead:
		s.send(stepRemove, deleteObject(s.Peer, s.X))
	case v == moved && s.X.Claim.Operation == m.Primary.Claim.Operation:
		// The claim shows that X is a replica of this object that names an earlier home, and not a
		// replica of a later object with the same name.
		s.send(stepMembers, Command{Verb: ReadPeerSet, Peer: m.Record.Primary.Peer})
	default:
		s.rivaled(r)
	}
}

func (s bringTask) afterMembers(r Reply) {
	m := s.m
	switch {
	case r.Code != OK:
		s.retry(stepAgain)
	case m.outside(s.Peer) && s.X.former(m.Op.Mode):
		s.finish()
	case !slices.Contains(r.PeerSet.reached(), s.Peer):
		replicaTask(s).undo()
	case s.X.Stage == Reserved:
		s.send(stepVouch, Command{Verb: ReadPeerSet, Peer: s.Peer})
	default:
		s.send(stepPrimary, readObject(m.Record.Primary.Peer))
	}
}
