// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// EditOperation takes the place of an operation's ID in a revision whose content a person or a
// tool wrote on the home itself. All processes that commit the edit write the same value, so
// any of them may.
const EditOperation = "edit"

// Edited reports whether the content of home o was changed without a revision. The edit
// requests the next revision and has no effect in any peer before that.
func (o Object) Edited() bool {
	return o.InEffect() && o.Stage == Active && o.Primary(Everywhere) && !o.Home.Yielded &&
		o.Digest != "" && o.Revision.Digest != "" && o.Digest != o.Revision.Digest
}

// accepted returns home o with the revision that its edit requests. The content stays as it was
// read, and the write carries its resource version.
func (o Object) accepted() Object {
	o.Revision = Revision{Number: o.Revision.Number + 1, Operation: EditOperation, Digest: o.Digest}
	o.History = append(append([]Revision(nil), o.History...), Revision{Number: o.Revision.Number, Operation: EditOperation})
	if len(o.History) > HistoryLength {
		o.History = o.History[len(o.History)-HistoryLength:]
	}
	return o
}

// accept commits a revision for the edit that was found on the home.
func (m *Machine) accept() {
	m.Stopping = false
	m.enter(accepting)
	m.spawn(jobAccept, m.Record.Primary.Peer)
}

func (m *Machine) sendAccepted(i int, next step, home Object) {
	o := home.accepted()
	m.send(i, next, Command{Verb: Put, Peer: m.Record.Primary.Peer, Object: o, UID: o.UID, RV: o.RV})
}

func (m *Machine) stepAccept(i int, r Reply) {
	s := &m.Strands[i]
	switch s.Step {
	case "":
		m.sendAccepted(i, "put", m.Primary)
	case "put":
		switch {
		case r.Class == Applied:
			m.Primary = r.Object
			m.finish(i)
		case !m.reread(i, r, tries):
			m.unaccepted(i, r)
		}
	case "reread":
		m.send(i, "read", Command{Verb: Read, Peer: s.Peer})
	case "read":
		switch {
		case r.Code == NotFound, r.Code == OK && r.Object.UID != m.Record.Primary.UID:
			m.Primary.UID = ""
			m.finish(i)
		case r.Code != OK:
			if !m.reread(i, Reply{Code: Unavailable}, tries) {
				m.unaccepted(i, r)
			}
		case r.Object.Stage == Reserved:
			m.Result.Problem = reservedAgain
			m.because(Homeless, s.Peer)
			m.unconfirmed(i)
		case r.Object.Edited():
			m.Primary = r.Object
			m.sendAccepted(i, "put", m.Primary)
		default:
			m.Primary = r.Object
			m.finish(i)
		}
	}
}

// unaccepted ends strand i without a revision for the edit; a sweep continues.
func (m *Machine) unaccepted(i int, r Reply) {
	m.because(reasonOf(r), m.Strands[i].Peer)
	m.unconfirmed(i)
}

// afterAccepting continues the operation that found the edit.
func (m *Machine) afterAccepting() {
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
			m.regain()
		case unaccepted, m.Expired:
			m.because(Late, "")
			m.end(Aborted)
		default:
			m.revise()
		}
	case m.Primary.UID == "":
		// The removal is another operation and deletes the replicas.
		m.superfluous()
	case unaccepted:
		m.brought()
	default:
		m.bring()
	}
}
