// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// A retireJob removes our finalizer from former homes.
type retireJob struct{ m *Machine }

// outranked reports whether x names a later home than the present primary.
func (j retireJob) outranked(x Object) bool {
	m := j.m
	return m.Op.Mode == Everywhere && x.Claimed && x.term() > m.Primary.term()
}

// superseded reports whether x belongs to the primary's object, in a later generation: the
// home that x names was made while the primary's peer was no member.
func (j retireJob) superseded(x Object) bool {
	m := j.m
	return j.outranked(x) && m.Primary.Claimed && x.Claim.Operation == m.Primary.Claim.Operation && x.term()/generation > m.Primary.term()/generation
}

// outdated reports whether x belongs to the primary's object and names an earlier home.
func (j retireJob) outdated(x Object) bool {
	m := j.m
	return m.Op.Mode == Everywhere && x.Claim.Operation == m.Primary.Claim.Operation && x.term() < m.Primary.term()
}

// begin removes our finalizer from former homes, after every task of this kind has confirmed that
// the object in its peer names the present home, or that its peer has no object. Until then a former
// home must stay, because replicas that name it would be deleted as dead. Former homes of the
// earliest term come first: in a removal, a former home of an earlier term may still name one of a
// later term. begin returns false if it started no strand (running task): a peer has not confirmed,
// or no further former home is left.
func (j retireJob) begin(kind task) bool {
	m := j.m
	if len(m.Result.Pending) > 0 {
		return false
	}
	var next []Strand
	for _, s := range m.Strands {
		switch {
		case s.Task != kind, !s.X.former(m.Op.Mode), j.retiring(s.Peer):
		case len(next) > 0 && s.X.term() > next[0].X.term():
		case len(next) > 0 && s.X.term() < next[0].X.term():
			next = []Strand{s}
		default:
			next = append(next, s)
		}
	}
	for _, s := range next {
		m.start(Strand{Task: taskRetire, Peer: s.Peer, X: s.X})
	}
	return len(next) > 0
}

// retiring reports whether a strand of this phase retires the former home in peer.
func (j retireJob) retiring(peer string) bool {
	m := j.m
	return slices.ContainsFunc(m.Strands, func(s Strand) bool { return s.Task == taskRetire && s.Peer == peer })
}

// A retireTask removes our finalizer from the former home X, if this phase has visited all peers
// that the PeerSet of X's peer lists. Each of those peers may hold a replica that names X: the
// home's peer lists a joining peer before that peer gets replicas.
type retireTask struct{ strand }

func (s retireTask) step(r Reply) {
	switch s.Step {
	case stepStart, stepReset:
		s.send(stepSet, Command{Verb: ReadPeerSet, Peer: s.Peer})
	case stepSet:
		s.afterSet(r)
	case stepReread:
		s.send(stepRead, readObject(s.Peer))
	case stepPut:
		s.afterPut(r)
	case stepRead:
		s.afterRead(r)
	}
}

func (s retireTask) afterSet(r Reply) {
	m := s.m
	if r.Code != OK {
		s.retry(stepReset)
		return
	}
	for _, p := range r.PeerSet.reached() {
		if !(retireJob{m}).covered(p) {
			m.pend(p)
		}
	}
	if len(m.Result.Pending) > 0 {
		s.finish()
		return
	}
	s.sendPut()
}

func (s retireTask) afterPut(r Reply) {
	switch {
	case r.Class == Applied || r.Code == NotFound:
		s.retired()
	case r.Code == Unavailable:
		s.retry(stepReread)
	case r.Code == Denied, r.Code == NoSuchPeer:
		s.unconfirmed()
	default:
		s.send(stepRead, readObject(s.Peer))
	}
}

func (s retireTask) afterRead(r Reply) {
	m := s.m
	switch {
	case r.Code == NotFound, r.Code == OK && (r.Object.UID != s.X.UID || !r.Object.Finalizer):
		s.retired()
	case r.Code == OK && r.Object.former(m.Op.Mode) && (m.Phase == clearing || !r.Object.Home.Yielded):
		s.X = r.Object
		s.sendPut()
	case r.Code == OK || r.Code == Denied || !s.again(stepReread):
		s.unconfirmed()
	}
}

func (s retireTask) sendPut() {
	o := s.X
	o.Finalizer, o.Home.Yielded = false, false
	s.send(stepPut, Command{Verb: Put, Peer: s.Peer, Object: o, UID: o.UID, RV: o.RV})
}

// retired ends the strand. If a person deleted the former home, it is gone now, and a bringTask
// creates it again as a replica. In a removal, a clearTask deletes the former home instead.
func (s retireTask) retired() {
	m := s.m
	s.finish()
	switch {
	case m.Phase == clearing:
		m.spawn(taskClear, s.Peer)
	case s.X.Terminating:
		m.spawn(taskBring, s.Peer)
	}
}

// covered reports whether this phase visits peer.
func (j retireJob) covered(peer string) bool {
	m := j.m
	return peer == m.Record.Primary.Peer || slices.ContainsFunc(m.Strands, func(s Strand) bool {
		return s.Peer == peer && (s.Task == taskBring || s.Task == taskClear)
	})
}
