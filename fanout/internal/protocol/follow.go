// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// reservedAgain is the problem reported for a replica in force whose home is only a
// reservation.
const reservedAgain = "its home there is a reservation again: the peer was restored from a backup"

// uncommitted ends strand i, which read a reservation where the home was committed. A
// reservation is neither updated nor removed.
func (m *Machine) uncommitted(i int) {
	m.Result.Problem = reservedAgain
	m.failAt(i, Homeless, m.Strands[i].Peer)
}

// stepFollow follows the homes to the present one. If a home has yielded to a replica that does
// not know it yet, stepFollow makes the replica home, or makes the old home take its place back
// if the replica is gone or being deleted.
func (m *Machine) stepFollow(i int, r Reply) {
	s := &m.Strands[i]
	switch s.Step {
	case "":
		s.X = m.Lead
		m.pursue(i)
	case "reread":
		m.send(i, "lead", Command{Verb: Read, Peer: s.Peer})
	case "lead":
		switch {
		case r.Code == OK && r.Object.UID == s.X.UID && r.Object.Claimed:
			s.X = r.Object
			m.pursue(i)
		case r.Code == OK, r.Code == NotFound:
			m.homeless(i)
		default:
			m.halt(i, r)
		}
	case "home":
		m.pursued(i, r)
	case "finish", "take back":
		switch {
		case r.Class == Applied:
			at := s.Peer
			if s.Step == "finish" {
				at = s.X.Home.Peer
			}
			m.Result.Mended = true
			m.regained(i, r.Object, at)
		case r.Code == Unavailable:
			m.halt(i, r)
		case r.Code == Denied, r.Code == NoSuchPeer:
			m.fail(i, Refused)
		default:
			m.send(i, "lead", Command{Verb: Read, Peer: s.Peer})
		}
	}
}

// pursue takes the next step from X, in the strand's peer.
func (m *Machine) pursue(i int) {
	s := &m.Strands[i]
	switch {
	case s.X.Primary(m.Op.Mode):
		m.regained(i, s.X, s.Peer)
	case s.Turns > takeovers:
		m.fail(i, Contended)
	default:
		s.Turns++
		m.send(i, "home", Command{Verb: Read, Peer: s.X.Of(m.Op.Mode).Peer})
	}
}

// pursued acts on the object y that X names as its home, read after X.
func (m *Machine) pursued(i int, r Reply) {
	s := &m.Strands[i]
	x, y, at := s.X, r.Object, s.X.Of(m.Op.Mode)
	missing := r.Code == NotFound || r.Code == OK && y.UID != at.UID
	elect := r.Code == OK && x.elects(at.Peer, y)
	switch {
	case r.Code == NoSuchPeer:
		m.Result.Problem = "its home is in a peer that is not configured"
		m.failAt(i, Homeless, at.Peer)
	case r.Code != OK && r.Code != NotFound:
		m.halt(i, r)
	case x.frozen() && (missing || y.term() < x.term()):
		m.failAt(i, Homeless, at.Peer)
	case x.yielded(m.Op.Mode) && missing, elect && y.Terminating:
		// This move can no longer be finished: an object that is being deleted accepts no
		// finalizer, so the replica cannot become home.
		m.send(i, "take back", Command{Verb: Put, Peer: s.Peer, Object: x.takenBack(s.Peer), UID: x.UID, RV: x.RV})
	case elect:
		m.send(i, "finish", Command{Verb: Put, Peer: at.Peer, Object: y.successorOf(x), UID: y.UID, RV: y.RV})
	case missing && s.Seen != x.UID+"@"+x.RV:
		// It may have been written with another home since it was read.
		s.Seen = x.UID + "@" + x.RV
		m.send(i, "lead", Command{Verb: Read, Peer: s.Peer})
	case missing:
		m.homeless(i)
	case y.Primary(m.Op.Mode) && y.Stage == Reserved && x.inForce():
		m.Result.Problem = reservedAgain
		m.failAt(i, Homeless, at.Peer)
	case y.Primary(m.Op.Mode):
		m.regained(i, y, at.Peer)
	case y.term() > x.term():
		s.X, s.Peer = y, at.Peer
		m.pursue(i)
	default:
		// It becomes home in the removal by force of another peer, which is not finished.
		m.failAt(i, Homeless, at.Peer)
	}
}

// failAt ends strand i for a reason in a peer other than its own.
func (m *Machine) failAt(i int, reason Reason, peer string) {
	m.because(reason, peer)
	m.fail(i, reason)
}

// halt retries after a pause, or fails the strand.
func (m *Machine) halt(i int, r Reply) {
	s := &m.Strands[i]
	at := s.Peer
	if s.Step == "home" || s.Step == "finish" {
		at = s.X.Of(m.Op.Mode).Peer
	}
	if r.Code == Denied || r.Code == NoSuchPeer {
		m.failAt(i, Refused, at)
	} else if !m.again(i, "reread") {
		m.failAt(i, Unreachable, at)
	}
}

// regained ends strand i with the primary found.
func (m *Machine) regained(i int, o Object, at string) {
	m.Primary = o
	m.Present = true
	m.Record.Primary = Ref{Peer: at, UID: o.UID}
	m.finish(i)
}

// homeless ends strand i because the primary does not exist: the objects that named it are
// dead.
func (m *Machine) homeless(i int) {
	m.Lead, m.LeadAt = Object{}, ""
	m.finish(i)
}
