// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// reservedAgain is the problem reported for a replica in effect whose home is only a
// reservation.
const reservedAgain = "its home there is a reservation again: the peer was restored from a backup"

// uncommitted ends the strand (the running task), which read a reservation where the home was
// committed. A reservation is neither updated nor removed.
func (s attempt) uncommitted() {
	m := s.m
	m.Result.Problem = reservedAgain
	s.fail(Homeless)
}

// A followTask searches for the present home. It reads the home that an object names; if that object
// is no longer the home and names a later one, it reads the later one, and so on. A move may have
// stopped after the old home yielded (gave up its place) to a replica that is not home yet. Then the
// task makes the replica home. If the replica is gone or being deleted, the task makes the old home
// home again, unless the replica's peer lists the old home's peer as removed by force. In that case
// the move may have been finished while that peer was no member, and the object moved again or
// removed since.
type followTask struct{ strand }

func (s followTask) step(r Reply) {
	m := s.m
	switch s.Step {
	case stepStart:
		s.X = m.Lead
		s.pursue()
	case stepReread:
		s.send(stepLead, readObject(s.Peer))
	case stepLead:
		switch {
		case r.Code == OK && r.Object.UID == s.X.UID && r.Object.Claimed:
			s.X = r.Object
			s.pursue()
		case r.Code == OK, r.Code == NotFound:
			s.homeless()
		default:
			s.halt(r)
		}
	case stepHome:
		s.pursued(r)
	case stepMembers:
		s.returned(r)
	case stepFinish, stepTakeBack:
		switch {
		case r.Class == Applied:
			at := s.Peer
			if s.Step == stepFinish {
				at = s.X.Home.Peer
			}
			m.Result.Mended = true
			s.regained(r.Object, at)
		case r.Code == Unavailable:
			s.halt(r)
		case r.Code == Denied, r.Code == NoSuchPeer:
			s.fail(Refused)
		default:
			s.send(stepLead, readObject(s.Peer))
		}
	}
}

// pursue ends the strand if X, in the strand's peer, is the home. Otherwise it reads the home that X
// names.
func (s followTask) pursue() {
	m := s.m
	switch {
	case s.X.Primary(m.Op.Mode):
		s.regained(s.X, s.Peer)
	case s.Turns > takeovers:
		s.fail(Contended)
	default:
		s.Turns++
		s.send(stepHome, readObject(s.X.Of(m.Op.Mode).Peer))
	}
}

// pursued acts on r, the reply to a read of the home that X names. The read began after X was read.
func (s followTask) pursued(r Reply) {
	m := s.m
	switch r.Code {
	case OK, NotFound:
		s.led(r)
	case NoSuchPeer:
		m.Result.Problem = "its home is in a peer that is not configured"
		s.failAt(Homeless, s.X.Of(m.Op.Mode).Peer)
	default:
		s.halt(r)
	}
}

// led continues from X to the home that X names. r is the reply to the read of the home.
func (s followTask) led(r Reply) {
	m := s.m
	x, y, at := s.X, r.Object, s.X.Of(m.Op.Mode)
	missing := r.Code == NotFound || y.UID != at.UID
	elect := r.Code == OK && x.elects(at.Peer, y)
	switch {
	case x.Home.frozen() && (missing || y.term() < x.term()):
		s.failAt(Homeless, at.Peer)
	case x.yielded(m.Op.Mode) && missing, elect && y.Terminating:
		// This move can no longer be finished: an object that is being deleted accepts no
		// finalizer, so the replica cannot become home.
		s.send(stepMembers, Command{Verb: ReadPeerSet, Peer: at.Peer})
	case elect:
		s.send(stepFinish, Command{Verb: Put, Peer: at.Peer, Object: y.successorOf(x), UID: y.UID, RV: y.RV})
	case missing:
		s.misled()
	case y.Primary(m.Op.Mode) && y.Stage == Reserved && x.active():
		m.Result.Problem = reservedAgain
		s.failAt(Homeless, at.Peer)
	case y.Primary(m.Op.Mode):
		s.regained(y, at.Peer)
	case y.term() > x.term():
		s.X, s.Peer = y, at.Peer
		s.pursue()
	default:
		// y was elected to replace a lost home: an unfinished removal by force will make it the home.
		s.failAt(Homeless, at.Peer)
	}
}

// returned makes the yielded home X home again, if the peer to which it has yielded does not list X's
// peer as removed by force.
func (s followTask) returned(r Reply) {
	switch x := s.X; {
	case r.Code == OK && r.PeerSet.current() && r.PeerSet.forced(s.Peer):
		s.homeless()
	case r.Code == OK, r.Code == NotFound:
		s.send(stepTakeBack, Command{Verb: Put, Peer: s.Peer, Object: x.takenBack(s.Peer), UID: x.UID, RV: x.RV})
	default:
		s.halt(r)
	}
}

// misled reads X once more, because X may have been written with another home since it was read. If
// X is unchanged, the strand ends without a home.
func (s followTask) misled() {
	if seen := s.X.UID + "@" + s.X.RV; s.Seen != seen {
		s.Seen = seen
		s.send(stepLead, readObject(s.Peer))
		return
	}
	s.homeless()
}

// failAt ends the strand for a reason in a peer other than its own.
func (s followTask) failAt(reason Reason, peer string) {
	m := s.m
	m.because(reason, peer)
	s.fail(reason)
}

// halt retries after a pause, or fails the strand if a peer refused or does not reply.
func (s followTask) halt(r Reply) {
	m := s.m
	at := s.Peer
	if s.Step == stepHome || s.Step == stepMembers || s.Step == stepFinish {
		at = s.X.Of(m.Op.Mode).Peer
	}
	if r.Code == Denied || r.Code == NoSuchPeer {
		s.failAt(Refused, at)
	} else if !s.again(stepReread) {
		s.failAt(Unreachable, at)
	}
}

// regained ends the strand: o, in peer at, is the primary.
func (s followTask) regained(o Object, at string) {
	m := s.m
	m.Primary = o
	m.Present = true
	m.Record.Primary = Ref{Peer: at, UID: o.UID}
	s.finish()
}

// homeless ends the strand because the primary does not exist. The objects that named it are dead:
// they are to be deleted.
func (s followTask) homeless() {
	m := s.m
	m.Lead, m.LeadAt = Object{}, ""
	s.finish()
}
