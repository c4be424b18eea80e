// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// A replica never runs ahead of its home. One that does, or that has another
// operation's revision under the home's number, shows that the home's peer was
// restored from an older state. Neither confirms the other: the home gets the
// content of the later of the two operations under a number above both.

// Mend is a conflict of revisions that was reconciled: Kept is in force under
// Number, and the content of Dropped is in force nowhere.
type Mend struct {
	Number        int64
	Kept, Dropped Revision
}

// forked ends strand i, whose replica X contradicts the home.
func (m *Machine) forked(i int) {
	x := m.Strands[i].X
	if !m.Forked.Claimed || x.Revision.later(m.Forked.Revision) {
		m.Forked = x
	}
	m.finish(i)
}

// unmadeAt says whether home o does not have the revision that this update
// committed: its peer was restored from before it.
func (m *Machine) unmadeAt(o Object) bool {
	if m.Op.Action != Update || !m.Record.Committed || m.Result.Reason == alreadyDone || o.made(m.Op.ID) {
		return false
	}
	return o.Revision.Number < m.Result.Revision || len(o.History) > 0 && o.History[0].Number <= m.Result.Revision
}

// redo commits the update again: nobody was told yet that it is in effect.
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

// reconcile writes the home above what contradicts it.
func (m *Machine) reconcile() {
	if m.Turns++; m.Turns > takeovers {
		m.pend(m.Record.Primary.Peer)
		m.brought()
		return
	}
	m.enter(mending)
	m.spawn(jobMend, m.Record.Primary.Peer)
}

// reconciled is home o above replica x, with the content of the later operation.
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

// afterMending brings the replicas along with what the home has now.
func (m *Machine) afterMending() {
	if len(m.Result.Pending) > 0 {
		m.brought()
		return
	}
	m.Result.Revision = m.Primary.Revision.Number
	m.HaveSet = false
	m.bring()
}
