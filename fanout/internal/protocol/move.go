// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// yieldedTo returns home o after it has yielded to the replica that elect names. From then
// on o takes no update and no removal. The next home starts with o's content.
func (o Object) yieldedTo(elect Ref) Object {
	o.Home = Home{Ref: elect, Term: o.term() + 1, Yielded: true}
	return o
}

// successorOf returns replica o as the next home, to which x has yielded.
func (o Object) successorOf(x Object) Object {
	o.Stage = x.Stage
	o.Home = Home{Ref: x.Home.Ref, Term: x.Home.Term}
	o.Payload, o.Revision, o.History = x.Payload, x.Revision, x.History
	o.Finalizer = true
	return o
}

// takenBack returns the yielded home o, in peer, as home again. It gets a new term, which
// distinguishes it from the home that it was before.
func (o Object) takenBack(peer string) Object {
	o.Home = Home{Ref: Ref{Peer: peer, UID: o.UID}, Term: o.term() + 1}
	return o
}

// elect makes sure that the target of the move has a replica with the home's content.
func (m *Machine) elect() {
	switch {
	case m.Record.Primary.Peer == m.Op.Target:
		if !m.Unsure && !m.Record.Arrived {
			m.Result.Reason = alreadyDone
		}
		m.Record.Committed, m.Record.Arrived = true, true
		m.bring()
	case m.Record.Arrived, !m.Op.logged() && !m.Op.evacuates(m.Record.Primary.Peer):
		// The move is over, or the home need not move any more: bring its content to all
		// members.
		m.bring()
	case m.Resumed && m.Primary.UID != m.Op.UID:
		// Another operation moved it since: an earlier attempt can no longer be applied.
		m.because(Contended, m.Record.Primary.Peer)
		m.refrain()
	case m.Primary.Leaving(), m.Primary.Stage != Active:
		m.Result.Holder, m.Result.HolderAt = m.Primary, m.Record.Primary.Peer
		m.because(HeldByOther, m.Record.Primary.Peer)
		m.refrain()
	case m.Turns > takeovers:
		m.because(Contended, m.Record.Primary.Peer)
		m.refrain()
	case m.Expired:
		m.because(Late, "")
		m.refrain()
	default:
		m.Record.Committed = false
		m.Result.Holder, m.Result.HolderAt = Object{}, ""
		m.enter(electing)
		m.spawn(jobPeerSet, m.Record.Primary.Peer)
		m.spawn(jobPeerSet, m.Op.Target)
		m.spawn(jobBring, m.Op.Target)
	}
}

// refrain ends a move without a commit: Ended if an earlier attempt may have been applied
// and undone since, else Aborted.
func (m *Machine) refrain() {
	if m.Unsure {
		m.end(Ended)
		return
	}
	m.end(Aborted)
}

// afterElecting lets the home yield once the target's replica is known.
func (m *Machine) afterElecting() {
	var s Strand
	for _, t := range m.Strands {
		if t.Job == jobBring {
			s = t
		}
	}
	set, known := m.Sets[m.Op.Target]
	switch {
	case m.Astray:
		m.regain()
	case known && (set.Self.State != "Active" || set.Self.Peer != m.Op.Target),
		m.HaveSet && !slices.Contains(m.Set.peers("Active"), m.Op.Target):
		m.Result.Problem = "peer " + m.Op.Target + " is not an active member"
		m.because(Membership, m.Op.Target)
		m.refrain()
	case m.Stopping, len(m.Result.Pending) > 0, !known, !m.HaveSet:
		m.Result.Pending = nil
		if m.Result.HolderAt != "" {
			// The target answers. The other object's operation, or a sweep, may still delete it.
			m.because(HeldByOther, m.Op.Target)
		}
		m.because(Unreachable, m.Op.Target)
		if m.Unsure {
			m.end(InDoubt)
			return
		}
		m.end(Aborted)
	case s.X.UID == "":
		// The target is no member any more, or the object is gone.
		m.astray(Object{}, "")
		m.regain()
	default:
		m.Record.Elect = Ref{Peer: m.Op.Target, UID: s.X.UID}
		m.Record.Committing = true
		m.enter(advancing)
		if m.Op.logged() {
			m.spawn(jobAdvance, "")
		}
	}
}

// stepYield commits the move: the home yields.
func (m *Machine) stepYield(i int, r Reply) {
	s := &m.Strands[i]
	switch s.Step {
	case "":
		m.sendYield(i)
	case "reread":
		m.send(i, "read", Command{Verb: Read, Peer: s.Peer})
	case "put":
		m.attempted(i, r)
	case "read":
		o := r.Object
		switch {
		case r.Code == NotFound, r.Code == OK && o.UID != m.Record.Primary.UID:
			m.astray(Object{}, "")
			m.finish(i)
		case r.Code != OK:
			m.ask(i, Reply{Code: Unavailable})
		case m.strayed(o):
			m.astray(o, s.Peer)
			m.finish(i)
		case m.Expired && !m.Unsure:
			m.fail(i, Late)
		case o.Leaving():
			m.Result.Holder, m.Result.HolderAt = o, s.Peer
			m.fail(i, HeldByOther)
		case o.RV == m.Primary.RV:
			m.sendYield(i)
		default:
			m.Primary = o
			m.send(i, "members", Command{Verb: ReadPeerSet, Peer: s.Peer})
		}
	case "members":
		// The home has changed, so an earlier attempt can no longer be applied.
		switch {
		case r.Code != OK:
			m.ask(i, Reply{Code: Unavailable})
		case !slices.Contains(r.PeerSet.peers(peerActive), m.Op.Target):
			m.Result.Problem = "peer " + m.Op.Target + " is not an active member"
			m.failAt(i, Membership, m.Op.Target)
		default:
			m.sendYield(i)
		}
	}
}

func (m *Machine) sendYield(i int) {
	o := m.Primary
	if o.Edited() {
		// The next home starts with committed content, so the yield commits the edit.
		o = o.accepted()
	}
	m.send(i, "put", Command{Verb: Put, Peer: m.Strands[i].Peer, Object: o.yieldedTo(m.Record.Elect), UID: o.UID, RV: o.RV})
}

// afterYield makes the elected replica home.
func (m *Machine) afterYield() {
	switch {
	case m.Record.Committed:
		m.Result.Reason, m.Result.Peer = "", ""
		m.Unsure = true
		m.astray(m.Primary, m.Record.Primary.Peer)
		m.regain()
	case m.Result.Ending == InDoubt:
		m.end(InDoubt)
	default:
		m.refrain()
	}
}
