// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// find searches the peers for the primary of an update, a removal or a move.
func (m *Machine) find() {
	m.Present = false
	m.Result.Peers = nil
	m.enter(finding)
	for _, p := range m.Op.Peers {
		if !m.departed(p) {
			m.spawn(jobFind, p)
		}
	}
}

func (m *Machine) stepFind(i int, r Reply) {
	s := &m.Strands[i]
	if (s.Step == "read" || s.Step == "confirm") && r.Code != NotFound {
		delete(m.Sets, s.Peer)
	}
	o := r.Object
	switch {
	case s.Step == "stray":
		if judgeStray(m.Op.Mode, s.X, r) != dead && m.Result.Reason == "" {
			m.Result.Reason, m.Result.Peer = UnknownOwner, s.X.Of(m.Op.Mode).Peer
		}
		m.finish(i)
	case s.Step == "member":
		if r.Code == OK {
			m.Sets[s.Peer] = r.PeerSet
		}
		m.send(i, "confirm", Command{Verb: Read, Peer: s.Peer})
	case s.Step != "read" && s.Step != "confirm":
		m.send(i, "read", Command{Verb: Read, Peer: s.Peer})
	case r.Code == NotFound && s.Step == "read" && m.onward():
		m.send(i, "member", Command{Verb: ReadPeerSet, Peer: s.Peer})
	case r.Code == NotFound:
		m.finish(i)
	case r.Code == Denied:
		m.Result.Peers = append(m.Result.Peers, s.Peer)
		m.fail(i, Refused)
	case r.Code != OK:
		if !m.again(i, "retry") {
			m.Result.Peers = append(m.Result.Peers, s.Peer)
			m.finish(i)
		}
	case o.Primary(m.Op.Mode) && o.Stage != Reserved && m.same(o):
		m.Primary = o
		m.Present = true
		m.Record.Primary = Ref{Peer: s.Peer, UID: o.UID}
		m.finish(i)
		if m.meant() {
			for j := range m.Strands {
				m.finish(j)
			}
		}
	case !o.Claimed, o.Primary(m.Op.Mode):
		if m.Result.HolderAt == "" {
			m.Result.Holder, m.Result.HolderAt = o, s.Peer
		}
		m.finish(i)
	case m.Op.Mode == Everywhere && o.Stage == Active && m.same(o):
		if o.UID == m.Op.UID {
			m.Named = o.Claim.Operation
		}
		m.astray(o, s.Peer)
		m.finish(i)
	case m.Phase == finding && !slices.Contains(m.Op.Peers, o.Of(m.Op.Mode).Peer):
		// Its primary may be in effect in a peer that is not configured here.
		s.X = o
		m.send(i, "stray", Command{Verb: ReadPeerSet, Peer: s.Peer})
	default:
		m.finish(i)
	}
}

// same reports whether o is or may be the object of the operation. An Everywhere object is
// identified by the UID of its former primary, or by the claim that all its replicas carry.
func (m *Machine) same(o Object) bool {
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
func (m *Machine) unnamed() bool {
	return m.Op.Action != Adopt && m.Op.UID != "" && m.Op.UID != m.Primary.UID && m.Named != m.Primary.Claim.Operation && m.Op.logged()
}

// meant reports whether the primary that was found is the one to act on, whatever the other
// peers hold. For an Everywhere object the operation may name the UID of any replica.
func (m *Machine) meant() bool {
	return m.Op.Mode == Once || m.Record.Origin != "" || !m.unnamed()
}

// afterFinding continues with the primary that was found, or ends the operation with a reason.
func (m *Machine) afterFinding() {
	lead := m.Lead
	m.Astray, m.Lead = false, Object{}
	if m.departed(lead.Of(m.Op.Mode).Peer) {
		// The lead is a replica that came into force late; it is dead.
		lead = Object{}
	}
	unread := len(m.Result.Peers) > 0
	m.Stopping = false
	switch {
	case m.Present && unread && !m.meant():
		m.because(Unreachable, m.Result.Peers[0])
		m.end(Aborted)
	case m.Present:
		// Refusals and missing replies of other peers do not matter.
		m.Result.Peers = nil
		m.excuse()
		m.resume()
	case lead.Claimed && !slices.Contains(m.Result.Peers, lead.Of(m.Op.Mode).Peer):
		// No primary was found: follow the replica that names one.
		m.astray(lead, m.LeadAt)
		m.regain()
	case m.Record.Origin != "" && unread:
		m.unfound()
	case m.Record.Origin != "":
		m.nowhere()
	case m.Result.Reason != "":
		m.end(Aborted)
	case m.Expired:
		m.because(Late, "")
		m.end(Aborted)
	case unread && m.unguarded():
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
func (m *Machine) onward() bool {
	return m.Phase == finding && m.Op.Action == Remove && m.Op.Mode == Once && m.Op.Patience == Onward
}

// unguarded reports whether an unreachable peer can hold only an uncommitted object, or one
// whose removal is committed. Every Active member has a guard of a committed object; here a
// member that lists the unreachable peers, and was Active before it was read, has none.
func (m *Machine) unguarded() bool {
	for peer, set := range m.Sets {
		if set.Self.Peer == peer && set.Self.State == "Active" &&
			!slices.ContainsFunc(m.Result.Peers, func(silent string) bool { return !set.Lists(silent) }) {
			return m.onward()
		}
	}
	return false
}
