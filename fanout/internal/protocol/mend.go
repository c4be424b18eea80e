// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// Normally a replica never has a higher revision than its home. If it has one, or has another
// operation's revision under the home's number, the home's peer was restored from an older state.
// Neither of the two revisions may simply replace the other: the home gets the content of the later
// operation, under a number above the numbers of both.

// Mend is a conflict of revisions that was reconciled: Kept is in effect under Number, and
// the content of Dropped is in effect in no peer.
type Mend struct {
	Number        int64
	Kept, Dropped Revision
}

// A mendJob reconciles a home and a replica whose revisions contradict each other.
type mendJob struct{ m *Machine }

// forked records replica X, which contradicts the home, and ends the strand (the running task). Of
// several such replicas it keeps the one with the latest revision.
func (s replicaTask) forked() {
	m := s.m
	x := s.X
	if !m.Forked.Claimed || x.Revision.later(m.Forked.Revision) {
		m.Forked = x
	}
	s.finish()
}

// unmadeAt reports whether home o lacks the revision that this update committed, because
// its peer was restored from an older state.
func (j mendJob) unmadeAt(o Object) bool {
	m := j.m
	if m.Op.Action != Update || !m.Record.Committed || m.Result.Reason == alreadyDone || o.History.has(m.Op.ID) {
		return false
	}
	return o.Revision.Number < m.Result.Revision || len(o.History) > 0 && o.History[0].Number <= m.Result.Revision
}

// redo commits the update again: its caller has no result yet.
func (j mendJob) redo() {
	m := j.m
	m.Undone = false
	if m.Turns++; m.Turns > takeovers {
		m.pend(m.Record.Primary.Peer)
		bringJob{m}.brought()
		return
	}
	m.Record.Committed, m.Reverted = false, true
	m.Result.Pending = nil
	findJob{m}.begin()
}

// begin writes the home with a revision above that of the replica that contradicts it.
func (j mendJob) begin() {
	m := j.m
	if m.Turns++; m.Turns > takeovers {
		m.pend(m.Record.Primary.Peer)
		bringJob{m}.brought()
		return
	}
	m.enter(mending)
	m.spawn(taskMend, m.Record.Primary.Peer)
}

// reconciled returns home o with a revision above replica x's, and the later operation's
// content.
func (o Object) reconciled(x Object) Object {
	kept := o.Revision
	if x.Revision.later(o.Revision) {
		kept, o.Payload = x.Revision, x.Payload
	}
	kept.Number = max(o.Revision.Number, x.Revision.Number) + 1
	o.Revision = kept
	o.History = append(append([]Revision(nil), o.History...), Revision{Number: kept.Number, Operation: kept.Operation})
	if len(o.History) > HistoryLength {
		o.History = o.History[len(o.History)-HistoryLength:]
	}
	return o
}

// A mendTask writes the home with a revision above that of the replica that contradicts it.
type mendTask struct{ strand }

func (s mendTask) step(r Reply) {
	m := s.m
	switch s.Step {
	case stepStart, stepReread:
		s.send(stepRead, readObject(s.Peer))
	case stepRead:
		o := r.Object
		switch {
		case r.Code == NotFound, r.Code == OK && (o.UID != m.Record.Primary.UID || m.strayed(o)):
			s.unconfirmed()
		case r.Code != OK:
			if r.Code == Denied || !s.again(stepReread) {
				s.unconfirmed()
			}
		case o.Leaving(), o.Edited(), !m.Forked.contradicts(o):
			m.Primary = o
			s.finish()
		default:
			s.X = o
			mended := o.reconciled(m.Forked)
			s.send(stepPut, Command{Verb: Put, Peer: s.Peer, Object: mended, UID: o.UID, RV: o.RV})
		}
	case stepPut:
		switch {
		case r.Class == Applied:
			m.Primary = r.Object
			m.Result.Mended = true
			m.Result.Mend = Mend{Number: r.Object.Revision.Number, Kept: s.X.Revision, Dropped: m.Forked.Revision}
			if r.Object.Revision.Operation == m.Forked.Revision.Operation {
				m.Result.Mend.Kept, m.Result.Mend.Dropped = m.Forked.Revision, s.X.Revision
			}
			s.finish()
		case r.Code == Denied, !s.again(stepReread):
			s.unconfirmed()
		}
	}
}

// afterMending brings the home's new content to the replicas.
func (j mendJob) afterMending() {
	m := j.m
	if len(m.Result.Pending) > 0 {
		bringJob{m}.brought()
		return
	}
	m.Result.Revision = m.Primary.Revision.Number
	m.HaveSet = false
	bringJob{m}.begin()
}
