// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// bind carries out a committed record: it brings the target's object into force and binds every
// other claim to it. It only writes existing objects and creates none. Any process may run it
// at any time.
func (m *Machine) bind() {
	m.Stopping = false
	m.enter(binding)
	m.spawn(jobConvert, m.Record.Primary.Peer)
	for _, p := range m.Op.Peers {
		if p != m.Record.Primary.Peer {
			m.spawn(jobBind, p)
		}
	}
}

// converted returns the target's claim x as the committed primary.
func (m *Machine) converted(x Object) Object {
	x.Finalizer = true
	if x.Payload == "" {
		x.Payload = m.Op.Payload
	}
	x.Stage = Configured
	if m.Op.Mode == Everywhere {
		first := Revision{Number: 1, Operation: x.Claim.Operation, Digest: x.Claim.Digest}
		x.Stage = Active
		x.Home = Home{Ref: Ref{Peer: x.Claim.Peer, UID: x.UID}, Term: 1}
		x.Revision = first
		first.Digest = ""
		x.History = []Revision{first}
	}
	return x
}

// stepConvert brings the target's object into force.
func (m *Machine) stepConvert(i int, r Reply) {
	s := &m.Strands[i]
	switch s.Step {
	case "", "reread":
		m.send(i, "read", Command{Verb: Read, Peer: s.Peer})
	case "put":
		if r.Class == Applied {
			m.Primary = r.Object
			m.finish(i)
			return
		}
		m.retake(i, r)
	case "read":
		switch {
		case r.Code == NotFound, r.Code == OK && r.Object.UID != m.Record.Primary.UID:
			// It came into force and has been removed since.
			m.Primary = Object{}
			m.finish(i)
		case r.Code == OK && r.Object.Stage != Reserved:
			m.Primary = r.Object
			m.finish(i)
		case r.Code == OK && !r.Object.Terminating:
			m.convert(i, r.Object)
		default:
			m.retake(i, Reply{Code: Unavailable})
		}
	}
}

func (m *Machine) convert(i int, x Object) {
	m.send(i, "put", Command{Verb: Put, Peer: m.Strands[i].Peer, Object: m.converted(x), UID: x.UID, RV: x.RV})
}

// retake handles a write of a claim that was not acknowledged: it reads the claim again, or
// ends strand i unconfirmed.
func (m *Machine) retake(i int, r Reply) {
	switch {
	case r.Code == Denied, r.Code == NoSuchPeer:
		m.unconfirmed(i)
	case r.Code != Unavailable:
		m.send(i, "read", Command{Verb: Read, Peer: m.Strands[i].Peer})
	case !m.again(i, "reread"):
		m.unconfirmed(i)
	}
}

// stepBind binds the claim in the strand's peer.
func (m *Machine) stepBind(i int, r Reply) {
	s := &m.Strands[i]
	switch s.Step {
	case "", "reread":
		m.send(i, "read", Command{Verb: Read, Peer: s.Peer})
	case "put":
		if r.Class == Applied {
			m.finish(i)
			return
		}
		m.retake(i, r)
	case "read":
		s.X = r.Object
		switch {
		case r.Code == OK && s.X.Undecided() && s.X.Claim.Operation == m.Op.ID && s.X.Claim.Record == m.Decision.UID:
			m.sendBind(i, m.Record.Primary)
		case r.Code == OK, r.Code == NotFound:
			// Bound by another process, or removed since.
			m.finish(i)
		default:
			m.retake(i, r)
		}
	}
}

// sendBind binds claim X of strand i to the primary that its record names.
func (m *Machine) sendBind(i int, of Ref) {
	x := m.Strands[i].X
	x.Bound = of
	m.send(i, "put", Command{Verb: Put, Peer: m.Strands[i].Peer, Object: x, UID: x.UID, RV: x.RV})
}

// afterBinding continues as after any commit. The record is deleted last, when no claim of it
// is undecided. A peer that has left the ring since need not bind its claim. The target's
// PeerSet shows that, read after the target's object came into force: so a peer that rejoins
// later gets its secondary again.
func (m *Machine) afterBinding() {
	asked := slices.ContainsFunc(m.Strands, func(s Strand) bool { return s.Job == jobLook })
	if asked && m.HaveSet {
		m.Result.Pending = slices.DeleteFunc(m.Result.Pending, m.Set.Gone)
		m.HaveSet = false
	}
	target := m.Record.Primary.Peer
	switch {
	case len(m.Result.Pending) > 0 && !asked && m.Primary.UID != "" && !slices.Contains(m.Result.Pending, target):
		m.spawn(jobLook, target)
	case len(m.Result.Pending) > 0 && m.Primary.UID == "" && !slices.Contains(m.Result.Pending, target):
		// The primary is gone, so the claims are dead.
		m.Result.Pending = nil
		m.end(Done)
	case slices.Contains(m.Result.Pending, target):
		m.inquire()
	case len(m.Result.Pending) > 0:
		m.Result.Keep = true
		m.end(Committed)
	case m.Primary.UID == "":
		m.end(Done)
	default:
		m.Result.Revision = m.Primary.Revision.Number
		m.bring()
	}
}

// recoverCentral settles an operation by its record: it aborts a pending record and finishes a
// committed one. It rolls no pending record forward, because the record's create may have been
// sent twice.
func (m *Machine) recoverCentral() { m.spawn(jobRecord, "") }

func (m *Machine) stepRecord(i int, r Reply) {
	s := &m.Strands[i]
	switch s.Step {
	case "", "reread":
		m.send(i, "read", Command{Verb: ReadRecord, Record: m.Op.ID})
	case "read":
		switch {
		case r.Code == NotFound:
			m.Withdrawn, m.Unsure = true, true
			m.send(i, "target", Command{Verb: Read, Peer: m.Op.Target})
		case r.Code != OK:
			if r.Code == Denied || !m.again(i, "reread") {
				m.because(Unreachable, "")
				m.Result.Ending = InDoubt
				m.finish(i)
			}
		case r.Decision.Committed:
			m.decided(i, *r.Decision)
		default:
			m.Decision = *r.Decision
			m.finish(i)
		}
	case "target again":
		m.send(i, "target", Command{Verb: Read, Peer: m.Op.Target})
	case "target":
		o := r.Object
		switch {
		case r.Code == OK && o.Claim.Operation == m.Op.ID && o.Claim.Primary && o.Stage != Reserved:
			m.Primary = o
			m.Record.Primary = Ref{Peer: s.Peer, UID: o.UID}
			m.Record.Committed = true
			m.finish(i)
		case r.Code == OK, r.Code == NotFound:
			m.Result.Ending = Ended
			m.Searched = r.Code == OK && o.Claim.Operation == m.Op.ID && o.Claim.Primary
			m.finish(i)
		case r.Code == Denied || !m.again(i, "target again"):
			m.because(Unreachable, m.Op.Target)
			m.Result.Ending = InDoubt
			m.finish(i)
		}
	}
}

func (m *Machine) afterRecord() {
	m.Stopping = false
	switch {
	case m.Result.Ending == Ended && m.Record.Committed:
		// The record was committed and is gone, so every peer has confirmed.
		m.end(Done)
	case m.Result.Ending == Ended:
		m.because(Late, "")
		m.clean()
	case m.Result.Ending == InDoubt && m.Withdrawn:
		m.inquire()
	case m.Result.Ending != Running:
		m.because(Late, "")
		m.end(m.Result.Ending)
	case m.Decision.UID == "" || m.Decision.Committed:
		m.Result.Reason = ""
		m.bind()
	default:
		// This record was never committed. If the log entry says committed, an earlier record
		// was, and this one comes from a late duplicate of the create.
		for _, p := range m.Op.Peers {
			m.Claims[p] = Claimed{}
		}
		m.because(Late, "")
		m.withdraw()
	}
}
