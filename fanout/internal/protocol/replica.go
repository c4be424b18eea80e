// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// A replicaTask is a bringTask that has read its replica X and the membership. It makes X equal to
// the primary, or deletes X.
type replicaTask struct{ secondaryTask }

func (s replicaTask) afterPrimary(r Reply) {
	m := s.m
	switch {
	case r.Code == OK && m.strayed(r.Object):
		m.astray(r.Object, m.Record.Primary.Peer)
		s.finish()
	case (r.Code == NotFound || r.Code == OK && r.Object.UID != m.Record.Primary.UID) && m.evidence(s.X):
		// X is evidence of a missing primary: the next sweep (a check and repair of all peers) decides.
		s.unconfirmed()
	case r.Code == NotFound, r.Code == OK && (r.Object.UID != m.Record.Primary.UID || r.Object.Leaving()):
		s.undo()
	case r.Code != OK:
		s.retry(stepAgain)
	case r.Object.Stage == Reserved:
		// The primary's peer was restored to a state from before the commit.
		s.unconfirmed()
	case mendJob{m}.unmadeAt(r.Object):
		m.Undone = true
		s.finish()
	case r.Object.Edited():
		// A replica never shows uncommitted content.
		s.send(stepAccept, acceptJob{m}.accept(r.Object))
	default:
		s.follow(r.Object)
	}
}

// follow makes replica X equal to primary y. A replica in effect is evidence of y. So follow
// activates a Reserved replica only if y's peer is a full member when its PeerSet is read again. An
// operation of a join or rejoin skips this check. A Succeed skips it, too: during a removal by force
// no peer can rejoin, since all slots are held, and the elected replica may be in a newcomer.
func (s replicaTask) follow(y Object) {
	m := s.m
	if m.passing() && m.Op.Action != Succeed && s.X.Stage == Reserved {
		s.Y = y
		s.send(stepBelieved, Command{Verb: ReadPeerSet, Peer: m.Record.Primary.Peer})
		return
	}
	s.align(y)
}

func (s replicaTask) afterBelieved(r Reply) {
	switch {
	case r.Code == OK && r.PeerSet.current():
		s.align(s.Y)
	case r.Code == OK || !s.again(stepAgain):
		s.unconfirmed()
	}
}

func (s replicaTask) afterAccept(r Reply) {
	if r.Class == Applied {
		s.follow(r.Object)
		return
	}
	if r.Code == Denied || !s.again(stepAgain) {
		s.unconfirmed()
	}
}

// contradicts reports whether replica o has a revision that home y does not have: the revision
// was lost with an earlier home, or by a restore of the home's peer. The revision's number may
// belong to other content by now, so o must not simply be updated to y's revision.
func (o Object) contradicts(y Object) bool {
	return o.Revision.Number > y.Revision.Number ||
		o.Revision.Number == y.Revision.Number && o.Revision != y.Revision
}

// align makes replica X equal to primary y, if their terms and revisions allow it. Otherwise it
// deletes X, reports X as forked, or leaves it unconfirmed.
func (s replicaTask) align(y Object) {
	older, lost := s.X.term() < y.term(), s.X.contradicts(y)
	inEffect := s.X.Stage == Active && s.X.term() == y.term() && !s.X.Home.Yielded
	switch {
	case s.X.term() > y.term(), older && lost && s.X.former(Everywhere):
		s.unconfirmed()
	case lost && (older || s.X.Stage == Reserved):
		s.send(stepRemove, deleteObject(s.Peer, s.X))
	case lost && inEffect:
		s.forked()
	case inEffect && s.X.Revision.Number >= y.Revision.Number && s.maybeJudgedBefore():
		s.renew()
	case inEffect && s.X.Revision.Number >= y.Revision.Number:
		s.send(stepActivate, Command{Verb: Activate, Peer: s.Peer, Object: s.X})
	default:
		s.copy(y)
	}
}

// copy writes the content of primary y into replica X and makes X Active.
func (s replicaTask) copy(y Object) {
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

func (s replicaTask) afterPut(r Reply) {
	m := s.m
	if r.Class == Applied {
		s.X, s.Fresh = r.Object, true
		m.Result.Mended = m.Result.Mended || s.Step == stepPut
		s.send(stepActivate, Command{Verb: Activate, Peer: s.Peer, Object: s.X})
		return
	}
	if r.Code == Denied || !s.again(stepAgain) {
		s.unconfirmed()
	}
}

func (s replicaTask) afterActivate(r Reply) {
	if r.Class == Applied {
		s.finish()
		return
	}
	s.retry(stepReactivate)
}

// undo deletes a replica that must not exist. A former home stays until the removal has
// deleted the replicas that may name it.
func (s replicaTask) undo() {
	m := s.m
	if s.X.former(m.Op.Mode) {
		s.unconfirmed()
		return
	}
	s.send(stepUndo, deleteObject(s.Peer, s.X))
}

// undid handles the replies to the delete of undo and to the read after it. If the replica is read as
// absent, the strand (the running task) ends confirmed. Otherwise, for example because another
// finalizer holds the replica, the replica still names its home, and its peer stays unconfirmed.
func (s replicaTask) undid(r Reply) {
	m := s.m
	switch {
	case r.Code == NotFound, s.Step == stepUndid && r.Code == OK && r.Object.UID != s.X.UID:
		s.X, m.Revoked = Object{}, true
		s.finish()
	case s.Step == stepUndo && r.Class == Applied:
		s.send(stepUndid, readObject(s.Peer))
	default:
		s.unconfirmed()
	}
}
