// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// sweep judges the listed object Met and repairs what belongs to it.
func (m *Machine) sweep() {
	x := m.Op.Met
	m.Primary = x
	switch {
	case !x.Claimed:
		m.end(Done)
	case x.Primary(m.Op.Mode) && x.Committed():
		m.Record.Primary = Ref{Peer: m.Op.Target, UID: x.UID}
		m.Record.Committed = true
		if m.Op.Mode == Everywhere {
			m.bring()
			return
		}
		m.enter(bringing)
		m.spawn(jobActivate, m.Op.Target)
		m.spawn(jobLook, m.Op.Target)
	case x.Requested():
		m.Record.Primary = Ref{Peer: m.Op.Target, UID: x.UID}
		m.consider()
	case x.Primary(m.Op.Mode) && x.Leaving():
		m.Record.Primary = Ref{Peer: m.Op.Target, UID: x.UID}
		m.Record.Committed = true
		m.afterMark()
		m.proceed()
	default:
		m.enter(judging)
		m.spawn(jobJudge, m.Op.Target)
	}
}

// afterJudging ends a sweep, or continues with the home that a strand found.
func (m *Machine) afterJudging() {
	if m.Astray {
		m.regain()
		return
	}
	m.end(Done)
}

// stepJudge judges a reservation, primary or secondary, and deletes a dead one. It fences a
// pending primary only if the lease has run out while this strand watched it.
func (m *Machine) stepJudge(i int, r Reply) {
	s := &m.Strands[i]
	switch s.Step {
	case "":
		s.X = m.Op.Met
		m.look(i)
	case "reread":
		m.send(i, "met", Command{Verb: Read, Peer: s.Peer})
	case "met":
		switch {
		case r.Code == OK && r.Object.UID == m.Op.Met.UID:
			s.X = r.Object
			m.look(i)
		case r.Code == OK || r.Code == NotFound:
			m.finish(i)
		case !m.again(i, "reread"):
			m.unconfirmed(i)
		}
	case "record":
		m.sweepRecord(i, s.Peer, s.X, r)
	case "primary record":
		m.sweepRecord(i, s.X.Of(m.Op.Mode).Peer, s.Y, r)
	case "decided":
		m.sweepDecided(i, r)
	case "primary":
		m.sweepSecondary(i, m.verdict(s.X, r), r.Object)
	case "stray":
		m.sweepSecondary(i, judgeStray(m.Op.Mode, s.X, r), Object{})
	case "unchanged", "witness member", "witness":
		m.stepDoubt(i, r)
	case "fence", "remove", "mend", "scrub":
		m.Result.Removed = m.Result.Removed || (s.Step == "fence" || s.Step == "remove") && r.Class == Applied
		m.Result.Mended = m.Result.Mended || s.Step == "scrub" && r.Class == Applied
		switch {
		case s.Step == "remove" && r.Class == Applied:
			m.finish(i)
		case r.Code == Denied, r.Code == NoSuchPeer:
			m.unconfirmed(i)
		case r.Code != Unavailable:
			m.send(i, "met", Command{Verb: Read, Peer: s.Peer})
		case !m.again(i, "reread"):
			m.unconfirmed(i)
		}
	}
}

// look takes the next step for object X of strand i.
func (m *Machine) look(i int) {
	s := &m.Strands[i]
	switch {
	case !s.X.Claimed:
		m.finish(i)
	case s.X.Undecided():
		m.readRecord(i, "record", s.X)
	case !s.X.Primary(m.Op.Mode):
		m.send(i, "primary", Command{Verb: Read, Peer: s.X.Of(m.Op.Mode).Peer})
	case s.X.Pending():
		m.outlast(i, s.Peer, s.X)
	default:
		// It was committed meanwhile, or is being deleted.
		m.finish(i)
	}
}

func (m *Machine) sweepSecondary(i int, v verdict, y Object) {
	s := &m.Strands[i]
	switch v {
	case dead, leaving:
		m.send(i, "remove", Command{Verb: Delete, Peer: s.Peer, UID: s.X.UID, RV: s.X.RV})
	case pending:
		if y.Undecided() {
			s.Y = y
			m.readRecord(i, "primary record", y)
			return
		}
		m.outlast(i, s.X.Of(m.Op.Mode).Peer, y)
	case stray:
		m.send(i, "stray", Command{Verb: ReadPeerSet, Peer: s.Peer})
	case owned, undecidable, lost:
		if s.X.Overfull(m.Op.Mode) {
			m.scrub(i)
			return
		}
		if v == lost {
			m.doubt(i)
			return
		}
		if v == undecidable {
			m.pend(s.X.Of(m.Op.Mode).Peer)
			m.finish(i)
			return
		}
		m.Result.Holder, m.Result.HolderAt = y, s.X.Of(m.Op.Mode).Peer
		m.finish(i)
	case moved:
		if s.X.yielded(m.Op.Mode) {
			m.astray(s.X, s.Peer)
		} else {
			m.astray(y, s.X.Of(m.Op.Mode).Peer)
		}
		m.finish(i)
	default:
		m.unconfirmed(i)
	}
}

// scrub removes the payload from guard X of strand i. The claim stays, so the protocol sees
// no difference. The strand then reads and judges the guard again.
func (m *Machine) scrub(i int) {
	x := m.Strands[i].X
	x.Payload = ""
	m.send(i, "scrub", Command{Verb: Put, Peer: m.Strands[i].Peer, Object: x, UID: x.UID, RV: x.RV})
}

// outlast fences pending primary y in peer once its lease has run out.
func (m *Machine) outlast(i int, peer string, y Object) {
	s := &m.Strands[i]
	if y.UID+"@"+y.RV != s.Seen {
		s.Seen, s.Quiet = y.UID+"@"+y.RV, 0
	} else {
		s.Quiet++
	}
	switch {
	case s.Quiet >= m.Op.Lease:
		m.send(i, "fence", Command{Verb: Delete, Peer: peer, UID: y.UID, RV: y.RV})
	case !m.Op.Watch || m.Expired:
		m.Result.Holder, m.Result.HolderAt = y, peer
		m.unconfirmed(i)
	default:
		m.pause(i, "reread")
	}
}

// stepGuard makes sure that a committed object that exists once has a guard in the strand's
// peer.
func (m *Machine) stepGuard(i int, r Reply) {
	s := &m.Strands[i]
	switch s.Step {
	case "", "again":
		m.send(i, "read", Command{Verb: Read, Peer: s.Peer})
	case "read":
		s.X = r.Object
		switch {
		case r.Code == NotFound && m.Op.Prove:
			m.unproved(i)
		case r.Code == NotFound:
			s.Unsure = true
			m.send(i, "create", Command{Verb: Create, Peer: s.Peer, Object: m.secondaryOf(s.Peer)})
		case r.Code == Denied, r.Code == NoSuchPeer:
			m.unconfirmed(i)
		case r.Code != OK, s.X.Terminating:
			if !m.again(i, "again") {
				m.unconfirmed(i)
			}
		case m.Op.Prove && s.X.Claimed && s.X.Of(m.Op.Mode) == m.Record.Primary && !s.X.Evidence(m.Op.Mode):
			m.unproved(i)
		case s.X.Claimed && s.X.Of(m.Op.Mode) == m.Record.Primary && m.outlived(i):
			m.renew(i)
		case s.X.Claimed && s.X.Of(m.Op.Mode) == m.Record.Primary && (s.Unsure || m.unbound(s.X)):
			m.send(i, "verify", Command{Verb: Read, Peer: m.Record.Primary.Peer})
		case s.X.Claimed && s.X.Of(m.Op.Mode) == m.Record.Primary:
			m.finish(i)
		case s.X.Undecided() && s.X.Sibling(m.Primary) && m.Primary.Stage == Reserved:
			// Its record will bind it.
			m.finish(i)
		case s.X.Undecided() && s.X.Sibling(m.Primary):
			m.sendBind(i, m.Record.Primary)
		case m.Op.Action == Cover && s.X.Primary(m.Op.Mode) && s.X.Pending() && !s.X.Undecided():
			// It cannot be committed in a peer that is no full member yet.
			m.send(i, "remove", Command{Verb: Delete, Peer: s.Peer, UID: s.X.UID, RV: s.X.RV})
		case s.X.Undecided() && s.X.Primary(m.Op.Mode):
			// The reservation must be settled here: sweeps visit members only.
			m.readRecord(i, "rival record", s.X)
		case !s.X.Claimed, s.X.Primary(m.Op.Mode):
			m.obstructed(i, s.X, s.Peer)
		case s.X.Undecided():
			m.readRecord(i, "rival record", s.X)
		default:
			m.send(i, "rival", Command{Verb: Read, Peer: s.X.Of(m.Op.Mode).Peer})
		}
	case "rival record":
		m.rivalRecord(i, r)
	case "rival":
		if m.verdict(s.X, r) == dead {
			m.send(i, "remove", Command{Verb: Delete, Peer: s.Peer, UID: s.X.UID, RV: s.X.RV})
			return
		}
		m.rivaled(i, r)
	case "renew":
		switch {
		case r.Class == Applied && (s.Unsure || m.unbound(r.Object)):
			s.X, s.Fresh = r.Object, true
			m.send(i, "verify", Command{Verb: Read, Peer: m.Record.Primary.Peer})
		case r.Class == Applied:
			m.finish(i)
		case r.Code == Denied || !m.again(i, "again"):
			m.unconfirmed(i)
		}
	case "create", "remove", "put":
		m.Result.Mended = m.Result.Mended || s.Step == "create" && r.Class == Applied
		if s.Step == "create" && r.Class == Applied {
			s.X = r.Object
			m.send(i, "verify", Command{Verb: Read, Peer: m.Record.Primary.Peer})
		} else if r.Code == Denied || !m.again(i, "again") {
			m.unconfirmed(i)
		}
	case "verify":
		gone := r.Code == NotFound || r.Code == OK && r.Object.UID != m.Record.Primary.UID
		switch {
		case gone && m.evidence(s.X):
			// The next sweep judges it.
			m.unconfirmed(i)
		case gone, r.Code == OK && r.Object.Leaving():
			// A removal may have cleared this peer before the guard was there.
			m.send(i, "withdraw", Command{Verb: Delete, Peer: s.Peer, UID: s.X.UID, RV: s.X.RV})
		case r.Code == OK && r.Object.Committed() && m.unbound(s.X) && m.passing():
			m.send(i, "believed", Command{Verb: ReadPeerSet, Peer: m.Record.Primary.Peer})
		case r.Code == OK && r.Object.Committed() && m.unbound(s.X):
			m.sendBound(i, s.X)
		default:
			m.finish(i)
		}
	case "believed":
		m.believed(i, r, "again")
	case "bound":
		m.wasBound(i, r, "again")
	case "withdraw":
		if r.Code == Unavailable && m.again(i, "again") {
			return
		}
		m.finish(i)
	}
}
