// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// clear begins to delete the guards or replicas in all members. It reads the members again, because
// a peer may have joined since a read that came before the commit.
func (j removeJob) clear() {
	m := j.m
	m.Stopping = false
	m.HaveSet = false
	m.enter(clearing)
	m.spawn(taskLook, m.Record.Primary.Peer)
	if m.Op.Holds {
		m.spawn(taskList, m.Record.Primary.Peer)
	}
}

// clearAfterPrimary deletes the secondaries that still name a primary which is gone: guards in peers that
// were unreachable during its removal.
func (j removeJob) clearAfterPrimary() {
	m := j.m
	m.Result.Reason, m.Result.Peer = "", ""
	m.Primary = Object{}
	m.Record.Committed = true
	m.Stopping = false
	m.enter(clearing)
	bringJob{m}.spread(taskClear)
}

// A clearTask deletes the secondary of the removed object in its peer and waits until it is gone.
// Then it lists the namespace of the object there, if the object owns one.
type clearTask struct{ removedTask }

func (s clearTask) step(r Reply) {
	switch s.Step {
	case stepStart, stepReread:
		s.send(stepRead, readObject(s.Peer))
	case stepDelete:
		s.deleted(r)
	case stepRead:
		s.afterRead(r)
	case stepPrimary:
		s.afterPrimary(r)
	case stepJudge:
		s.afterJudge(r)
	}
}

func (s clearTask) afterRead(r Reply) {
	switch {
	case r.Code == NotFound:
		s.cleared()
	case r.Code == OK:
		s.found(r.Object)
	case r.Code == Denied, r.Code == NoSuchPeer:
		s.unconfirmed()
	default:
		s.retry(stepReread)
	}
}

// found acts on o, which has the name in the strand's peer.
func (s clearTask) found(o Object) {
	m := s.m
	switch {
	case m.Op.Action == Remove && retireJob{m}.superseded(o):
		// The home was replaced after its peer was removed by force: remove the new home.
		m.astray(o, s.Peer)
		s.finish()
	case !s.removed(o):
		s.other(o)
	case m.Primary.UID != "" && retireJob{m}.outranked(o):
		// The home that is being removed was taken for lost, and a later home has replaced it.
		s.unconfirmed()
	case o.former(m.Op.Mode):
		// The object was home: the replicas that name it are deleted first.
		s.X = o
		s.finish()
	case o.Terminating:
		s.retry(stepReread)
	default:
		// The primary's peer may have been restored meanwhile, and have the object in effect again.
		s.X = o
		s.send(stepPrimary, readObject(m.Record.Primary.Peer))
	}
}

// removed reports whether o is a secondary of the object that is being removed.
func (s clearTask) removed(o Object) bool {
	m := s.m
	same := m.Op.Mode == Everywhere && o.Claim.Operation == m.Primary.Claim.Operation
	return o.Claimed && !o.Primary(m.Op.Mode) && (o.Of(m.Op.Mode) == m.Record.Primary || o.Sibling(m.Primary) || same)
}

// rivals reports whether o is another object of the name in effect, in a peer that the PeerSet lists
// as Active. If the primary still exists after o was read, two objects held the name at once. Then a
// member was restored: otherwise an object takes effect only while it holds its name in all members.
func (s clearTask) rivals(o Object) bool {
	m := s.m
	other := o.Claimed && o.Claim.Operation != m.Primary.Claim.Operation
	return other && o.Primary(m.Op.Mode) && o.InEffect() && m.HaveSet && slices.Contains(m.Set.peers(peerActive), s.Peer)
}

// other handles o, which is no secondary of the removed object. Exception: an Active replica may
// belong to the same object and name an earlier home. Then other reads that home.
func (s clearTask) other(o Object) {
	m := s.m
	if m.Primary.UID != "" && s.rivals(o) {
		m.Result.Holder, m.Result.HolderAt = o, s.Peer
	}
	later := m.Record.Origin != "" && o.Claim.Operation != m.Record.Origin // o belongs to another object of this name
	replica := m.Op.Mode == Everywhere && o.Claimed && o.Stage == Active && !o.Primary(Everywhere)
	if later || !replica {
		s.cleared()
		return
	}
	s.X = o
	s.send(stepJudge, readObject(o.Of(m.Op.Mode).Peer))
}

func (s clearTask) afterPrimary(r Reply) {
	m := s.m
	gone := m.Primary.UID == "" // if the primary exists now, its peer was restored, and the removal must run again first
	switch {
	case r.Code == NotFound, r.Code == NoSuchPeer && gone, r.Code == OK && (r.Object.UID != m.Record.Primary.UID || r.Object.Leaving() && !gone):
		s.send(stepDelete, deleteObject(s.Peer, s.X))
	case r.Code == OK || r.Code == Denied || !s.again(stepReread):
		s.unconfirmed()
	}
}

func (s clearTask) afterJudge(r Reply) {
	m := s.m
	// X names an earlier home of the object that is being removed.
	switch m.verdict(s.X, r) {
	case dead:
		s.send(stepDelete, deleteObject(s.Peer, s.X))
	case lost:
		switch {
		case m.Record.Origin != "":
			s.send(stepDelete, deleteObject(s.Peer, s.X))
		case m.Primary.Claimed:
			// X belongs to a later object with the same name, which is lost.
			s.cleared()
		default:
			s.unconfirmed()
		}
	case owned, leaving, pending:
		s.cleared()
	default:
		s.retry(stepReread)
	}
}

func (s clearTask) cleared() {
	m := s.m
	peer := s.Peer
	s.finish()
	if m.Op.Holds && m.Primary.UID != "" {
		m.spawn(taskList, peer)
	}
}

func (j removeJob) afterClearing() {
	m := j.m
	begun := slices.ContainsFunc(m.Strands, func(s Strand) bool { return s.Task == taskClear && s.Seq > 0 })
	switch {
	case m.Astray:
		m.Record.Committed, m.Unsure = false, true
		findJob{m}.regain()
	case begun && retireJob{m}.begin(taskClear):
	case m.Primary.UID == "" && len(m.Result.Pending) > 0:
		j.endUnfinished()
	case m.Primary.UID == "":
		m.end(Done)
	case !begun && m.HaveSet && j.accompanied():
		bringJob{m}.spread(taskClear)
	case !begun && !m.HaveSet && len(m.Op.Peers) > 1:
		// The members are unknown, so nothing is confirmed.
		m.pend(m.Record.Primary.Peer)
		j.endUnfinished()
	case len(m.Result.Occupants) > 0:
		m.because(Occupied, m.Result.Occupants[0].Peer)
		j.endUnfinished()
	case m.Op.Mode == Everywhere && len(m.Result.Pending) > 0:
		// The primary stays, in stage Removing, until every replica is confirmed to be gone.
		j.endUnfinished()
	case m.Op.Mode == Everywhere:
		j.release()
	case j.onlyPrimaryLeadsTo():
		j.endUnfinished()
	default:
		// The primary is no longer needed: the log's entry stays until the guards in unreachable
		// peers are gone.
		j.drop()
	}
}

// onlyPrimaryLeadsTo reports whether the primary must stay because no log entry leads a later
// process to an unconfirmed guard. A sweep has no log entry. The entry of a removal that found its
// object already leaving does not record the removal yet. No entry names a peer that is not
// configured.
func (j removeJob) onlyPrimaryLeadsTo() bool {
	m := j.m
	return slices.ContainsFunc(m.Result.Pending, func(p string) bool {
		return m.Op.Action != Remove || !m.Record.Committing || !slices.Contains(m.Op.Peers, p)
	})
}

// accompanied reports whether the membership has a peer other than the primary's peer. The
// primary's peer need not list itself: a rejoining peer first lists only the other members.
func (j removeJob) accompanied() bool {
	m := j.m
	return slices.ContainsFunc(m.Set.reached(), func(p string) bool { return p != m.Record.Primary.Peer })
}
