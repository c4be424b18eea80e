// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"slices"
	"strings"
)

// afterReserving claims the name in the other peers. Their creates begin only after the reply
// to the create of the primary: if two operations both reached their commit, each would hold a
// secondary in the other's target that is newer than its own primary, so each primary would be
// older than the other.
func (m *Machine) afterReserving() {
	if m.Stopping || m.Expired {
		m.abort()
		return
	}
	m.claimOthers()
}

// claimOthers takes the name in the other peers and, in parallel, reads the PeerSets and the
// namespace's owner, on which the commit depends.
func (m *Machine) claimOthers() {
	m.enter(claiming)
	m.spawn(jobPeerSet, m.Op.Target)
	if m.Op.Within {
		m.spawn(jobOwner, m.Op.Target)
	}
	for _, p := range m.Op.Peers {
		if p != m.Op.Target {
			m.spawn(jobAcquire, p)
			m.spawn(jobPeerSet, p)
		}
	}
	if m.Op.Lease > 1 && m.Op.Action != Adopt {
		m.spawn(jobBeat, m.Op.Target)
	}
}

// stepPeerSet reads the PeerSet of the strand's peer.
func (m *Machine) stepPeerSet(i int, r Reply) {
	s := &m.Strands[i]
	switch {
	case s.Step != "read":
		m.send(i, "read", Command{Verb: ReadPeerSet, Peer: s.Peer})
	case r.Code == OK:
		if s.Peer == m.Record.Primary.Peer {
			m.Set, m.HaveSet = r.PeerSet, true
		} else {
			m.Sets[s.Peer] = r.PeerSet
		}
		m.finish(i)
	case r.Code == NotFound:
		m.misfit(i, fmt.Sprintf("peer %s has no PeerSet", s.Peer))
	case r.Code == Denied:
		m.fail(i, Refused)
	case !m.again(i, "retry"):
		m.fail(i, Unreachable)
	}
}

// misfit ends strand i because its peer is no member. This reason replaces any other: in a peer
// that was never made a member, all other requests fail too.
func (m *Machine) misfit(i int, problem string) {
	if m.Result.Reason != Membership {
		m.Result.Reason, m.Result.Peer, m.Result.Problem = Membership, m.Strands[i].Peer, problem
	}
	m.fail(i, Membership)
}

// stepOwner reads the owner of the namespace in the target after the primary was created there.
// A removal of the owner marks the owner first and lists the namespace afterwards, so at least
// one of the two sees the other.
func (m *Machine) stepOwner(i int, r Reply) {
	s := &m.Strands[i]
	switch {
	case s.Step != "read":
		m.send(i, "read", Command{Verb: ReadOwner, Peer: s.Peer})
	case r.Code == OK && r.Object.InEffect() && r.Object.Stage == Active:
		m.finish(i)
	case r.Code == OK || r.Code == NotFound:
		if m.Result.Reason == "" {
			m.Result.Holder, m.Result.HolderAt = r.Object, s.Peer
		}
		m.fail(i, NoOwner)
	case r.Code == Denied:
		m.fail(i, Refused)
	case !m.again(i, "retry"):
		m.fail(i, Unreachable)
	}
}

// stepBeat writes a heartbeat every half lease while names are being taken.
func (m *Machine) stepBeat(i int, r Reply) {
	s := &m.Strands[i]
	switch s.Step {
	case "":
		m.pause(i, "wait")
	case "wait":
		if s.Tries++; s.Tries < max(1, m.Op.Lease/2) {
			m.pause(i, "wait")
			return
		}
		s.Tries = 0
		beat := m.Primary
		beat.Heartbeat++
		m.send(i, "beat", Command{Verb: Put, Peer: s.Peer, Object: beat, UID: beat.UID, RV: beat.RV})
	case "beat":
		if r.Class == Applied {
			m.Primary = r.Object
			m.pause(i, "wait")
			return
		}
		// The primary may be deleted, or the heartbeat may still land: the commit detects both.
		m.finish(i)
	}
}

// afterClaiming compares the claims with the membership in the PeerSet of the primary's peer,
// read after the primary existed. A join adds the newcomer to the membership before it lists
// the primaries: either it lists this primary, or the newcomer is seen here.
func (m *Machine) afterClaiming() {
	if m.Stopping || m.Expired {
		m.abort()
		return
	}
	if problem := m.membership(); problem != "" {
		m.Result.Problem = problem
		m.because(Membership, m.Op.Target)
		m.abort()
		return
	}
	m.enter(advancing)
	m.Record.Committing = true
	m.spawn(jobAdvance, "")
}

// membership compares the configured peers with the PeerSets. All configured
// peers hold a claim by now.
func (m *Machine) membership() string {
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

// afterAdvancing sends the commit. The log already says that a commit may have been sent.
func (m *Machine) afterAdvancing() {
	if m.Result.Reason == TakenOver {
		m.relinquish()
		return
	}
	if m.Stopping || m.Expired {
		// The log says that a commit may have been sent, but this process knows that none was.
		m.because(Late, "")
		switch {
		case m.Op.Action == Add:
			m.abort()
		case m.Unlogged:
			m.relinquish()
		case m.Op.Action == Move:
			m.refrain()
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
		m.commit()
	case Adopt:
		m.claimMet()
	case Update:
		m.spawn(jobRevise, m.Record.Primary.Peer)
	case Move:
		m.spawn(jobYield, m.Record.Primary.Peer)
	default:
		m.spawn(jobMark, m.Record.Primary.Peer)
	}
}

// afterCommitting starts the phase that follows from the commit or from its failure.
func (m *Machine) afterCommitting() {
	switch {
	case m.Astray:
		m.regain()
	case m.Op.Action == Move:
		m.afterYield()
	case m.Op.Action == Remove, m.Op.Action == Sweep:
		m.afterMark()
	case m.Record.Committed:
		m.Result.Reason, m.Result.Peer = "", ""
		m.Result.Revision = m.Primary.Revision.Number
		m.bring()
	case m.Result.Ending == InDoubt:
		m.end(InDoubt)
	case m.Op.Action == Adopt:
		m.afterAdopting()
	case m.Op.Action == Update && m.Result.Ending == Running:
		m.end(Aborted)
	case m.Op.Action == Update:
		m.end(m.Result.Ending)
	case m.Result.Ending == Running:
		m.abort()
	default:
		m.clean()
	}
}
