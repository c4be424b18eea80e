// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// outranked reports whether x names a later home than the one that is being brought.
func (m *Machine) outranked(x Object) bool {
	return m.Op.Mode == Everywhere && x.Claimed && x.term() > m.Primary.term()
}

// superseded reports whether x is of the same object in a later generation: its home was
// made while the home that is known here was absent.
func (m *Machine) superseded(x Object) bool {
	return m.outranked(x) && m.Primary.Claimed && x.Claim.Operation == m.Primary.Claim.Operation && x.term()/generation > m.Primary.term()/generation
}

// outdated reports whether x is a replica of the same object that names an earlier home.
func (m *Machine) outdated(x Object) bool {
	return m.Op.Mode == Everywhere && x.Claim.Operation == m.Primary.Claim.Operation && x.term() < m.Primary.term()
}

// retire removes our finalizer from former homes, after every strand of job j has confirmed
// that its peer names the present home, or has no object. Until then a former home must
// stay, because replicas that name it would be judged dead. Former homes of the earliest
// term come first: one that a removal found before it was updated may name a later one,
// which has moved on too. retire returns false if no former home is left.
func (m *Machine) retire(j job) bool {
	if len(m.Result.Pending) > 0 {
		return false
	}
	var next []Strand
	for _, s := range m.Strands {
		switch {
		case s.Job != j, !s.X.former(m.Op.Mode), m.retiring(s.Peer):
		case len(next) > 0 && s.X.term() > next[0].X.term():
		case len(next) > 0 && s.X.term() < next[0].X.term():
			next = []Strand{s}
		default:
			next = append(next, s)
		}
	}
	for _, s := range next {
		m.Strands = append(m.Strands, Strand{Job: jobRetire, Peer: s.Peer, X: s.X})
		m.step(len(m.Strands)-1, Reply{})
	}
	return len(next) > 0
}

// retiring reports whether a strand of this phase retires the former home in peer.
func (m *Machine) retiring(peer string) bool {
	return slices.ContainsFunc(m.Strands, func(s Strand) bool { return s.Job == jobRetire && s.Peer == peer })
}

// stepRetire removes our finalizer from the former home X, if this phase has visited all
// peers that the PeerSet of X's peer lists. Each of them may hold a replica that names X:
// the home's peer lists a joining peer before that peer gets replicas.
func (m *Machine) stepRetire(i int, r Reply) {
	s := &m.Strands[i]
	switch s.Step {
	case "", "reset":
		m.send(i, "set", Command{Verb: ReadPeerSet, Peer: s.Peer})
	case "set":
		if r.Code != OK {
			if !m.again(i, "reset") {
				m.unconfirmed(i)
			}
			return
		}
		for _, p := range r.PeerSet.reached() {
			if !m.covered(p) {
				m.pend(p)
			}
		}
		if len(m.Result.Pending) > 0 {
			m.finish(i)
			return
		}
		m.sendRetire(i)
	case "reread":
		m.send(i, "read", Command{Verb: Read, Peer: s.Peer})
	case "put":
		switch {
		case r.Class == Applied || r.Code == NotFound:
			m.retired(i)
		case r.Code == Unavailable:
			if !m.again(i, "reread") {
				m.unconfirmed(i)
			}
		case r.Code == Denied, r.Code == NoSuchPeer:
			m.unconfirmed(i)
		default:
			m.send(i, "read", Command{Verb: Read, Peer: s.Peer})
		}
	case "read":
		switch {
		case r.Code == NotFound, r.Code == OK && (r.Object.UID != s.X.UID || !r.Object.Finalizer):
			m.retired(i)
		case r.Code == OK && r.Object.former(m.Op.Mode) && (m.Phase == clearing || !r.Object.Home.Yielded):
			s.X = r.Object
			m.sendRetire(i)
		case r.Code == OK || r.Code == Denied || !m.again(i, "reread"):
			m.unconfirmed(i)
		}
	}
}

func (m *Machine) sendRetire(i int) {
	s := &m.Strands[i]
	o := s.X
	o.Finalizer, o.Home.Yielded = false, false
	m.send(i, "put", Command{Verb: Put, Peer: s.Peer, Object: o, UID: o.UID, RV: o.RV})
}

// retired ends strand i. If a person deleted the former home, it is gone now, and is
// created again as a replica. A removal deletes it itself.
func (m *Machine) retired(i int) {
	s := m.Strands[i]
	m.finish(i)
	switch {
	case m.Phase == clearing:
		m.spawn(jobClear, s.Peer)
	case s.X.Terminating:
		m.spawn(jobBring, s.Peer)
	}
}

// covered reports whether this phase visits peer.
func (m *Machine) covered(peer string) bool {
	return peer == m.Record.Primary.Peer || slices.ContainsFunc(m.Strands, func(s Strand) bool {
		return s.Peer == peer && (s.Job == jobBring || s.Job == jobClear)
	})
}
