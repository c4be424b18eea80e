// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// yieldedTo returns home o after it has yielded (given up its place) to the replica that elect
// names. From then on o takes no update and no removal. The next home starts with o's content.
func (o Object) yieldedTo(elect Ref) Object {
	o.Home = Home{Ref: elect, Term: o.term() + 1, Yielded: true}
	return o
}

// successorOf returns replica o as the next home, to which x has yielded.
func (o Object) successorOf(x Object) Object {
	o.Stage = x.Stage
	o.Home = Home{Ref: x.Home.Ref, Term: x.Home.Term}
	o.Payload, o.Revision, o.History = x.Payload, x.Revision, x.History
	o.Finalizer = true
	return o
}

// takenBack returns the yielded home o, in peer, as home again. A new term distinguishes it from
// the home that it was before.
func (o Object) takenBack(peer string) Object {
	o.Home = Home{Ref: Ref{Peer: peer, UID: o.UID}, Term: o.term() + 1}
	return o
}

// A moveJob makes the replica in the target the home.
type moveJob struct{ m *Machine }

// begin makes sure that the target of the move has a replica with the home's content. If the home
// is in the target already, or need not move, begin brings the object to all members instead. If
// the move is not possible, begin ends it.
func (j moveJob) begin() {
	m := j.m
	switch {
	case m.Record.Primary.Peer == m.Op.Target:
		if !m.Unsure && !m.Record.Arrived {
			m.Result.Reason = alreadyDone
		}
		m.Record.Committed, m.Record.Arrived = true, true
		bringJob{m}.begin()
	case m.Record.Arrived, !m.Op.logged() && !m.Op.evacuates(m.Record.Primary.Peer):
		// The move is over, or the home no longer needs to move: bring its content to all members.
		bringJob{m}.begin()
	case m.Resumed && m.Primary.UID != m.Op.UID:
		// Another operation has moved the home: an earlier attempt can no longer be applied.
		m.because(Contended, m.Record.Primary.Peer)
		j.refrain()
	case m.Primary.Leaving(), m.Primary.Stage != Active:
		m.Result.Holder, m.Result.HolderAt = m.Primary, m.Record.Primary.Peer
		m.because(HeldByOther, m.Record.Primary.Peer)
		j.refrain()
	case m.Turns > takeovers:
		m.because(Contended, m.Record.Primary.Peer)
		j.refrain()
	case m.Expired:
		m.because(Late, "")
		j.refrain()
	default:
		m.Record.Committed = false
		m.Result.Holder, m.Result.HolderAt = Object{}, ""
		m.enter(electing)
		m.spawn(taskPeerSet, m.Record.Primary.Peer)
		m.spawn(taskPeerSet, m.Op.Target)
		m.spawn(taskBring, m.Op.Target)
	}
}

// refrain ends a move without a commit: Ended if an earlier attempt may have been applied
// and undone since, else Aborted.
func (j moveJob) refrain() {
	m := j.m
	if m.Unsure {
		m.end(Ended)
		return
	}
	m.end(Aborted)
}

// afterElecting lets the home yield to the target's replica. The home does not yield if the target is no
// Active member, if the home's peer was removed by force, or if a read that shows this has failed.
func (j moveJob) afterElecting() {
	m := j.m
	var s Strand
	for _, t := range m.Strands {
		if t.Task == taskBring {
			s = t
		}
	}
	set, known := m.Sets[m.Op.Target]
	switch {
	case m.Astray:
		findJob{m}.regain()
	case known && (set.Self.State != "Active" || set.Self.Peer != m.Op.Target),
		m.HaveSet && !slices.Contains(m.Set.peers("Active"), m.Op.Target):
		m.Result.Problem = "peer " + m.Op.Target + " is not an active member"
		m.because(Membership, m.Op.Target)
		j.refrain()
	case known && set.forced(m.Record.Primary.Peer):
		// The home's peer was removed by force and is reachable again. The home may have been committed after that
		// removal, and the members may have deleted its replicas as dead.
		m.Result.Problem = "peer " + m.Record.Primary.Peer + " is not a member"
		m.because(Membership, m.Record.Primary.Peer)
		j.refrain()
	case m.Stopping, len(m.Result.Pending) > 0, !known, !m.HaveSet:
		m.Result.Pending = nil
		if m.Result.HolderAt != "" {
			// The target is reachable, but another object has the name there. It may not stay: its
			// operation, or a sweep (a check and repair of all peers), may still delete it.
			m.because(HeldByOther, m.Op.Target)
		}
		m.because(Unreachable, m.Op.Target)
		if m.Unsure {
			m.end(InDoubt)
			return
		}
		m.end(Aborted)
	case s.X.UID == "":
		// The target is no longer a member, or the object is gone.
		m.astray(Object{}, "")
		findJob{m}.regain()
	default:
		m.Record.Elect = Ref{Peer: m.Op.Target, UID: s.X.UID}
		m.Record.Committing = true
		m.enter(advancing)
		if m.Op.logged() {
			m.spawn(taskAdvance, "")
		}
	}
}

// A yieldTask commits the move: the home yields.
type yieldTask struct{ attempt }

func (s yieldTask) step(r Reply) {
	m := s.m
	switch s.Step {
	case stepStart:
		s.sendPut()
	case stepReread:
		s.send(stepRead, readObject(s.Peer))
	case stepPut:
		s.attempted(r)
	case stepRead:
		s.afterRead(r)
	case stepMembers:
		// The home has changed, so an earlier attempt can no longer be applied.
		switch {
		case r.Code != OK:
			s.ask(Reply{Code: Unavailable})
		case !slices.Contains(r.PeerSet.peers(peerActive), m.Op.Target):
			m.Result.Problem = "peer " + m.Op.Target + " is not an active member"
			m.because(Membership, m.Op.Target)
			s.fail(Membership)
		default:
			m.Primary = s.X
			s.sendPut()
		}
	}
}

func (s yieldTask) afterRead(r Reply) {
	m := s.m
	o := r.Object
	switch {
	case r.Code == NotFound, r.Code == OK && o.UID != m.Record.Primary.UID:
		m.astray(Object{}, "")
		s.finish()
	case r.Code != OK:
		s.ask(Reply{Code: Unavailable})
	case m.strayed(o):
		m.astray(o, s.Peer)
		s.finish()
	case m.Expired && !m.Unsure:
		s.fail(Late)
	case o.Leaving():
		m.Result.Holder, m.Result.HolderAt = o, s.Peer
		s.fail(HeldByOther)
	case o.RV == m.Primary.RV:
		s.sendPut()
	default:
		s.X = o
		s.send(stepMembers, Command{Verb: ReadPeerSet, Peer: s.Peer})
	}
}

func (s yieldTask) sendPut() {
	m := s.m
	o := m.Primary
	if o.Edited() {
		// The next home starts with committed content, so the yield commits the edit.
		o = o.accepted()
	}
	s.send(stepPut, Command{Verb: Put, Peer: s.Peer, Object: o.yieldedTo(m.Record.Elect), UID: o.UID, RV: o.RV})
}

// afterYield makes the elected replica home.
func (j moveJob) afterYield() {
	m := j.m
	switch {
	case m.Record.Committed:
		m.Result.Reason, m.Result.Peer = "", ""
		m.Unsure = true
		m.astray(m.Primary, m.Record.Primary.Peer)
		findJob{m}.regain()
	case m.Result.Ending == InDoubt:
		m.end(InDoubt)
	default:
		j.refrain()
	}
}
