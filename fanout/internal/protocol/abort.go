// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"maps"
	"slices"
)

// An abortJob deletes the operation's own reservations.
type abortJob struct{ m *Machine }

// begin deletes the operation's own reservations: the primary first, so that no commit can land
// while the secondaries are being deleted.
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

// A fenceTask deletes the operation's own primary.
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

// tookDown records that the primary with the UID uid is deleted or terminating and was not
// committed. That proves the abort, with one exception: the commit may have been sent to a primary
// with another UID. A create that was sent twice can be applied after the first object was
// committed and removed.
func (j abortJob) tookDown(uid string) {
	m := j.m
	m.Result.Ending = Aborted
	if m.Unsure && uid != m.Record.Primary.UID {
		m.Result.Ending = Ended
	}
}

// gone records that the primary does not exist. If no commit was sent, the operation is Aborted;
// otherwise it is Ended.
func (j abortJob) gone() {
	m := j.m
	m.Result.Ending = Aborted
	if m.Unsure {
		m.Result.Ending = Ended
	}
}

// unfenced ends the strand although the primary may still exist.
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
		// The operation's record is gone, so an object that appears late is dead.
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

// clean deletes the operation's secondaries. If the primary is missing, it may have been committed,
// and its home may have moved. So an Everywhere operation with the ending Ended first searches for
// its home.
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
		// The object's first home was restored and lacks the object. Another peer may be its home
		// or may become it.
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

// inEffectElsewhere reports whether o, in a peer other than its first home, shows that the object is in
// effect although the first home no longer has it: o is evidence of its primary, or is Active and
// names a home that replaced a lost one. An object that a person has released shows nothing.
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
