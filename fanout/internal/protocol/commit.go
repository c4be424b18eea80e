// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// commit sends the one write that decides the operation. For an Everywhere kind it reads the
// membership in parallel, which saves activation a round trip: the replies to the creates count
// as reads of the replicas, and they came before.
func (m *Machine) commit() {
	m.spawn(jobCommit, m.Record.Primary.Peer)
	m.HaveSet = false
	if m.Op.Mode == Everywhere {
		m.spawn(jobLook, m.Record.Primary.Peer)
	}
}

// configured returns the primary as the commit writes it. The commit adds the finalizer: a
// Reserved primary has none of ours, so that a fence is one atomic delete, and a committed one
// is kept until its removal.
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
			// Our own delete of the reservation proves the abort.
			m.because(Late, s.Peer)
			m.Result.Ending = Aborted
			m.finish(i)
			return
		}
		m.ask(i, r)
	}
}

// ask reads the primary after a write of it that was not acknowledged. If it gives up, the
// ending is InDoubt when the write may have been the commit.
func (m *Machine) ask(i int, r Reply) {
	if r.Code == Denied {
		// An earlier attempt may still be applied, so this refusal is not final.
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

// attempted handles the reply to the put that commits an operation of any kind. Only a refusal
// without an earlier attempt of unknown result proves that nothing was committed; after any
// other failure it reads the primary.
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

// commitRead determines the outcome of a commit that was not acknowledged.
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
		// Another write changed the primary, or the commit has not landed: send it again on the
		// version that was read.
		m.Primary = o
		m.send(i, "put", Command{Verb: Put, Peer: s.Peer, Object: m.configured(), UID: o.UID, RV: o.RV})
	}
}

// patience returns how often a peer is asked about an attempt of unknown result.
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

// stepLook reads the membership from the primary's peer for the work after a commit. A failure
// does not fail the phase: without a membership nothing is confirmed.
func (m *Machine) stepLook(i int, r Reply) {
	s := &m.Strands[i]
	switch {
	case s.Step != "read":
		m.send(i, "read", Command{Verb: ReadPeerSet, Peer: s.Peer})
	case r.Code == OK && (m.Op.logged() || m.Op.Action == Sweep && m.passing()) && !r.PeerSet.current():
		// The peer is rejoining: its list is no membership yet, and the change that readmits it
		// decides about its objects.
		m.finish(i)
	case r.Code == OK:
		m.Set, m.HaveSet = r.PeerSet, true
		m.finish(i)
	case r.Code == NotFound || r.Code == Denied || !m.again(i, "retry"):
		m.finish(i)
	}
}
