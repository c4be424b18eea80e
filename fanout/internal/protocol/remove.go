// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// A removeJob removes an object: it commits the removal, then deletes the secondaries, the content
// and the primary.
type removeJob struct{ m *Machine }

// begin starts the removal of the primary that was found, or continues it if it is committed already.
// If the object owns a namespace that must be empty, begin first lists the namespace in all peers.
func (j removeJob) begin() {
	m := j.m
	m.Op.UID = m.Primary.UID
	if !m.Primary.Leaving() {
		// If the log states that the removal is committed, the peer was restored to a state from
		// before the commit: commit the removal again.
		m.Reverted = m.Reverted || m.Record.Committed
		m.Record.Committed = false
	}
	switch {
	case m.Primary.Leaving():
		m.Record.Committed = true
		j.afterMark()
	case j.outdated(m.Primary):
		m.Result.Revision = m.Primary.Revision.Number
		m.because(Outdated, m.Record.Primary.Peer)
		m.end(Aborted)
	case m.Op.Holds:
		m.enter(listing)
		for _, p := range m.Op.Peers {
			m.spawn(taskList, p)
		}
	default:
		j.mark()
	}
}

// outdated reports whether the removal names another state of the primary than o.
func (j removeJob) outdated(o Object) bool {
	op := j.m.Op
	return op.Version != "" && op.Version != o.RV || op.Base != 0 && (op.Base != o.Revision.Number || o.Edited())
}

// mark continues to the commit. Before the commit it writes to the log that a commit may be sent,
// unless the log states it already, since an earlier attempt of this operation. Unsure can be set
// although the log does not state it: if the removal found its object Leaving, at a home that was
// replaced since. Such a removal has sent no commit.
func (j removeJob) mark() {
	m := j.m
	if m.Unsure && m.Record.Committing {
		m.enter(committing)
		m.spawn(taskMark, m.Record.Primary.Peer)
		return
	}
	m.Record.Committing = true
	m.enter(advancing)
	m.spawn(taskAdvance, "")
}

// A markTask commits the removal: the primary becomes Removing.
type markTask struct{ attempt }

func (s markTask) step(r Reply) {
	switch s.Step {
	case stepStart:
		s.sendPut()
	case stepReread:
		s.send(stepRead, readObject(s.Peer))
	case stepPut:
		s.attempted(r)
	case stepRead:
		s.afterRead(r)
	}
}

func (s markTask) afterRead(r Reply) {
	m := s.m
	o := r.Object
	switch {
	case (r.Code == NotFound || r.Code == OK && o.UID != m.Record.Primary.UID) && m.Op.Mode == Everywhere:
		m.astray(Object{}, "")
		s.finish()
	case r.Code == OK && m.strayed(o):
		m.astray(o, s.Peer)
		s.finish()
	case r.Code == NotFound, r.Code == OK && o.UID != m.Record.Primary.UID:
		// A removal is by UID, and the object with that UID is gone.
		m.Primary.UID = ""
		m.Record.Committed = true
		s.finish()
	case r.Code != OK:
		s.ask(Reply{Code: Unavailable})
	case o.Leaving():
		m.Primary = o
		m.Record.Committed = true
		s.finish()
	case o.Stage == Reserved:
		s.uncommitted()
	case removeJob{m}.outdated(o):
		// The primary has changed since the first attempt, so that attempt is void.
		m.Result.Revision = o.Revision.Number
		m.because(Outdated, s.Peer)
		m.Result.Ending = updateJob{m}.unmade(o)
		s.finish()
	case m.Expired && !m.Unsure:
		s.fail(Late)
	default:
		m.Primary = o
		s.sendPut()
	}
}

func (s markTask) sendPut() {
	m := s.m
	o := m.Primary
	o.Stage = Removing
	o.Removal = m.Op.ID
	o.Held = Held{}
	s.send(stepPut, Command{Verb: Put, Peer: s.Peer, Object: o, UID: o.UID, RV: o.RV})
}

// afterMark rolls a committed removal forward. If the object exists once, its guards are deleted
// after the foreign finalizers are gone, so that the name is held while the object is torn down. If
// it exists everywhere, its replicas are deleted first, and the primary, the tombstone, last.
func (j removeJob) afterMark() {
	m := j.m
	switch {
	case !m.Record.Committed && m.Op.Action == Sweep:
		// The next sweep judges the object again.
		m.pend(m.Record.Primary.Peer)
		m.end(Done)
	case !m.Record.Committed && m.Result.Reason == Outdated:
		m.end(m.Result.Ending)
	case !m.Record.Committed && m.Unsure:
		m.end(InDoubt)
	case !m.Record.Committed:
		m.end(Aborted)
	case m.Primary.UID == "":
		j.clearAfterPrimary()
	case m.Op.Mode == Once:
		m.Result.Reason = ""
		j.empty()
	default:
		m.Result.Reason = ""
		j.clear()
	}
}

// endUnfinished ends a removal that is committed and not complete. The log keeps the entry.
func (j removeJob) endUnfinished() {
	m := j.m
	m.Result.Keep = true
	m.end(Committed)
}
