// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// The primary of an object that exists everywhere may move. Whoever finds that
// the one he knew has yielded follows it, to a higher term only, and finishes or
// takes back a move that nobody finished.

// elects says whether y has yielded to x, found in peer, and x is not home yet.
// While that is so x may only be made home, never judged.
func (o Object) elects(peer string, x Object) bool {
	return o.Home.Yielded && o.Home.Ref == Ref{Peer: peer, UID: x.UID} && x.term() < o.term()
}

// yielded says whether o, found in the peer its claim names, gave its home up
// and holds what the next one needs.
func (o Object) yielded(mode Mode) bool {
	return mode == Everywhere && o.Claimed && o.Home.Yielded && !o.Primary(mode)
}

// Outranks says that x is a replica of the same object as home o and names an
// earlier home.
func (o Object) Outranks(x Object) bool {
	return x.Claimed && x.Claim.Operation == o.Claim.Operation && x.term() < o.term() && !x.Primary(Everywhere)
}

// former says whether o was home and is held by our finalizer still.
func (o Object) former(mode Mode) bool {
	return mode == Everywhere && o.Claimed && o.Finalizer && !o.Primary(mode)
}

// astray notes that the primary is not where it was known to be: o, found in
// peer, was it and has moved on. Without o it is looked for everywhere.
func (m *Machine) astray(o Object, peer string) {
	m.Astray = true
	if o.Claimed && (!m.Lead.Claimed || o.term() >= m.Lead.term()) {
		m.Lead, m.LeadAt = o, peer
	}
}

// strayed says whether o, which answers to the UID of the primary that was
// known, is not the primary any more.
func (m *Machine) strayed(o Object) bool {
	return m.Op.Mode == Everywhere && o.UID == m.Record.Primary.UID && o.Claimed && o.Stage != Reserved && !o.Primary(Everywhere)
}

// regain goes on to find the primary that was lost: it, by its claim, and not
// whatever has the name by now.
func (m *Machine) regain() {
	m.Astray, m.Present = false, false
	if m.Record.Origin == "" && m.Op.logged() && m.Primary.Claimed {
		m.Record.Origin = m.Primary.Claim.Operation
	}
	m.Stopping = false
	m.Result.Pending = nil
	if m.Turns++; m.Turns > takeovers {
		m.because(Contended, m.Record.Primary.Peer)
		m.Lead = Object{}
		m.unfound()
		return
	}
	if m.Op.Action == Succeed && (!m.Lead.yielded(Everywhere) || m.Lead.frozen()) {
		m.Lead = Object{}
		m.succeed()
		return
	}
	if !m.Lead.Claimed {
		m.find()
		return
	}
	m.enter(following)
	m.spawn(jobFollow, m.LeadAt)
}

// stepFollow goes from one home to the next. A home that has yielded to a
// replica that never learnt of it is moved on, or takes its place back if that
// replica is gone or going.
func (m *Machine) stepFollow(i int, r Reply) {
	s := &m.Strands[i]
	switch s.Step {
	case "":
		s.X = m.Lead
		m.pursue(i)
	case "reread":
		m.send(i, "lead", Command{Verb: Read, Peer: s.Peer})
	case "lead":
		switch {
		case r.Code == OK && r.Object.UID == s.X.UID && r.Object.Claimed:
			s.X = r.Object
			m.pursue(i)
		case r.Code == OK, r.Code == NotFound:
			m.homeless(i)
		default:
			m.halt(i, r)
		}
	case "home":
		m.pursued(i, r)
	case "finish", "take back":
		switch {
		case r.Class == Applied:
			at := s.Peer
			if s.Step == "finish" {
				at = s.X.Home.Peer
			}
			m.Result.Mended = true
			m.regained(i, r.Object, at)
		case r.Code == Unavailable:
			m.halt(i, r)
		case r.Code == Denied, r.Code == NoSuchPeer:
			m.fail(i, Refused)
		default:
			m.send(i, "lead", Command{Verb: Read, Peer: s.Peer})
		}
	}
}

// pursue takes the next step from X, in the strand's peer.
func (m *Machine) pursue(i int) {
	s := &m.Strands[i]
	switch {
	case s.X.Primary(m.Op.Mode):
		m.regained(i, s.X, s.Peer)
	case s.Turns > takeovers:
		m.fail(i, Contended)
	default:
		s.Turns++
		m.send(i, "home", Command{Verb: Read, Peer: s.X.Of(m.Op.Mode).Peer})
	}
}

// pursued acts on the object y that X names as its home, read after X.
func (m *Machine) pursued(i int, r Reply) {
	s := &m.Strands[i]
	x, y, at := s.X, r.Object, s.X.Of(m.Op.Mode)
	missing := r.Code == NotFound || r.Code == OK && y.UID != at.UID
	elect := r.Code == OK && x.elects(at.Peer, y)
	switch {
	case r.Code == NoSuchPeer:
		m.Result.Problem = "its home is in a peer that is not configured"
		m.failAt(i, Homeless, at.Peer)
	case r.Code != OK && r.Code != NotFound:
		m.halt(i, r)
	case x.frozen() && (missing || y.term() < x.term()):
		m.failAt(i, Homeless, at.Peer)
	case x.yielded(m.Op.Mode) && missing, elect && y.Terminating:
		// Nobody can finish this move any more. A replica that is being
		// deleted is given no finalizer, so it cannot be made home.
		m.send(i, "take back", Command{Verb: Put, Peer: s.Peer, Object: x.takenBack(s.Peer), UID: x.UID, RV: x.RV})
	case elect:
		m.send(i, "finish", Command{Verb: Put, Peer: at.Peer, Object: y.successorOf(x), UID: y.UID, RV: y.RV})
	case missing && s.Seen != x.UID+"@"+x.RV:
		// It may have been told of another home since it was read.
		s.Seen = x.UID + "@" + x.RV
		m.send(i, "lead", Command{Verb: Read, Peer: s.Peer})
	case missing:
		m.homeless(i)
	case y.Primary(m.Op.Mode):
		m.regained(i, y, at.Peer)
	case y.term() > x.term():
		s.X, s.Peer = y, at.Peer
		m.pursue(i)
	default:
		// It is being made home by those who replace a peer that is gone.
		m.failAt(i, Homeless, at.Peer)
	}
}

// failAt ends strand i for a reason that lies in another peer than its own.
func (m *Machine) failAt(i int, reason Reason, peer string) {
	m.because(reason, peer)
	m.fail(i, reason)
}

// halt asks again after a pause, or gives up.
func (m *Machine) halt(i int, r Reply) {
	s := &m.Strands[i]
	at := s.Peer
	if s.Step == "home" || s.Step == "finish" {
		at = s.X.Of(m.Op.Mode).Peer
	}
	if r.Code == Denied || r.Code == NoSuchPeer {
		m.failAt(i, Refused, at)
	} else if !m.again(i, "reread") {
		m.failAt(i, Unreachable, at)
	}
}

// regained ends strand i with the primary found.
func (m *Machine) regained(i int, o Object, at string) {
	m.Primary = o
	m.Present = true
	m.Record.Primary = Ref{Peer: at, UID: o.UID}
	m.finish(i)
}

// homeless ends strand i with the primary nowhere: what named it is dead.
func (m *Machine) homeless(i int) {
	m.Lead, m.LeadAt = Object{}, ""
	m.finish(i)
}

// afterFollowing goes on with the primary that was found.
func (m *Machine) afterFollowing() {
	lost := !m.Present && !m.Lead.Claimed
	m.Lead, m.LeadAt = Object{}, ""
	switch {
	case m.Present:
		m.Stopping = false
		m.excuse()
		m.resume()
	case lost && !m.Searched && (m.Record.Origin != "" || m.Op.logged() || m.Op.Action == Move):
		// What led to it may have been let go once all others named its new home.
		m.Searched = true
		m.find()
	case lost:
		m.nowhere()
	default:
		m.unfound()
	}
}

// excuse forgets why the primary was not found.
func (m *Machine) excuse() {
	if m.Result.Reason != alreadyDone {
		m.Result.Reason, m.Result.Peer, m.Result.Problem = "", "", ""
		m.Result.Holder, m.Result.HolderAt = Object{}, ""
	}
}

// resume goes on with the operation at the primary that was found.
func (m *Machine) resume() {
	m.HaveSet = false
	first := m.Record.Origin == ""
	m.Record.Origin = m.Primary.Claim.Operation
	switch {
	case first && m.Op.Action != Adopt && m.Op.UID != "" && m.Op.UID != m.Primary.UID && m.Named != m.Primary.Claim.Operation && m.Op.logged():
		m.because(Missing, m.Record.Primary.Peer)
		m.end(Aborted)
	case (m.Op.Action == Sweep || m.Op.Action == Succeed) && m.Primary.Leaving():
		m.Record.Committed = true
		m.afterMark()
	case m.Op.Action == Cover:
		m.enter(covering)
		for _, p := range m.Op.Into {
			if p != m.Record.Primary.Peer && !m.Primary.Leaving() {
				m.spawn(jobBring, p)
			}
		}
	case m.Op.Action == Sweep, m.Op.Action == Succeed:
		m.Record.Committed = true
		m.bring()
	case m.Result.Reason == alreadyDone && m.Op.Action == Add && !(m.Primary.Committed() && m.satisfies(m.Primary)):
		m.heldAfterAll(m.Primary, m.Record.Primary.Peer)
	case m.Result.Reason == alreadyDone:
		m.bring()
	case m.Op.Action == Move:
		m.elect()
	case m.Op.Action == Remove:
		m.remove()
	case m.Record.Committed, m.Op.Action == Add:
		m.Record.Committed = true
		m.Result.Ending = Running
		m.Result.Revision = m.Primary.Revision.Number
		m.bring()
	case m.Record.Committing:
		m.enter(committing)
		m.spawn(jobRevise, m.Record.Primary.Peer)
	default:
		m.revise()
	}
}

// nowhere ends an operation whose object is nowhere to be found.
func (m *Machine) nowhere() {
	switch {
	case !m.Op.logged() && m.Op.Action != Move:
		m.end(Done)
	case m.Result.Reason == alreadyDone && m.Op.Action == Add:
		m.heldAfterAll(m.Result.Holder, m.Result.HolderAt)
	case m.Result.Reason == alreadyDone:
		m.end(AlreadyDone)
	case m.Op.Action == Remove && m.Record.Primary.UID != "":
		m.confirm()
	case m.central() && m.Record.Committed:
		m.lost()
	case m.Record.Committed && (m.Op.Action != Move || m.Record.Arrived):
		// Removed by somebody since.
		m.end(Done)
	case m.Op.Action == Add:
		m.clean()
	case m.Unsure:
		m.because(Missing, m.Record.Primary.Peer)
		m.end(Ended)
	default:
		m.because(Missing, m.Record.Primary.Peer)
		m.end(Aborted)
	}
}

// unfound ends an operation whose object may be where nobody answered.
func (m *Machine) unfound() {
	m.because(Unreachable, m.Record.Primary.Peer)
	switch {
	case !m.Op.logged() && m.Op.Action != Move:
		m.pend(m.Result.Peer)
		m.end(Done)
	case m.Result.Reason == alreadyDone && m.Op.Action == Add && m.Result.Holder.yielded(m.Op.Mode):
		m.Result.Reason, m.Result.Peer = Unreachable, m.Result.Holder.Home.Peer
		m.end(Aborted)
	case m.Result.Reason == alreadyDone:
		m.pend(m.Record.Primary.Peer)
		m.end(AlreadyDone)
	case m.Record.Committed:
		m.pend(m.Result.Peer)
		m.Result.Keep = true
		m.end(Committed)
	case m.Unsure:
		m.end(InDoubt)
	default:
		m.end(Aborted)
	}
}
