// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// A bringJob brings a committed object to every peer that must have it: it creates or repairs the
// secondaries.
type bringJob struct{ m *Machine }

// begin begins to bring a committed object to every peer that must have it, and calls the
// activation hook of the object's kind. If the home (the primary of an Everywhere object) has moved
// or was edited, begin first searches for the home or commits the edit. If the object is being
// removed, begin ends the operation. Any process may run it, at any time and repeatedly.
func (j bringJob) begin() {
	m := j.m
	if m.Op.Mode == Everywhere && m.Primary.Claimed && !m.Primary.Primary(Everywhere) {
		m.astray(m.Primary, m.Record.Primary.Peer)
		findJob{m}.regain()
		return
	}
	if m.Primary.Leaving() {
		// The object is being removed: the removal is another operation and deletes the
		// replicas.
		j.superfluous()
		return
	}
	if m.Op.Mode == Everywhere && m.Primary.Edited() {
		acceptJob{m}.begin()
		return
	}
	m.Stopping = false
	m.enter(bringing)
	m.spawn(taskActivate, m.Record.Primary.Peer)
	if m.Op.Mode == Once {
		return
	}
	m.Forked = Object{}
	if !m.HaveSet {
		// Read the members after the commit: a peer that joined while the commit was in flight may
		// have copied the older content.
		m.spawn(taskLook, m.Record.Primary.Peer)
		return
	}
	j.spread(taskBring)
}

// superfluous ends an operation whose object is being removed or is gone. An update gets the ending
// Ended, not Done: the object's home may have been replaced meanwhile, which loses the update.
func (j bringJob) superfluous() {
	m := j.m
	switch {
	case m.Result.Reason == alreadyDone:
		m.end(AlreadyDone)
	case m.Op.Action == Update:
		m.end(Ended)
	default:
		m.end(Done)
	}
}

// spread starts a strand (a task of this kind) for every member except the primary's peer. While
// the membership is unknown, it starts one for every configured peer instead. If this operation
// moves a home out of a leaving peer that is no longer a member, it also starts one for that peer.
func (j bringJob) spread(kind task) {
	m := j.m
	reached := m.Op.Peers
	if m.HaveSet {
		reached = m.Set.reached()
	}
	for _, p := range reached {
		if p != m.Record.Primary.Peer {
			m.spawn(kind, p)
		}
	}
	if from := m.Op.Met.Claim.Peer; m.outside(from) && from != m.Record.Primary.Peer {
		m.spawn(kind, from)
	}
}

// afterBringing starts the strands of the peers other than the primary's, once the membership is
// known. When these strands have ended, it ends the operation, or first starts the work that they
// found to be necessary, such as a mend (a reconciliation of revisions that contradict each other).
func (j bringJob) afterBringing() {
	m := j.m
	if m.Op.Mode == Everywhere || m.Op.Action == Sweep {
		kind := taskBring
		if m.Op.Mode == Once {
			kind = taskGuard
		}
		begun := slices.ContainsFunc(m.Strands, func(s Strand) bool { return s.Task == kind })
		switch {
		case m.Astray:
			findJob{m}.regain()
			return
		case m.Undone:
			mendJob{m}.redo()
			return
		case m.Forked.Claimed:
			mendJob{m}.begin()
			return
		case begun && retireJob{m}.begin(kind):
			return
		case begun:
		case m.HaveSet && j.reaches():
			j.spread(kind)
			return
		case !m.HaveSet && len(m.Op.Peers) > 1:
			// The members are unknown, so nothing is confirmed.
			m.pend(m.Record.Primary.Peer)
		}
	}
	if (sealJob{m}).bindsGuards() {
		sealJob{m}.begin()
		return
	}
	j.brought()
}

// reaches reports whether the object must be brought to a peer other than the primary's. A PeerSet
// usually lists its own peer, so two listed members are enough. The PeerSet of a rejoining peer
// lists only the other members. Then one is enough if this operation is part of the rejoin; other
// operations do not use such a PeerSet.
func (j bringJob) reaches() bool {
	m := j.m
	return len(m.Set.reached()) > 1 || !m.passing() && removeJob{m}.accompanied() || m.outside(m.Op.Met.Claim.Peer)
}

// brought ends an operation that is in effect.
func (j bringJob) brought() {
	m := j.m
	if m.Op.Mode == Everywhere {
		m.Result.Durable = len(m.Result.Pending) == 0 && !m.Revoked
	}
	switch {
	case m.Result.Reason == alreadyDone:
		m.end(AlreadyDone)
	case len(m.Result.Pending) > 0:
		m.Result.Keep = true
		m.end(Committed)
	default:
		m.end(Done)
	}
}

// Unspread reports whether the operation is committed but has read or written no peer since,
// except the primary's: the other peers still have the state from before the commit.
func (m *Machine) Unspread() bool {
	spreads := m.Op.Mode == Everywhere || m.Op.Action == Remove
	found := m.Primary.UID != "" || m.Result.Reason == Unreachable
	return m.Result.Ending == Committed && spreads && found && !m.HaveSet
}

// pend records that peer has not confirmed the operation.
func (m *Machine) pend(peer string) {
	if !slices.Contains(m.Result.Pending, peer) {
		m.Result.Pending = append(m.Result.Pending, peer)
	}
}

// unconfirmed ends the strand and records that its peer has not confirmed the operation. A later
// recovery or sweep (a check and repair of all peers) continues there.
func (s strand) unconfirmed() {
	m := s.m
	m.pend(s.Peer)
	s.finish()
}

// secondaryOf returns a Reserved secondary of the committed primary for peer. Only a later write
// activates the secondary. That write requires that the secondary is unchanged since a read which
// began before the read of the primary.
func (j bringJob) secondaryOf(peer string) Object {
	m := j.m
	o := Object{Claimed: true, Stage: Reserved, Claim: m.Primary.Claim}
	o.Claim.Primary = false
	o.Claim.Peer = peer
	o.Claim.Of, o.Claim.Record = m.Record.Primary, ""
	if m.Op.Mode == Everywhere {
		o.Revision = m.Primary.Revision
		o.Home = m.Primary.Home
		if m.Primary.Edited() {
			// Revision 0: the replica waits for content that is not committed yet.
			o.Revision.Number = 0
		}
		if !m.Op.Inert {
			o.Payload = m.Primary.Payload
		}
	}
	return o
}

// An activateTask calls the activation hook of the object's kind: the primary is in effect.
type activateTask struct{ strand }

func (s activateTask) step(r Reply) {
	m := s.m
	switch {
	case s.Step != stepActivate:
		s.send(stepActivate, Command{Verb: Activate, Peer: s.Peer, Object: m.Primary})
	case r.Class == Applied:
		s.finish()
	case !s.again(stepAgain):
		s.unconfirmed()
	}
}
