// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// After the commit of an object that exists once, each of its guards is bound: one write, for which
// the caller does not wait, sets the guard's field Bound to the object. When all guards are bound,
// the object is durable: if its peer is restored from a backup older than the commit, the guards
// hold the name and prove the loss.

// A sealJob binds the guards of an object that exists once, after its commit.
type sealJob struct{ m *Machine }

// unbound reports whether guard x is to be bound to the committed primary.
func (j sealJob) unbound(x Object) bool {
	m := j.m
	return m.Op.Mode == Once && x.Bound == (Ref{}) && x.Claim.Record == "" && m.Primary.Committed()
}

// bindsGuards reports whether the operation has guards to bind.
func (j sealJob) bindsGuards() bool {
	m := j.m
	return m.Op.Mode == Once && (m.Op.Action == Add || m.Op.Action == Adopt) && !m.central() &&
		m.Result.Reason != alreadyDone && m.Primary.Committed()
}

// begin binds the guards after the commit is confirmed.
func (j sealJob) begin() {
	m := j.m
	m.ResultReady = len(m.Result.Pending) == 0 && m.Result.Reason != alreadyDone
	m.Stopping = false
	m.Result.Durable = true
	m.enter(sealing)
	for _, p := range m.Op.Peers {
		if p != m.Record.Primary.Peer {
			m.spawn(taskSeal, p)
		}
	}
}

// Promise returns the result for the caller, before the guards are bound, and whether this
// result is known yet.
func (m *Machine) Promise() (Result, bool) {
	r := m.Result
	r.Ending, r.Primary, r.Pending = Done, m.Record.Primary, nil
	return r, m.ResultReady
}

// sendBound binds guard x.
func (s sealedTask) sendBound(x Object) {
	m := s.m
	x.Bound = m.Record.Primary
	s.send(stepBound, Command{Verb: Put, Peer: s.Peer, Object: x, UID: x.UID, RV: x.RV})
}

// believed binds guard X if r, read after the primary, is the PeerSet of a full member. A restored
// peer proves no commit until it has rejoined.
func (s sealedTask) believed(r Reply, retry step) {
	m := s.m
	switch {
	case r.Code == OK && r.PeerSet.current():
		s.sendBound(s.X)
	case r.Code == OK || !s.again(retry):
		m.Result.Durable = false
		s.unconfirmed()
	}
}

// wasBound handles the reply to the write of sendBound. An API server with the schema of an
// earlier release rejects the write; the guard stays unbound then.
func (s sealedTask) wasBound(r Reply, retry step) {
	m := s.m
	switch {
	case r.Class == Applied:
		s.finish()
	case r.Code == Denied:
		s.undurable()
	case !s.again(retry):
		m.Result.Durable = false
		s.unconfirmed()
	}
}

// undurable ends the strand (the running task) without a bound guard. A sweep (a check and repair of
// all peers) may bind the guard later.
func (s sealedTask) undurable() {
	m := s.m
	m.Result.Durable = false
	s.finish()
}

// A sealTask binds the guard in its peer.
type sealTask struct{ sealedTask }

func (s sealTask) step(r Reply) {
	m := s.m
	switch s.Step {
	case stepStart:
		if c := m.Claims[s.Peer]; c.Held && (sealJob{m}).unbound(c.Object) {
			s.sendBound(c.Object)
			return
		}
		s.send(stepRead, readObject(s.Peer))
	case stepReread:
		s.send(stepRead, readObject(s.Peer))
	case stepRead:
		s.afterRead(r)
	case stepVerify:
		s.afterVerify(r)
	case stepBelieved:
		s.believed(r, stepReread)
	case stepBound:
		if r.Code == Conflict || r.Code == NotFound {
			s.send(stepRead, readObject(s.Peer))
			return
		}
		s.wasBound(r, stepReread)
	}
}

func (s sealTask) afterRead(r Reply) {
	m := s.m
	switch o := r.Object; {
	case r.Code == OK && o.Claimed && o.Of(Once) == m.Record.Primary && sealJob{m}.unbound(o):
		// The guard may come from a late create, after the removal.
		s.X = o
		s.send(stepVerify, readObject(m.Record.Primary.Peer))
	case r.Code == OK && o.Bound == m.Record.Primary:
		s.finish()
	case r.Code == OK, r.Code == NotFound, r.Code == Denied:
		// The guard was removed with its primary, or a sweep creates it again.
		s.undurable()
	case !s.again(stepReread):
		m.Result.Durable = false
		s.unconfirmed()
	}
}

func (s sealTask) afterVerify(r Reply) {
	m := s.m
	switch {
	case r.Code == OK && r.Object.UID == m.Record.Primary.UID && r.Object.Committed():
		s.send(stepBelieved, Command{Verb: ReadPeerSet, Peer: m.Record.Primary.Peer})
	case r.Code == OK, r.Code == NotFound, r.Code == Denied:
		s.undurable()
	case !s.again(stepReread):
		m.Result.Durable = false
		s.unconfirmed()
	}
}
