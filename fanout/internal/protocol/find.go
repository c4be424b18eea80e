// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// A findJob searches for the primary and continues the operation there.
type findJob struct{ m *Machine }

// begin searches the peers for the primary of an update, a removal or a move.
func (j findJob) begin() {
	m := j.m
	m.Present = false
	m.Result.Peers = nil
	m.enter(finding)
	for _, p := range m.Op.Peers {
		if !m.departed(p) {
			m.spawn(taskFind, p)
		}
	}
}

// A findTask searches one peer for the primary.
type findTask struct{ strand }

func (s findTask) step(r Reply) {
	m := s.m
	switch s.Step {
	case stepStart, stepRetry:
		s.send(stepRead, readObject(s.Peer))
	case stepRead, stepConfirm:
		s.afterRead(r)
	case stepMember:
		if r.Code == OK {
			m.Sets[s.Peer] = r.PeerSet
		}
		s.send(stepConfirm, readObject(s.Peer))
	case stepStray:
		if judgeStray(m.Op.Mode, s.X, r) != dead && m.Result.Reason == "" {
			m.Result.Reason, m.Result.Peer = UnknownOwner, s.X.Of(m.Op.Mode).Peer
		}
		s.finish()
	}
}

func (s findTask) afterRead(r Reply) {
	m := s.m
	if r.Code != NotFound {
		delete(m.Sets, s.Peer)
	}
	switch {
	case r.Code == NotFound && s.Step == stepRead && findJob{m}.onward():
		s.send(stepMember, Command{Verb: ReadPeerSet, Peer: s.Peer})
	case r.Code == NotFound:
		s.finish()
	case r.Code == OK:
		s.found(r.Object)
	case r.Code == Denied:
		m.Result.Peers = append(m.Result.Peers, s.Peer)
		s.fail(Refused)
	case !s.again(stepRetry):
		m.Result.Peers = append(m.Result.Peers, s.Peer)
		s.finish()
	}
}

// found acts on o, which has the name in the peer of this strand (running task).
func (s findTask) found(o Object) {
	m := s.m
	switch {
	case o.Primary(m.Op.Mode) && o.Stage != Reserved && findJob{m}.same(o):
		findJob{m}.found(o, s.Peer)
		s.finish()
	case !o.Claimed, o.Primary(m.Op.Mode):
		if m.Result.HolderAt == "" {
			m.Result.Holder, m.Result.HolderAt = o, s.Peer
		}
		s.finish()
	case m.Op.Mode == Everywhere && o.Stage == Active && findJob{m}.same(o):
		if o.UID == m.Op.UID {
			m.Named = o.Claim.Operation
		}
		m.astray(o, s.Peer)
		s.finish()
	case m.Phase == finding && !slices.Contains(m.Op.Peers, o.Of(m.Op.Mode).Peer):
		// The secondary's primary may be in effect in a peer that is not configured here.
		s.X = o
		s.send(stepStray, Command{Verb: ReadPeerSet, Peer: s.Peer})
	default:
		s.finish()
	}
}

// found continues with primary o in peer. If o is certainly the primary to act on, the search ends.
func (j findJob) found(o Object, peer string) {
	m := j.m
	m.Primary = o
	m.Present = true
	m.Record.Primary = Ref{Peer: peer, UID: o.UID}
	if j.meant() {
		for i := range m.Strands {
			m.strand(i).finish()
		}
	}
}

// same reports whether o is, or may be, the object of the operation. An Everywhere object is this
// object if it has the UID in Record.Primary. Except in phase recovering, it also is this object if
// its claim names the operation Record.Origin, and may be it if Origin is unknown: the claims of an
// object and of all its replicas name the same operation.
func (j findJob) same(o Object) bool {
	m := j.m
	switch {
	case m.Op.Mode == Once, m.Record.Primary.UID == o.UID:
		return true
	case m.Phase == recovering:
		return false
	default:
		return m.Record.Origin == "" || m.Record.Origin == o.Claim.Operation
	}
}

// unnamed reports whether the operation names a UID that neither the primary has nor, for an
// Everywhere object, a replica that was read.
func (j findJob) unnamed() bool {
	m := j.m
	return m.Op.Action != Adopt && m.Op.UID != "" && m.Op.UID != m.Primary.UID && m.Named != m.Primary.Claim.Operation && m.Op.logged()
}

// meant reports whether the primary that was found is the primary to act on, whatever the other
// peers hold. For an Everywhere object the operation may name the UID of any replica.
func (j findJob) meant() bool {
	m := j.m
	return m.Op.Mode == Once || m.Record.Origin != "" || !j.unnamed()
}

// afterFinding continues with the primary that was found, or ends the operation with a reason.
func (j findJob) afterFinding() {
	m := j.m
	lead := m.Lead
	m.Astray, m.Lead = false, Object{}
	if m.departed(lead.Of(m.Op.Mode).Peer) {
		// The lead names a home in a departed peer. It became Active too late, and is to be deleted.
		lead = Object{}
	}
	unread := len(m.Result.Peers) > 0
	m.Stopping = false
	switch {
	case m.Present && unread && !j.meant():
		m.because(Unreachable, m.Result.Peers[0])
		m.end(Aborted)
	case m.Present:
		// Refusals and missing replies of other peers do not matter.
		m.Result.Peers = nil
		j.excuse()
		j.resume()
	case lead.Claimed && !slices.Contains(m.Result.Peers, lead.Of(m.Op.Mode).Peer):
		// No primary was found: follow the replica that names one.
		m.astray(lead, m.LeadAt)
		j.regain()
	case m.Record.Origin != "" && unread:
		j.unfound()
	case m.Record.Origin != "":
		j.nowhere()
	case m.Result.Reason != "":
		m.end(Aborted)
	case m.Expired:
		m.because(Late, "")
		m.end(Aborted)
	case unread && j.unguarded():
		m.because(Missing, m.Result.Peers[0])
		m.end(Aborted)
	case unread:
		m.because(Unreachable, m.Result.Peers[0])
		m.end(Aborted)
	case m.Result.HolderAt != "":
		m.because(HeldByOther, m.Result.HolderAt)
		m.end(Aborted)
	default:
		m.because(Missing, "")
		m.end(Aborted)
	}
}

// onward reports whether this is a removal that may skip an unreachable peer, if another peer
// proves that the object is not committed there.
func (j findJob) onward() bool {
	m := j.m
	return m.Phase == finding && m.Op.Action == Remove && m.Op.Mode == Once && m.Op.Patience == Onward
}

// unguarded reports whether the unreachable peers can hold only an uncommitted object, or an object
// whose removal is committed. Every Active member has a guard of any other object. So a member
// proves this if its PeerSet lists the unreachable peers and has the state Active, and a read after
// that finds no object of the name in the member. If the removal is not onward, the result is false.
func (j findJob) unguarded() bool {
	m := j.m
	for peer, set := range m.Sets {
		if set.Self.Peer == peer && set.Self.State == "Active" &&
			!slices.ContainsFunc(m.Result.Peers, func(silent string) bool { return !set.Lists(silent) }) {
			return j.onward()
		}
	}
	return false
}
