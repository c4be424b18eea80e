// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

func (j removeJob) empty() {
	m := j.m
	m.Stopping = false
	m.enter(emptying)
	m.spawn(taskEmpty, m.Record.Primary.Peer)
}

// An emptyTask deletes the primary, which our finalizer holds, and waits until our finalizer is the
// only one left.
type emptyTask struct{ removedTask }

func (s emptyTask) step(r Reply) {
	m := s.m
	switch s.Step {
	case stepStart:
		s.send(stepDelete, deleteObject(s.Peer, m.Primary))
	case stepDelete:
		s.Fresh = r.Class == Applied
		s.deleted(r)
	case stepReread:
		s.send(stepRead, readObject(s.Peer))
	case stepRead:
		s.afterRead(r)
	}
}

func (s emptyTask) afterRead(r Reply) {
	m := s.m
	o := r.Object
	changed := m.Op.Mode == Everywhere && !(s.Fresh && o.Terminating) && o.RV != m.Primary.RV
	s.Fresh = false
	switch {
	case r.Code == NotFound, r.Code == OK && o.UID != m.Record.Primary.UID:
		m.Primary.UID = ""
		s.finish()
	case r.Code != OK:
		s.retry(stepReread)
	case !o.Leaving():
		// The peer was restored to a state from before the removal. The next sweep or recovery
		// runs the removal again.
		s.unconfirmed()
	case changed:
		s.changed(o)
	case !o.Terminating:
		s.send(stepDelete, deleteObject(s.Peer, o))
	case o.Foreign:
		if m.Expired || m.Resumed || m.Op.Action == Sweep {
			s.unconfirmed()
			return
		}
		m.Primary = o
		s.pause(stepReread)
	default:
		m.Primary = o
		s.finish()
	}
}

// A removedTask is a task that deletes an object of a committed removal.
type removedTask struct{ strand }

// changed ends the strand (the running task), because primary o has changed since its secondaries
// were deleted. The primary's peer may have been restored to a state from before the removal. Then
// another process may have created secondaries again before the primary was removed once more.
func (s removedTask) changed(o Object) {
	m := s.m
	m.Primary = o
	m.Changed = true
	s.finish()
}

// clearAgain deletes the secondaries again if a strand found the primary changed, and reports
// whether the primary had changed.
func (j removeJob) clearAgain() bool {
	m := j.m
	if !m.Changed {
		return false
	}
	m.Changed = false
	if m.Turns++; m.Turns > takeovers {
		m.pend(m.Record.Primary.Peer)
		j.endUnfinished()
		return true
	}
	j.clear()
	return true
}

// deleted handles the reply to a delete of a removal. The reply proves nothing, so the
// strand reads the object next.
func (s removedTask) deleted(r Reply) {
	switch {
	case r.Code == Denied, r.Code == NoSuchPeer:
		s.unconfirmed()
	case r.Code != Unavailable:
		s.send(stepRead, readObject(s.Peer))
	case !s.again(stepReread):
		s.unconfirmed()
	}
}

func (j removeJob) afterEmptying() {
	m := j.m
	switch {
	case len(m.Result.Pending) > 0:
		j.endUnfinished()
	case m.Primary.UID == "" && m.Op.Mode == Once && m.Op.Action == Remove:
		// Another process of this removal may have left guards to which only the log's entry leads.
		j.clearAfterPrimary()
	case m.Primary.UID == "":
		m.end(Done)
	case m.Op.Mode == Once:
		j.clear()
	case j.clearAgain():
	default:
		j.drop()
	}
}

// release asks the kind to delete the objects that the kind made in each peer.
func (j removeJob) release() {
	m := j.m
	m.enter(releasing)
	m.spawn(taskRelease, m.Record.Primary.Peer)
	bringJob{m}.spread(taskRelease)
}

// A releaseTask asks the kind to delete the objects that the kind made in one peer.
type releaseTask struct{ strand }

func (s releaseTask) step(r Reply) {
	m := s.m
	switch {
	case s.Step != stepRelease:
		s.send(stepRelease, Command{Verb: Release, Peer: s.Peer, Object: m.Primary})
	case r.Class == Applied:
		s.finish()
	case !s.again(stepRetry):
		s.unconfirmed()
	}
}

func (j removeJob) afterReleasing() {
	m := j.m
	if len(m.Result.Pending) > 0 {
		j.endUnfinished()
		return
	}
	j.empty()
}

// drop removes our finalizer from the primary, the last step of a removal.
func (j removeJob) drop() {
	m := j.m
	m.enter(dropping)
	m.spawn(taskDrop, m.Record.Primary.Peer)
}

// A dropTask removes our finalizer from the primary.
type dropTask struct{ removedTask }

func (s dropTask) step(r Reply) {
	m := s.m
	switch s.Step {
	case stepStart:
		s.sendPut()
	case stepPut:
		if r.Class == Applied || r.Code == NotFound && r.Class == NotApplied {
			s.Fresh = r.Class == Applied
			s.finish()
			return
		}
		s.deleted(r)
	case stepReread:
		s.send(stepRead, readObject(s.Peer))
	case stepRead:
		switch {
		case r.Code == NotFound, r.Code == OK && r.Object.UID != m.Record.Primary.UID:
			s.finish()
		case r.Code != OK:
			s.retry(stepReread)
		case !r.Object.Leaving(), !r.Object.Terminating:
			// The peer was restored to a state from before the removal. The next sweep or recovery
			// runs the removal again.
			s.unconfirmed()
		case r.Object.RV != m.Primary.RV:
			s.changed(r.Object)
		default:
			s.sendPut()
		}
	}
}

func (s dropTask) sendPut() {
	m := s.m
	o := m.Primary
	o.Finalizer = false
	s.send(stepPut, Command{Verb: Put, Peer: s.Peer, Object: o, UID: o.UID, RV: o.RV})
}

func (j removeJob) afterDropping() {
	m := j.m
	switch {
	case len(m.Result.Pending) > 0:
		j.endUnfinished()
	case j.clearAgain():
	default:
		if m.Op.Action == Remove && m.Result.HolderAt != "" && m.Strands[0].Fresh {
			m.because(HeldByOther, m.Result.HolderAt)
		}
		m.end(Done)
	}
}
