// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// A replica is never ahead of its home. A replica that is ahead, or has another operation's
// revision under the home's number, shows that the home's peer was restored from an older
// state. Neither revision confirms the other: the home gets the content of the later
// operation, under a number above both.

// Mend is a conflict of revisions that was reconciled: Kept is in effect under Number, and
// the content of Dropped is in effect in no peer.
type Mend struct {
	Number        int64
	Kept, Dropped Revision
}

// forked records replica X of strand i, which contradicts the home, and ends the strand.
func (m *Machine) forked(i int) {
	x := m.Strands[i].X
	if !m.Forked.Claimed || x.Revision.later(m.Forked.Revision) {
		m.Forked = x
	}
	m.finish(i)
}

// unmadeAt reports whether home o lacks the revision that this update committed, because
// its peer was restored from an older state.
func (m *Machine) unmadeAt(o Object) bool {
	if m.Op.Action != Update || !m.Record.Committed || m.Result.Reason == alreadyDone || o.made(m.Op.ID) {
		return false
	}
	return o.Revision.Number < m.Result.Revision || len(o.History) > 0 && o.History[0].Number <= m.Result.Revision
}

// redo commits the update again: its caller has no result yet.
func (m *Machine) redo() {
	m.Undone = false
	if m.Turns++; m.Turns > takeovers {
		m.pend(m.Record.Primary.Peer)
		m.brought()
		return
	}
	m.Record.Committed, m.Reverted = false, true
	m.Result.Pending = nil
	m.find()
}

// reconcile writes the home with a revision above that of the replica that contradicts it.
func (m *Machine) reconcile() {
	if m.Turns++; m.Turns > takeovers {
		m.pend(m.Record.Primary.Peer)
		m.brought()
		return
	}
	m.enter(mending)
	m.spawn(jobMend, m.Record.Primary.Peer)
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

func (m *Machine) stepMend(i int, r Reply) {
	s := &m.Strands[i]
	switch s.Step {
	case "", "reread":
		m.send(i, "read", Command{Verb: Read, Peer: s.Peer})
	case "read":
		o := r.Object
		switch {
		case r.Code == NotFound, r.Code == OK && (o.UID != m.Record.Primary.UID || m.strayed(o)):
			m.unconfirmed(i)
		case r.Code != OK:
			if r.Code == Denied || !m.again(i, "reread") {
				m.unconfirmed(i)
			}
		case o.Leaving(), o.Edited(), !m.Forked.lost(o):
			m.Primary = o
			m.finish(i)
		default:
			s.X = o
			mended := o.reconciled(m.Forked)
			m.send(i, "put", Command{Verb: Put, Peer: s.Peer, Object: mended, UID: o.UID, RV: o.RV})
		}
	case "put":
		switch {
		case r.Class == Applied:
			m.Primary = r.Object
			m.Result.Mended = true
			m.Result.Mend = Mend{Number: r.Object.Revision.Number, Kept: s.X.Revision, Dropped: m.Forked.Revision}
			if r.Object.Revision.Operation == m.Forked.Revision.Operation {
				m.Result.Mend.Kept, m.Result.Mend.Dropped = m.Forked.Revision, s.X.Revision
			}
			m.finish(i)
		case r.Code == Denied, !m.again(i, "reread"):
			m.unconfirmed(i)
		}
	}
}

// afterMending brings the home's new content to the replicas.
func (m *Machine) afterMending() {
	if len(m.Result.Pending) > 0 {
		m.brought()
		return
	}
	m.Result.Revision = m.Primary.Revision.Number
	m.HaveSet = false
	m.bring()
}
