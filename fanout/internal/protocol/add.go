// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"slices"
	"strings"
)

// afterReserving begins to create the secondaries, after the target has replied to the create of
// the primary. Because of this order, two operations with different targets cannot both commit.
// Each would need a secondary in the other's target, created after its own primary and before the
// other's primary took the name there. So each primary would be older than the other one, which is
// impossible.
func (j addJob) afterReserving() {
	m := j.m
	if m.Stopping || m.Expired {
		abortJob{m}.begin()
		return
	}
	j.claimOthers()
}

// claimOthers takes the name in each configured peer except the target. In parallel it reads the
// PeerSets (each peer's list of the members) and the owner of the object's namespace, such as an
// Account. The commit depends on both.
func (j addJob) claimOthers() {
	m := j.m
	m.enter(claiming)
	m.spawn(taskPeerSet, m.Op.Target)
	if m.Op.Within {
		m.spawn(taskOwner, m.Op.Target)
	}
	for _, p := range m.Op.Peers {
		if p != m.Op.Target {
			m.spawn(taskAcquire, p)
			m.spawn(taskPeerSet, p)
		}
	}
	if m.Op.Lease > 1 && m.Op.Action != Adopt {
		m.spawn(taskBeat, m.Op.Target)
	}
}

// A peerSetTask reads the PeerSet of its peer.
type peerSetTask struct{ strand }

func (s peerSetTask) step(r Reply) {
	m := s.m
	switch {
	case s.Step != stepRead:
		s.send(stepRead, Command{Verb: ReadPeerSet, Peer: s.Peer})
	case r.Code == OK:
		if s.Peer == m.Record.Primary.Peer {
			m.Set, m.HaveSet = r.PeerSet, true
		} else {
			m.Sets[s.Peer] = r.PeerSet
		}
		s.finish()
	case r.Code == NotFound:
		s.misfit(fmt.Sprintf("peer %s has no PeerSet", s.Peer))
	case r.Code == Denied:
		s.fail(Refused)
	case !s.again(stepRetry):
		s.fail(Unreachable)
	}
}

// misfit fails the operation because the task's peer has no PeerSet, and so is no member. This
// reason replaces an earlier one: in a peer that never became a member the other requests fail,
// too, and their errors would hide the cause.
func (s peerSetTask) misfit(problem string) {
	m := s.m
	if m.Result.Reason != Membership {
		m.Result.Reason, m.Result.Peer, m.Result.Problem = Membership, s.Peer, problem
	}
	s.fail(Membership)
}

// An ownerTask reads the owner of the namespace in the target after the primary was created there.
// A removal of the owner first commits in the owner and then lists the namespace. So either this
// read finds the removal in the owner, or the list of the removal finds the primary.
type ownerTask struct{ strand }

func (s ownerTask) step(r Reply) {
	m := s.m
	switch {
	case s.Step != stepRead:
		s.send(stepRead, Command{Verb: ReadOwner, Peer: s.Peer})
	case r.Code == OK && r.Object.InEffect() && r.Object.Stage == Active:
		s.finish()
	case r.Code == OK || r.Code == NotFound:
		if m.Result.Reason == "" {
			m.Result.Holder, m.Result.HolderAt = r.Object, s.Peer
		}
		s.fail(NoOwner)
	case r.Code == Denied:
		s.fail(Refused)
	case !s.again(stepRetry):
		s.fail(Unreachable)
	}
}

// A beatTask raises the primary's heartbeat every half lease while the operation creates its
// secondaries. Other operations may delete a reservation that does not change for a lease.
type beatTask struct{ strand }

func (s beatTask) step(r Reply) {
	m := s.m
	switch s.Step {
	case stepStart:
		s.pause(stepWait)
	case stepWait:
		if s.Tries++; s.Tries < max(1, m.Op.Lease/2) {
			s.pause(stepWait)
			return
		}
		s.Tries = 0
		beat := m.Primary
		beat.Heartbeat++
		s.send(stepBeat, Command{Verb: Put, Peer: s.Peer, Object: beat, UID: beat.UID, RV: beat.RV})
	case stepBeat:
		if r.Class == Applied {
			m.Primary = r.Object
			s.pause(stepWait)
			return
		}
		// The primary may be deleted, or the heartbeat may still be applied: the commit detects
		// both.
		s.finish()
	}
}

// afterClaiming compares the configured peers, which all hold the name for this operation by now,
// with the PeerSets. The PeerSet of the primary's peer was read after the primary was created. A
// join of a new peer adds the peer to this PeerSet before it lists the primaries. So either the
// join finds this primary, or this operation finds the new peer in the PeerSet.
func (j addJob) afterClaiming() {
	m := j.m
	if m.Stopping || m.Expired {
		abortJob{m}.begin()
		return
	}
	if problem := j.membership(); problem != "" {
		m.Result.Problem = problem
		m.because(Membership, m.Op.Target)
		abortJob{m}.begin()
		return
	}
	m.enter(advancing)
	m.Record.Committing = true
	m.spawn(taskAdvance, "")
}

// membership checks that the target is Active, that the members which the target's PeerSet lists
// are the configured peers, that each peer's cluster has the peer's name, and that the PeerSet of
// each other peer lists the target. It returns the first problem, or "" if it finds none.
func (j addJob) membership() string {
	m := j.m
	if m.Set.Self.Peer != m.Op.Target {
		return fmt.Sprintf("the cluster behind peer %s calls itself %s", m.Op.Target, m.Set.Self.Peer)
	}
	if m.Set.Self.State != "Active" {
		return fmt.Sprintf("peer %s is %s, so it takes no new objects", m.Op.Target, m.Set.Self.State)
	}
	held := m.Set.held()
	var problems []string
	for _, p := range held {
		if !slices.Contains(m.Op.Peers, p) {
			problems = append(problems, fmt.Sprintf("%s is a member and not configured", p))
		}
	}
	for _, p := range m.Op.Peers {
		if !slices.Contains(held, p) {
			problems = append(problems, fmt.Sprintf("%s is configured and no member", p))
		}
	}
	if len(problems) > 0 {
		return fmt.Sprintf("by the PeerSet of %s, %s", m.Op.Target, strings.Join(problems, ", "))
	}
	for _, p := range m.Op.Peers {
		if p == m.Op.Target {
			continue
		}
		set := m.Sets[p]
		if set.Self.Peer != p {
			return fmt.Sprintf("the cluster behind peer %s calls itself %s", p, set.Self.Peer)
		}
		if !set.Lists(m.Op.Target) {
			return fmt.Sprintf("the PeerSet of %s does not list %s", p, m.Op.Target)
		}
	}
	return ""
}

// afterAdvancing sends the commit if the log has stored that a commit may be sent. It sends none if
// the log could not be written, another coordinator has taken over the entry, or the operation must
// stop.
func (j commitJob) afterAdvancing() {
	m := j.m
	if m.Result.Reason == TakenOver {
		endJob{m}.relinquish()
		return
	}
	if m.Stopping || m.Expired {
		// The log may state that a commit may be sent, but this process has sent none since it
		// wrote the log.
		m.because(Late, "")
		switch {
		case m.Op.Action == Add:
			abortJob{m}.begin()
		case m.LogUnsure:
			endJob{m}.relinquish()
		case m.Op.Action == Move:
			moveJob{m}.refrain()
		case m.Unsure:
			m.end(InDoubt)
		default:
			m.end(Aborted)
		}
		return
	}
	m.enter(committing)
	switch m.Op.Action {
	case Add:
		j.begin()
	case Adopt:
		adoptJob{m}.claimMet()
	case Update:
		m.spawn(taskRevise, m.Record.Primary.Peer)
	case Move:
		m.spawn(taskYield, m.Record.Primary.Peer)
	default:
		m.spawn(taskMark, m.Record.Primary.Peer)
	}
}

// afterCommitting continues the operation once no task attempts the commit any longer. A committed
// add, update or adoption is brought to all peers. An add that is not committed deletes its
// reservations, unless it is in doubt. A move and a removal continue with their own jobs.
func (j commitJob) afterCommitting() {
	m := j.m
	switch {
	case m.Astray:
		findJob{m}.regain()
	case m.Op.Action == Move:
		moveJob{m}.afterYield()
	case m.Op.Action == Remove, m.Op.Action == Sweep:
		removeJob{m}.afterMark()
	case m.Record.Committed:
		m.Result.Reason, m.Result.Peer = "", ""
		m.Result.Revision = m.Primary.Revision.Number
		bringJob{m}.begin()
	case m.Result.Ending == InDoubt:
		m.end(InDoubt)
	case m.Op.Action == Adopt:
		adoptJob{m}.afterAdopting()
	case m.Op.Action == Update && m.Result.Ending == Running:
		m.end(Aborted)
	case m.Op.Action == Update:
		m.end(m.Result.Ending)
	case m.Result.Ending == Running:
		abortJob{m}.begin()
	default:
		abortJob{m}.clean()
	}
}
