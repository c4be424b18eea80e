// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// commit sends the one write that decides. For a kind that exists everywhere
// the membership is read beside it, so that activation costs one leg: the
// answers to the creates count as reads of the replicas, and they came before.
func (m *Machine) commit() {
	m.spawn(jobCommit, m.Record.Primary.Peer)
	m.HaveSet = false
	if m.Op.Mode == Everywhere {
		m.spawn(jobLook, m.Record.Primary.Peer)
	}
}

// configured is the primary as the commit makes it. The finalizer comes with
// the commit: a Reserved primary has none of ours, so that a fence is one
// atomic delete, and a committed one is held for its removal.
func (m *Machine) configured() Object {
	o := m.Primary
	o.Finalizer = true
	o.Payload = m.Op.Payload
	o.Stage = Configured
	if m.Op.Mode == Everywhere {
		o.Stage = Active
		o.Home = Home{Ref: m.Record.Primary, Term: 1}
		o.Revision = Revision{Number: 1, Operation: m.Op.ID, Digest: m.Op.Digest}
		o.History = []Revision{{Number: 1, Operation: m.Op.ID}}
	}
	return o
}

func (m *Machine) stepCommit(i int, r Reply) {
	s := &m.Strands[i]
	switch s.Step {
	case "":
		m.send(i, "put", Command{Verb: Put, Peer: s.Peer, Object: m.configured(), UID: m.Primary.UID, RV: m.Primary.RV})
	case "put":
		m.attempted(i, r)
	case "reread":
		m.send(i, "read", Command{Verb: Read, Peer: s.Peer})
	case "read":
		m.commitRead(i, r)
	case "take down":
		if r.Class == Applied {
			// The proof of an abort: our own delete of the reservation.
			m.because(Late, s.Peer)
			m.Result.Ending = Aborted
			m.finish(i)
			return
		}
		m.ask(i, r)
	}
}

// ask finds out what became of a write of the primary that was not answered
// with yes, or gives up, in doubt if it may have been the commit.
func (m *Machine) ask(i int, r Reply) {
	if r.Code == Denied {
		// An earlier attempt may yet be applied: this answer is not the last.
		r.Code = Unavailable
	}
	if m.reread(i, r, m.patience()) {
		return
	}
	m.because(Unreachable, m.Strands[i].Peer)
	if m.Unsure {
		m.Result.Ending = InDoubt
	}
	m.finish(i)
}

// attempted takes the answer to the put that commits an operation, whichever it
// is. Only a refusal with no attempt of unknown result before it proves that
// nothing was committed; everything else but a yes is asked for.
func (m *Machine) attempted(i int, r Reply) {
	switch {
	case r.Class == Applied:
		m.Primary = r.Object
		m.Record.Committed = true
		m.finish(i)
		return
	case r.Class == Unknown:
		m.Unsure = true
	case r.Code == Denied && !m.Unsure:
		m.fail(i, Refused)
		return
	}
	m.ask(i, r)
}

// commitRead decides what became of a commit that was not answered with yes.
func (m *Machine) commitRead(i int, r Reply) {
	s := &m.Strands[i]
	o := r.Object
	switch {
	case r.Code == NotFound, r.Code == OK && o.UID != m.Record.Primary.UID:
		m.because(Fenced, s.Peer)
		m.Result.Ending = Aborted
		if m.Unsure {
			// The commit may have been applied and the object removed since.
			m.Result.Ending = Ended
		}
		m.finish(i)
	case r.Code != OK:
		m.ask(i, Reply{Code: Unavailable})
	case o.InEffect() || o.Leaving():
		m.Primary = o
		m.Record.Committed = true
		m.finish(i)
	case o.Terminating:
		m.because(Fenced, s.Peer)
		m.Result.Ending = Aborted
		m.finish(i)
	case m.Expired:
		m.send(i, "take down", Command{Verb: Delete, Peer: s.Peer, UID: o.UID, RV: o.RV})
	default:
		// Somebody bumped it, or the commit has not landed: the same write
		// again, on what was read.
		m.Primary = o
		m.send(i, "put", Command{Verb: Put, Peer: s.Peer, Object: m.configured(), UID: o.UID, RV: o.RV})
	}
}

// patience is how often a peer is asked for the truth about an attempt of
// unknown result.
func (m *Machine) patience() int {
	switch {
	case m.Expired:
		return tries
	case m.Op.Patience == Patient:
		return 1 << 30
	default:
		return max(tries, m.Op.Lease)
	}
}

// stepLook reads the membership at the primary's peer for what follows from a
// commit. It does not fail the phase: without it nothing is confirmed.
func (m *Machine) stepLook(i int, r Reply) {
	s := &m.Strands[i]
	switch {
	case s.Step != "read":
		m.send(i, "read", Command{Verb: ReadPeerSet, Peer: s.Peer})
	case r.Code == OK && (m.Op.logged() || m.Op.Action == Sweep && m.passing()) && !r.PeerSet.current():
		// It comes back: what it lists is no membership yet, and whoever brings it back
		// decides what it holds.
		m.finish(i)
	case r.Code == OK:
		m.Set, m.HaveSet = r.PeerSet, true
		m.finish(i)
	case r.Code == NotFound || r.Code == Denied || !m.again(i, "retry"):
		m.finish(i)
	}
}
