// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"maps"
	"slices"
)

// An abortJob deletes the operation's own reservations: its objects in stage Reserved, which hold
// the name.
type abortJob struct{ m *Machine }

// begin begins to delete the operation's own reservations: the primary first, so that no commit can
// be applied while the secondaries are being deleted. An adoption has nothing to delete and ends.
func (j abortJob) begin() {
	m := j.m
	m.Stopping = true
	if m.Op.Action == Adopt {
		adoptJob{m}.unadopted()
		return
	}
	if !m.Present {
		j.clean()
		return
	}
	m.enter(fencing)
	m.spawn(taskFence, m.Record.Primary.Peer)
}

// A fenceTask deletes the operation's own primary, unless a read shows that it is committed.
type fenceTask struct{ strand }

func (s fenceTask) step(r Reply) {
	m := s.m
	switch s.Step {
	case stepStart:
		if m.Primary.UID == "" {
			s.send(stepRead, readObject(s.Peer))
			return
		}
		s.takeDown(m.Primary)
	case stepReread:
		s.send(stepRead, readObject(s.Peer))
	case stepDelete:
		switch {
		case r.Class == Applied:
			abortJob{m}.tookDown(s.X.UID)
			s.finish()
		case !s.reread(r, tries):
			s.unfenced()
		}
	case stepRead:
		o := r.Object
		switch {
		case r.Code == NotFound, r.Code == OK && o.Claim.Operation != m.Op.ID:
			abortJob{m}.gone()
			s.finish()
		case r.Code != OK:
			if !s.reread(Reply{Code: Unavailable}, tries) {
				s.unfenced()
			}
		case o.Stage != Reserved:
			m.Primary = o
			m.Record.Primary.UID = o.UID
			m.Record.Committed = true
			s.finish()
		case o.Terminating:
			abortJob{m}.tookDown(o.UID)
			s.finish()
		default:
			s.takeDown(o)
		}
	}
}

// takeDown deletes the reservation o.
func (s fenceTask) takeDown(o Object) {
	s.X = o
	s.send(stepDelete, deleteObject(s.Peer, o))
}

// tookDown records that the primary with the UID uid was not committed, and is deleted or
// terminating. Then the operation is Aborted. Exception: if a commit may have been applied to a
// primary with another UID, the operation is Ended, because it may have been in effect for a while.
// A create that was sent twice makes such a second primary, after the first one was committed and
// removed.
func (j abortJob) tookDown(uid string) {
	m := j.m
	m.Result.Ending = Aborted
	if m.Unsure && uid != m.Record.Primary.UID {
		m.Result.Ending = Ended
	}
}

// gone records that the primary does not exist. If no commit can have been applied, the operation
// is Aborted. Otherwise it is Ended: it may have been in effect before it was removed.
func (j abortJob) gone() {
	m := j.m
	m.Result.Ending = Aborted
	if m.Unsure {
		m.Result.Ending = Ended
	}
}

// unfenced ends the strand (the state of this task) although the primary may still exist: its peer
// is unreachable or refused the request. If a commit may have been applied, the ending is InDoubt.
func (s fenceTask) unfenced() {
	m := s.m
	peer := s.Peer
	abortJob{m}.leave(peer)
	if m.Unsure {
		m.Result.Ending = InDoubt
		m.because(Unreachable, peer)
	}
	s.finish()
}

// leave records that an object of the operation may still appear in peer.
func (j abortJob) leave(peer string) {
	m := j.m
	if m.Withdrawn {
		// The record of this add of the first release is deleted. So an object that appears late is dead: it
		// no longer holds the name.
		return
	}
	m.Result.Keep = true
	if !slices.Contains(m.Record.Leftover, peer) {
		m.Record.Leftover = append(m.Record.Leftover, peer)
	}
}

func (j abortJob) afterFencing() {
	m := j.m
	switch {
	case m.Record.Committed:
		m.Result.Ending, m.Result.Reason = Running, ""
		bringJob{m}.begin()
	case m.Result.Ending == InDoubt:
		m.end(InDoubt)
	default:
		j.clean()
	}
}

// clean deletes the operation's secondaries. Exception: if an Everywhere operation is Ended, its
// missing primary may have been committed, and its home may have moved to another peer. Then clean
// first searches for the home.
func (j abortJob) clean() {
	m := j.m
	if m.central() && m.Op.Mode == Everywhere && m.Result.Ending == Ended && !m.Searched {
		centralJob{m}.inquire()
		return
	}
	if m.Op.Mode == Everywhere && m.Result.Ending == Ended && !m.Searched {
		m.Record.Origin, m.Searched = m.Op.ID, true
		findJob{m}.begin()
		return
	}
	if m.Adrift {
		j.leave(m.Record.Primary.Peer)
	}
	m.enter(cleaning)
	for _, p := range slices.Sorted(maps.Keys(m.Claims)) {
		m.spawn(taskClean, p)
	}
}

// A cleanTask deletes the operation's own secondary in one peer.
type cleanTask struct{ strand }

func (s cleanTask) step(r Reply) {
	m := s.m
	c := m.Claims[s.Peer]
	if c.Unsure {
		abortJob{m}.leave(s.Peer)
	}
	switch s.Step {
	case stepStart:
		if !c.Held {
			s.send(stepRead, readObject(s.Peer))
			return
		}
		s.send(stepDelete, deleteObject(s.Peer, c.Object))
	case stepReread:
		s.send(stepRead, readObject(s.Peer))
	case stepDelete:
		switch {
		case r.Class == Applied:
			s.finish()
		case !s.reread(r, tries):
			abortJob{m}.leave(s.Peer)
			s.unconfirmed()
		}
	case stepRead:
		s.afterRead(r)
	}
}

func (s cleanTask) afterRead(r Reply) {
	m := s.m
	switch {
	case r.Code == OK && r.Object.Claim.Operation == m.Op.ID && r.Object.Pending() && abortJob{m}.ours(r.Object):
		s.send(stepDelete, deleteObject(s.Peer, r.Object))
	case r.Code == OK && m.Op.Mode == Everywhere && r.Object.Claim.Operation == m.Op.ID && r.Object.inEffectElsewhere():
		// The peer of the first home was restored and lacks the object. An object in another peer
		// may be the home by now, or may become it.
		m.Result.Ending, m.Result.Reason, m.Result.Peer = InDoubt, Suspect, s.Peer
		m.Result.Holder, m.Result.HolderAt = r.Object, s.Peer
		s.finish()
	case r.Code == OK, r.Code == NotFound:
		s.finish()
	case !s.reread(Reply{Code: Unavailable}, tries):
		abortJob{m}.leave(s.Peer)
		s.unconfirmed()
	}
}

// inEffectElsewhere reports whether o, read in another peer, shows that the object is in effect
// although the peer of its first home no longer has it. o shows it if it is evidence (an Active
// replica proves the commit), or if it is Active and names a home that was elected to replace a
// lost one. An object that a person has released shows nothing.
func (o Object) inEffectElsewhere() bool {
	return !o.Released && (o.Evidence(Everywhere) || o.active() && o.Home.Term > 0 && o.Home.Term%generation == 0)
}

func (j abortJob) afterCleaning() {
	m := j.m
	switch {
	case m.Result.Reason == alreadyDone:
		addJob{m}.alreadyDone()
	case m.Result.Ending == Running:
		m.end(Aborted)
	default:
		m.end(m.Result.Ending)
	}
}
