// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// A peer that was removed by force may rejoin with homes that were replaced in its absence. The
// higher term of the successor shows the replacement. The membership change that made the successor
// held the slots (locks in the PeerSets) of all members, so no Active object in a member names the
// old home.

// A resignJob deletes a home that was replaced while its peer was no member.
type resignJob struct{ m *Machine }

// begin compares Met, a home or former home in a rejoining peer, with the objects of the members
// Into. It deletes Met if another home has replaced it.
func (j resignJob) begin() {
	m := j.m
	m.Primary = m.Op.Met
	m.enter(surveying)
	for _, p := range m.Op.Into {
		m.spawn(taskSurvey, p)
	}
}

// awaits reports whether o, Reserved in a member, names as its home the former home Met in the
// rejoining peer.
func (j resignJob) awaits(o Object) bool {
	m := j.m
	met := m.Op.Met
	return m.Op.Action == Resign && o.Pending() && !met.Primary(Everywhere) && o.Of(Everywhere) == Ref{Peer: m.Op.Target, UID: met.UID}
}

// void raises the heartbeat of o. A process that is about to activate o may have read Met when Met
// was still the home; the new resourceVersion of o voids the write of such a process.
func (s surveyTask) void(o Object) {
	o.Heartbeat++
	s.send(stepVoid, Command{Verb: Put, Peer: s.Peer, Object: o, UID: o.UID, RV: o.RV})
}

func (s surveyTask) voided(r Reply) {
	switch {
	case r.Class == Applied:
		s.X = r.Object
		s.finish()
	case r.Code == Denied, r.Code == NoSuchPeer, !s.again(stepRetry):
		s.unconfirmed()
	}
}

// A comparison summarizes the objects that the members have in place of a former home.
type comparison struct {
	latest Object // the committed object of the highest term
	known  bool   // a member has the object in effect, or its claim names a record
	named  bool   // a member has the object in effect, which names the former home
}

func comparisonOf(strands []Strand, own Ref) comparison {
	var v comparison
	for _, s := range strands {
		v.named = v.named || s.X.active() && s.X.Of(Everywhere) == own
		v.known = v.known || s.X.active() || s.X.Claim.Record != ""
		if s.X.Claimed && s.X.Stage != Reserved && (!v.latest.Claimed || s.X.term() > v.latest.term()) {
			v.latest = s.X
		}
	}
	return v
}

// successor returns the home that replaced own, a home or former home, and the successor's term. ok
// is false if no home replaced own.
func (v comparison) successor(own Object) (home Ref, term int64, ok bool) {
	former := !own.Primary(Everywhere)
	later := generationOf(v.latest.term()) > generationOf(own.term()) || former && v.latest.term() >= own.term()
	switch {
	case v.latest.Claimed && later:
		return v.latest.Of(Everywhere), v.latest.term(), true
	case former && !v.known && (!own.yielded(Everywhere) || own.Terminating):
		// No member has the object in effect. A yielded home may then be the last object with this
		// content, so it is retired only if a client has deleted it already.
		return own.Of(Everywhere), own.term(), true
	default:
		return Ref{}, 0, false
	}
}

// afterComparing deletes Met if another home has replaced it. It handles any other former home, and
// a home whose removal is committed, as a sweep (a check and repair of all peers) does. It leaves
// alone a home whose object is Active in a member, or has a claim of the first release there. If the
// members have neither, the object may have been removed since: Result.Reason is Missing.
func (j resignJob) afterComparing() {
	m := j.m
	own := m.Primary
	home := own.Primary(Everywhere)
	v := comparisonOf(m.Strands, Ref{Peer: m.Op.Target, UID: own.UID})
	successor, term, replaced := v.successor(own)
	switch {
	case len(m.Result.Pending) > 0:
		m.end(Done)
	case !home && v.named && generationOf(v.latest.term()) <= generationOf(own.term()):
		// The home moved, and a member still names Met. If no other object is home, Met becomes
		// home again.
		m.Op.Action = Sweep
		m.astray(own, m.Op.Target)
		findJob{m}.regain()
	case replaced:
		j.succeededBy(successor, term)
	case !home && !v.known && !own.Terminating:
		// The replica that Met yielded to may have been home, and been removed since.
		m.because(Missing, m.Op.Target)
		m.end(Done)
	case !home, own.Leaving():
		m.Op.Action = Sweep
		sweepJob{m}.begin()
	case !v.known:
		m.because(Missing, m.Op.Target)
		m.end(Done)
	default:
		m.end(Done)
	}
}

// succeededBy deletes Met, a home or former home, because another home has replaced it. The
// parameters are the successor and the successor's term.
func (j resignJob) succeededBy(home Ref, term int64) {
	m := j.m
	m.Record.Elect, m.Record.Term = home, term
	m.enter(resigning)
	m.spawn(taskResign, m.Op.Target)
}

// A resignTask writes the successor into the former home, deletes that object, and removes its
// finalizer last. Without the finalizer, the former home would look like any other replica, although
// it may have revisions that its successor never received.
type resignTask struct{ strand }

func (s resignTask) step(r Reply) {
	switch s.Step {
	case stepStart, stepAgain:
		s.send(stepRead, readObject(s.Peer))
	case stepRead:
		s.afterRead(r)
	case stepSet:
		s.afterSet(r)
	case stepPut, stepDelete:
		s.afterPut(r)
	}
}

func (s resignTask) afterRead(r Reply) {
	m := s.m
	switch {
	case r.Code == NotFound, r.Code == OK && r.Object.UID != m.Op.Met.UID:
		s.finish()
	case r.Code == OK && r.Object.term() > m.Record.Term:
		s.unconfirmed()
	case r.Code == OK:
		s.X = r.Object
		s.send(stepSet, Command{Verb: ReadPeerSet, Peer: s.Peer})
	case r.Code == Denied, r.Code == NoSuchPeer, !s.again(stepAgain):
		s.unconfirmed()
	}
}

// afterSet deletes X if its peer, by the PeerSet that was read after X, is Quarantined or Out, or is Joining and X is a
// home or being deleted. Otherwise this process may be late, and the peer may need X as a replica: if X has yielded or
// is a former home, the present home is brought to all members.
func (s resignTask) afterSet(r Reply) {
	m := s.m
	switch state := r.PeerSet.Self.State; {
	case r.Code != OK:
		if !s.again(stepAgain) {
			s.unconfirmed()
		}
	case state == peerQuarantined, state == peerOut, state == peerJoining && (s.X.Primary(Everywhere) || s.X.Terminating):
		s.retire()
	case s.X.yielded(Everywhere), s.X.former(Everywhere):
		m.Op.Action = Sweep
		m.astray(s.X, s.Peer)
		s.finish()
	default:
		s.unconfirmed()
	}
}

// retire takes the next step to delete X: it writes the successor into X, then deletes X, then removes
// our finalizer.
func (s resignTask) retire() {
	m := s.m
	home := Home{Ref: m.Record.Elect, Term: m.Record.Term}
	switch o := s.X; {
	case o.Home != home:
		o.Home = home
		s.send(stepPut, Command{Verb: Put, Peer: s.Peer, Object: o, UID: o.UID, RV: o.RV})
	case !o.Terminating:
		s.send(stepDelete, deleteObject(s.Peer, o))
	case o.Finalizer:
		o.Finalizer = false
		s.send(stepPut, Command{Verb: Put, Peer: s.Peer, Object: o, UID: o.UID, RV: o.RV})
	default:
		// Another finalizer holds X.
		s.unconfirmed()
	}
}

func (s resignTask) afterPut(r Reply) {
	m := s.m
	m.Result.Removed = m.Result.Removed || r.Class == Applied
	switch {
	case r.Class == Applied && m.Op.Met.Primary(Everywhere):
		// Met is no longer home: the next list compares it with the members again.
		s.finish()
	case r.Class == Applied:
		s.send(stepRead, readObject(s.Peer))
	case r.Code == Denied || !s.again(stepAgain):
		s.unconfirmed()
	}
}
