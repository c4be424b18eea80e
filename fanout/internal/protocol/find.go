// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// find looks for the primary that an update, a removal or a move is about.
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
		// What it names may be in effect where this operation cannot look.
		s.X = o
		m.send(i, "stray", Command{Verb: ReadPeerSet, Peer: s.Peer})
	default:
		m.finish(i)
	}
}

// same says whether o is or may be the object that the operation is about. An
// object that exists everywhere is known by the UID of what was its primary, or
// by the claim that all its replicas carry.
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

// unnamed says that the operation means an object by a UID that neither the
// primary has nor, where the object exists everywhere, a replica that was read.
func (m *Machine) unnamed() bool {
	return m.Op.Action != Adopt && m.Op.UID != "" && m.Op.UID != m.Primary.UID && m.Named != m.Primary.Claim.Operation && m.Op.logged()
}

// meant says that nothing that other peers hold could change what is made of the
// primary that was found: any replica's UID names what exists everywhere.
func (m *Machine) meant() bool {
	return m.Op.Mode == Once || m.Record.Origin != "" || !m.unnamed()
}

// afterFinding goes on with what was found, or says why nothing can be done.
func (m *Machine) afterFinding() {
	lead := m.Lead
	m.Astray, m.Lead = false, Object{}
	if m.departed(lead.Of(m.Op.Mode).Peer) {
		// A replica that came into force late; it is dead.
		lead = Object{}
	}
	unread := len(m.Result.Peers) > 0
	m.Stopping = false
	switch {
	case m.Present && unread && !m.meant():
		m.because(Unreachable, m.Result.Peers[0])
		m.end(Aborted)
	case m.Present:
		// What other peers refused or did not answer does not matter.
		m.Result.Peers = nil
		m.excuse()
		m.resume()
	case lead.Claimed && !slices.Contains(m.Result.Peers, lead.Of(m.Op.Mode).Peer):
		// Nobody is home; a replica knows where it went.
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

// onward says that this is a removal that need not find the object in a peer
// that does not answer, if another can say that it is not committed there.
func (m *Machine) onward() bool {
	return m.Phase == finding && m.Op.Action == Remove && m.Op.Mode == Once && m.Op.Patience == Onward
}

// unguarded says that what a silent peer may hold is not committed, or its
// removal is: what is committed has a guard in every Active member, and one that
// knows the silent peers, and was Active before it was read, has none.
func (m *Machine) unguarded() bool {
	for peer, set := range m.Sets {
		if set.Self.Peer == peer && set.Self.State == "Active" &&
			!slices.ContainsFunc(m.Result.Peers, func(silent string) bool { return !set.Lists(silent) }) {
			return m.onward()
		}
	}
	return false
}
