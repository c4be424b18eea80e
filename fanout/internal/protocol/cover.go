// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// A coverJob makes sure that a primary has its secondaries in the peers that become members.
type coverJob struct{ m *Machine }

// begin begins to give the primary Op.Met its secondaries in the peers Op.Into. Usually these peers
// are the newcomer if Op.Met is in a member, and the members if Op.Met is in the newcomer.
func (j coverJob) begin() {
	m := j.m
	m.Primary = m.Op.Met
	if m.Op.Mode == Everywhere && m.Primary.Claimed && !m.Primary.Primary(Everywhere) {
		// The home is moving: a newcomer must copy the object from its present home.
		m.astray(m.Primary, m.Op.Target)
		findJob{m}.regain()
		return
	}
	if !m.Primary.Claimed {
		// An adoption creates the secondaries of an object before its claim: use the adoption's claim.
		m.Primary.Claim = Claim{Operation: adoptionOf(m.Op.Met.UID), Coordinator: m.Op.Coordinator, Target: m.Op.Target}
	}
	m.Record.Primary = Ref{Peer: m.Op.Target, UID: m.Op.Met.UID}
	m.enter(covering)
	for _, p := range m.Op.Into {
		switch {
		case p == m.Op.Target:
		case m.Op.Mode == Everywhere && m.Op.Met.InEffect():
			m.spawn(taskBring, p)
		default:
			m.spawn(taskGuard, p)
		}
	}
}

// follow continues the cover after its home was found in another peer: it brings the replicas to
// Op.Into.
func (j coverJob) follow() {
	m := j.m
	m.enter(covering)
	for _, p := range m.Op.Into {
		if p != m.Record.Primary.Peer && !m.Primary.Leaving() {
			m.spawn(taskBring, p)
		}
	}
}

// maybeJudgedBefore reports whether another process may still delete the secondary in the peer of
// this strand (running task). Such a process saw the primary's peer departed, and so judged the
// secondary dead (to be deleted). Now the primary's peer has rejoined, and the secondary is valid. A
// write of the secondary by this strand makes such a delete fail.
func (s secondaryTask) maybeJudgedBefore() bool {
	m := s.m
	return m.Op.Action == Cover && !s.Fresh
}

// renew writes secondary X once more and changes only its heartbeat. This voids every delete that
// was decided on an earlier version of X.
func (s secondaryTask) renew() {
	x := s.X
	x.Heartbeat++
	s.send(stepRenew, Command{Verb: Put, Peer: s.Peer, Object: x, UID: x.UID, RV: x.RV})
}

// obstructed ends the strand because o in peer has the name under which the strand needs a
// secondary. A move always reports o as the holder. A cover reports o if o is unclaimed, in effect,
// or a primary whose committed removal another process must end; any other o may still disappear by
// itself.
func (s secondaryTask) obstructed(o Object, peer string) {
	m := s.m
	lasts := !o.Claimed || o.Primary(m.Op.Mode) && (o.InEffect() || o.Leaving())
	if m.Result.HolderAt == "" && o.UID != "" && (m.Phase == electing || m.Op.Action == Cover && lasts) {
		m.Result.Holder, m.Result.HolderAt = o, peer
	}
	s.unconfirmed()
}

// unproved ends the strand if Op.Prove is set, and reports that its peer holds no secondary which
// proves the commit of the primary. The primary's peer was restored from a backup, and the primary
// may have been removed after the backup was made.
func (s secondaryTask) unproved() {
	m := s.m
	m.Result.Unproved = append(m.Result.Unproved, s.Peer)
	s.finish()
}

// rival handles X, an object of another operation that has the name. It ends the strand if X is
// unclaimed or a primary. Otherwise it reads what decides about X: the record of the first release
// if X is undecided, else X's primary.
func (s secondaryTask) rival() {
	m := s.m
	switch {
	case s.X.Undecided():
		// X must be settled here: its peer may be a newcomer, and sweeps visit members only.
		s.send(stepRivalRecord, readRecord(s.X.Claim.Operation))
	case !s.X.Claimed, s.X.Primary(m.Op.Mode):
		s.obstructed(s.X, s.Peer)
	default:
		s.send(stepRival, readObject(s.X.Of(m.Op.Mode).Peer))
	}
}

// rivaled ends the strand because X, a secondary of another primary, has the name. y is the reply
// to a read of X's primary. Usually the peer stays unconfirmed: if one of the two primaries is
// committed, the other one is gone when the operation runs again. If Op.Prove is set, X may be
// evidence of a primary that the restored peer has forgotten. Then X's primary is the newer one, and
// the operation's primary stays unproved.
func (s secondaryTask) rivaled(y Reply) {
	m := s.m
	if m.Op.Prove && m.verdict(s.X, y) == lost {
		s.unproved()
		return
	}
	if y.Code == OK && (!y.Object.Claimed || m.Phase == electing || m.verdict(s.X, y) == leaving) {
		s.obstructed(y.Object, s.X.Of(m.Op.Mode).Peer)
		return
	}
	s.unconfirmed()
}

// discard begins to delete Op.Met, an object in a peer that is no member. The task reads the object
// again. It deletes a primary if the primary is Reserved, and a secondary if the PeerSet of its
// peer, read after the secondary, is neither Active nor Joining.
func (j coverJob) discard() {
	m := j.m
	m.enter(covering)
	m.spawn(taskDiscard, m.Op.Target)
}

// A discardTask deletes an object in a peer that is no member.
type discardTask struct{ strand }

func (s discardTask) step(r Reply) {
	switch s.Step {
	case stepStart, stepAgain:
		s.send(stepRead, readObject(s.Peer))
	case stepRead:
		s.afterRead(r)
	case stepSet:
		s.afterSet(r)
	case stepDelete:
		s.afterDelete(r)
	}
}

func (s discardTask) afterRead(r Reply) {
	m := s.m
	o := r.Object
	switch {
	case r.Code == NotFound, r.Code == OK && o.UID != m.Op.Met.UID:
		s.finish()
	case r.Code == OK && o.Primary(m.Op.Mode) && o.Stage != Reserved:
		// The reservation was committed meanwhile.
		s.finish()
	case r.Code == OK && (o.former(m.Op.Mode) || o.yielded(m.Op.Mode)):
		// The replicas that name this former home must be updated first.
		s.unconfirmed()
	case r.Code == OK && !o.Terminating && o.Primary(m.Op.Mode):
		s.send(stepDelete, deleteObject(s.Peer, o))
	case r.Code == OK && !o.Terminating:
		s.X = o
		s.send(stepSet, Command{Verb: ReadPeerSet, Peer: s.Peer})
	case !s.again(stepAgain):
		s.unconfirmed()
	}
}

func (s discardTask) afterSet(r Reply) {
	m := s.m
	switch state := r.PeerSet.Self.State; {
	case r.Code == OK && (state == peerActive || state == peerJoining):
		// The peer is a member again and may have received X as a member.
		m.because(Membership, s.Peer)
		s.finish()
	case r.Code == OK:
		s.send(stepDelete, deleteObject(s.Peer, s.X))
	case !s.again(stepAgain):
		s.unconfirmed()
	}
}

func (s discardTask) afterDelete(r Reply) {
	m := s.m
	m.Result.Removed = m.Result.Removed || r.Class == Applied
	if r.Code == Denied || !s.again(stepAgain) {
		s.unconfirmed()
	}
}

// afterCovering ends a cover or a discard.
func (j coverJob) afterCovering() {
	m := j.m
	if m.Forked.Claimed {
		mendJob{m}.begin()
		return
	}
	if m.Astray {
		// The home has moved. With a pending target, the membership change lists the peer again and
		// finds the new home.
		m.pend(m.Op.Target)
	}
	for _, s := range m.Strands {
		if s.Task == taskBring && s.X.Terminating {
			m.pend(s.Peer) // another process is about to remove our finalizer from this former home
		}
	}
	m.end(Done)
}
