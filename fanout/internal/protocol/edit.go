// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// EditOperation takes the place of an operation's ID in a revision whose content a person or a tool
// wrote on the home itself. All processes that commit the edit write the same value, so any process
// may commit it.
const EditOperation = "edit"

// Edited reports whether the content of home o was changed without a revision. Such an edit
// requests the next revision. It takes effect in no other peer before that revision is
// committed.
func (o Object) Edited() bool {
	return o.InEffect() && o.Stage == Active && o.Primary(Everywhere) && !o.Home.Yielded &&
		o.Digest != "" && o.Revision.Digest != "" && o.Digest != o.Revision.Digest
}

// accepted returns home o with the revision that its edit requests. The content and the resource
// version stay as they were read.
func (o Object) accepted() Object {
	o.Revision = Revision{Number: o.Revision.Number + 1, Operation: EditOperation, Digest: o.Digest}
	o.History = append(append([]Revision(nil), o.History...), Revision{Number: o.Revision.Number, Operation: EditOperation})
	if len(o.History) > HistoryLength {
		o.History = o.History[len(o.History)-HistoryLength:]
	}
	return o
}

// An acceptJob commits a person's edit of the home before the operation continues.
type acceptJob struct{ m *Machine }

// begin commits a revision for the edit that was found on the home.
func (j acceptJob) begin() {
	m := j.m
	m.Stopping = false
	m.enter(accepting)
	m.spawn(taskAccept, m.Record.Primary.Peer)
}

// accept returns the command that commits the edit of home.
func (j acceptJob) accept(home Object) Command {
	o := home.accepted()
	return Command{Verb: Put, Peer: j.m.Record.Primary.Peer, Object: o, UID: o.UID, RV: o.RV}
}

// An acceptTask commits a person's edit of the home.
type acceptTask struct{ strand }

func (s acceptTask) step(r Reply) {
	m := s.m
	switch s.Step {
	case stepStart:
		s.send(stepPut, acceptJob{m}.accept(m.Primary))
	case stepPut:
		switch {
		case r.Class == Applied:
			m.Primary = r.Object
			s.finish()
		case !s.reread(r, tries):
			s.unaccepted(r)
		}
	case stepReread:
		s.send(stepRead, readObject(s.Peer))
	case stepRead:
		switch {
		case r.Code == NotFound, r.Code == OK && r.Object.UID != m.Record.Primary.UID:
			m.Primary.UID = ""
			s.finish()
		case r.Code != OK:
			if !s.reread(Reply{Code: Unavailable}, tries) {
				s.unaccepted(r)
			}
		case r.Object.Stage == Reserved:
			m.Result.Problem = reservedAgain
			m.because(Homeless, s.Peer)
			s.unconfirmed()
		case r.Object.Edited():
			m.Primary = r.Object
			s.send(stepPut, acceptJob{m}.accept(m.Primary))
		default:
			m.Primary = r.Object
			s.finish()
		}
	}
}

// unaccepted ends the strand (the running task) without a revision for the edit. A later sweep (a
// check and repair of all peers) commits the edit.
func (s acceptTask) unaccepted(r Reply) {
	m := s.m
	m.because(reasonOf(r), s.Peer)
	s.unconfirmed()
}

// afterAccepting continues the operation that found the edit. An update that is not committed begins again
// on the revision of the edit; any other operation brings that revision to all peers. If the edit got no
// revision, the update is aborted, and the other operation ends without it.
func (j acceptJob) afterAccepting() {
	m := j.m
	unaccepted := m.Primary.Edited()
	switch {
	case m.Op.Action == Update && !m.Record.Committed && m.Result.Reason != alreadyDone:
		m.Result.Pending = nil
		switch {
		case m.Primary.UID == "":
			m.because(Missing, m.Record.Primary.Peer)
			m.end(Aborted)
		case m.strayed(m.Primary):
			m.Result.Reason, m.Result.Peer = "", ""
			m.astray(m.Primary, m.Record.Primary.Peer)
			findJob{m}.regain()
		case unaccepted, m.Expired:
			m.because(Late, "")
			m.end(Aborted)
		default:
			updateJob{m}.begin()
		}
	case m.Primary.UID == "":
		// The home is gone: the operation that removed it also deletes the replicas.
		bringJob{m}.superfluous()
	case unaccepted:
		bringJob{m}.brought()
	default:
		bringJob{m}.begin()
	}
}
