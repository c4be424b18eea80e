// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"cmp"
	"slices"
)

// An addJob takes the name in all peers, the target first.
type addJob struct{ m *Machine }

// claim returns the object that reserves the name in peer.
func (j addJob) claim(peer string) Object {
	m := j.m
	o := Object{
		Claimed: true,
		Stage:   Reserved,
		Claim: Claim{
			Operation:   m.Op.ID,
			Coordinator: m.Op.Coordinator,
			Digest:      m.Op.Digest,
			Start:       m.Op.Start,
			Epoch:       m.Set.Epoch,
			Primary:     peer == m.Op.Target,
			Peer:        peer,
			Target:      m.Op.Target,
		},
	}
	if !o.Claim.Primary {
		o.Claim.Of = m.Record.Primary
	}
	if m.Op.Action == Adopt {
		return adoptJob{m}.waiting(o)
	}
	if m.Op.Mode == Everywhere {
		o.Revision = Revision{Number: 1, Operation: m.Op.ID, Digest: m.Op.Digest}
	}
	if !m.Op.Inert && (o.Claim.Primary || m.Op.Mode == Everywhere) {
		o.Payload = m.Op.Payload
	}
	return o
}

// An acquireTask takes the name in one peer: it creates the primary in the target, or a secondary
// in any other peer.
type acquireTask struct{ strand }

func (s acquireTask) step(r Reply) {
	m := s.m
	switch s.Step {
	case stepStart, stepRetry:
		s.create()
	case stepCreate:
		s.created(r)
	case stepRead:
		s.afterRead(r)
	case stepReread:
		s.send(stepRead, readObject(s.Peer))
	case stepRecord:
		s.decideByRecord(s.Peer, s.X, r)
	case stepPrimaryRecord:
		s.decideByRecord(s.X.Of(m.Op.Mode).Peer, s.Y, r)
	case stepDecided:
		s.decideByPrimary(r)
	case stepJudge:
		s.judged(m.verdict(s.X, r), r.Object)
	case stepFollow:
		s.afterFollow(r)
	case stepStray:
		s.afterStray(r)
	case stepFence:
		// Read the object that has the name again. If its primary was deleted, this object is dead: it no
		// longer holds the name, and may be deleted.
		s.takeover(r)
	case stepRemove:
		if r.Class == Applied || r.Code == NotFound {
			s.recreate()
			return
		}
		s.takeover(r)
	}
}

func (s acquireTask) afterRead(r Reply) {
	switch {
	case r.Code == OK:
		s.X = r.Object
		s.inspect()
	case r.Code == NotFound:
		s.recreate()
	case !s.again(stepReread):
		s.fail(Unreachable)
	}
}

func (s acquireTask) afterFollow(r Reply) {
	m := s.m
	if v := m.verdict(s.Y, r); v == owned || v == leaving {
		s.owner(s.Y.Of(m.Op.Mode).Peer, r.Object)
		return
	}
	s.linger()
}

func (s acquireTask) afterStray(r Reply) {
	m := s.m
	v := judgeStray(m.Op.Mode, s.X, r)
	if at := s.X.Of(m.Op.Mode).Peer; v == undecidable && !slices.Contains(m.Op.Peers, at) {
		if m.Result.Reason == "" {
			m.Result.Reason, m.Result.Peer = UnknownOwner, at
		}
		s.fail(UnknownOwner)
		return
	}
	s.judged(v, Object{})
}

// takeover handles the reply to a request that should free or settle the name, such as the delete
// of a dead object or of an abandoned reservation (a fence). It reads the object that has the name
// again. Instead it fails the strand (the state of this task) if the peer rejected the request, is
// not configured, or stays unavailable.
func (s acquireTask) takeover(r Reply) {
	switch {
	case r.Code == Denied, r.Code == NoSuchPeer:
		s.fail(Refused)
	case r.Code != Unavailable:
		s.send(stepRead, readObject(s.Peer))
	case !s.again(stepReread):
		s.fail(Unreachable)
	}
}

func (s acquireTask) created(r Reply) {
	switch {
	case r.Class == Applied:
		s.X = r.Object
		s.hold()
	case r.Code == Exists:
		// The object may come from this operation's own create, whose reply was lost.
		s.send(stepRead, readObject(s.Peer))
	case r.Class == Unknown:
		s.Unsure = true
		s.markUnsure()
		s.send(stepRead, readObject(s.Peer))
	case r.Code == Unavailable || r.Code == NoSuchPeer:
		if r.Code == NoSuchPeer || !s.again(stepRetry) {
			s.fail(Unreachable)
		}
	default:
		s.fail(Refused)
	}
}

// markUnsure records that a create in the strand's peer may still be applied at any time.
func (s acquireTask) markUnsure() {
	m := s.m
	if s.Peer == m.Op.Target {
		m.Present, m.Adrift = true, true
		return
	}
	c := m.Claims[s.Peer]
	c.Unsure = true
	m.Claims[s.Peer] = c
}

// hold ends the strand after it has taken the name.
func (s acquireTask) hold() {
	m := s.m
	s.finish()
	if s.Peer == m.Op.Target {
		m.Present = true
		m.Primary = s.X
		m.Record.Primary = Ref{Peer: s.Peer, UID: s.X.UID}
		return
	}
	m.Claims[s.Peer] = Claimed{Object: s.X, Held: true, Unsure: s.Unsure}
}

func (s acquireTask) recreate() {
	m := s.m
	if s.Turns++; s.Turns > takeovers && !m.Stopping && !m.Expired {
		s.fail(Contended)
		return
	}
	s.create()
}

func (s acquireTask) create() {
	m := s.m
	if m.Stopping || m.Expired {
		s.fail(Late)
		return
	}
	s.send(stepCreate, Command{Verb: Create, Peer: s.Peer, Object: addJob{m}.claim(s.Peer)})
}

// inspect decides how to treat the object that already has the name.
func (s acquireTask) inspect() {
	m := s.m
	o := s.X
	switch {
	case adoptJob{m}.guards(o) && o.Claim.Peer == s.Peer:
		s.hold()
	case adoptJob{m}.guards(o), m.Op.Action == Adopt && o.UID == m.Record.Primary.UID:
		m.Result.Peers = []string{cmp.Or(o.Claim.Peer, m.Op.Target)}
		s.fail(OneCluster)
	case o.Claimed && o.Claim.Operation == m.Op.ID && m.Op.Action != Adopt:
		s.ownObject()
	case (o.InEffect() || o.Leaving()) && o.Primary(m.Op.Mode), o.yielded(m.Op.Mode):
		s.owner(s.Peer, o)
	case o.Terminating:
		s.linger()
	case !o.Claimed:
		s.heldBy(HeldByOther, s.Peer, o)
	case o.Undecided():
		s.send(stepRecord, readRecord(o.Claim.Operation))
	case o.Primary(m.Op.Mode):
		s.rival(s.Peer, o)
	default:
		s.send(stepJudge, readObject(o.Of(m.Op.Mode).Peer))
	}
}

// ownObject handles an existing object that this operation created. Either the reply to the create was
// lost, or one cluster is configured under two peer names.
func (s acquireTask) ownObject() {
	m := s.m
	switch {
	case s.X.Claim.Peer != s.Peer:
		m.Result.Peers = []string{s.X.Claim.Peer}
		s.fail(OneCluster)
	case s.X.Terminating, s.Peer == m.Op.Target && s.X.Stage != Reserved:
		s.hold()
		m.because(Fenced, s.Peer)
		m.Stopping = true
	case s.Peer != m.Op.Target && s.X.Claim.Of != m.Record.Primary:
		// The secondary names another primary: it may come from a create that was sent twice. That reference
		// never changes, so the secondary is useless for this operation.
		s.markUnsure()
		s.fail(Contended)
	default:
		s.hold()
	}
}

// judged acts on the verdict v on s.X, the secondary that has the name. y is the primary of s.X, or
// the zero Object if no primary was read.
func (s acquireTask) judged(v verdict, y Object) {
	m := s.m
	at := s.X.Of(m.Op.Mode).Peer
	switch v {
	case dead:
		s.send(stepRemove, deleteObject(s.Peer, s.X))
	case pending:
		if y.Undecided() {
			s.Y = y
			s.send(stepPrimaryRecord, readRecord(y.Claim.Operation))
			return
		}
		s.rival(at, y)
	case moved:
		if y.yielded(m.Op.Mode) {
			s.owner(at, y)
			return
		}
		s.Y = y
		s.send(stepFollow, readObject(y.Of(m.Op.Mode).Peer))
	case fenced:
		s.linger()
	case owned, leaving:
		s.owner(at, y)
	case lost:
		s.heldBy(Suspect, s.Peer, s.X)
	case stray:
		s.send(stepStray, Command{Verb: ReadPeerSet, Peer: s.Peer})
	default:
		if !s.again(stepReread) {
			s.fail(Unreachable)
			if m.Result.Reason == Unreachable && m.Result.Peer == s.Peer {
				m.Result.Peer = at
			}
		}
	}
}

// linger waits one quantum (a fraction of the lease) and then reads the object that has the name
// again, in case it was deleted. It fails the strand instead if the operation is stopping or its
// deadline has passed. If Op.Patience is Hasty, it also fails the strand after one lease, but not
// before a few quanta have passed.
func (s acquireTask) linger() {
	m := s.m
	s.Tries++
	if m.Stopping || m.Expired || m.Op.Patience == Hasty && s.Tries > max(tries, m.Op.Lease) {
		s.heldBy(HeldByOther, s.Peer, s.X)
		return
	}
	s.pause(stepReread)
}
