// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// Evidence and the peer of its primary contradict one another: one of the two was
// restored. A third member tells which. What is durable is held by every full
// member; so if one that was full before it was read holds nothing of the object,
// its removal took that, and the evidence is what a restore brought back.

// doubt looks whether X of strand i, whose primary is missing, stands there still: a
// removal may have taken both between the reads.
func (m *Machine) doubt(i int) {
	m.send(i, "unchanged", Command{Verb: Read, Peer: m.Strands[i].Peer})
}

func (m *Machine) stepDoubt(i int, r Reply) {
	s := &m.Strands[i]
	switch s.Step {
	case "unchanged":
		if r.Code != OK || r.Object.UID != s.X.UID || r.Object.RV != s.X.RV {
			m.finish(i)
			return
		}
		s.Asked = 0
		m.askWitness(i)
	case "witness member":
		if r.Code != OK || !r.PeerSet.current() || r.PeerSet.Self.State != peerActive || !m.mutual(r.PeerSet, s) {
			m.askWitness(i)
			return
		}
		m.send(i, "witness", Command{Verb: Read, Peer: m.witnesses(s)[s.Asked-1]})
	case "witness":
		gone := r.Code == NotFound || r.Code == OK && r.Object.Claim.Operation != s.X.Claim.Operation
		if !gone {
			m.askWitness(i)
			return
		}
		m.send(i, "remove", Command{Verb: Delete, Peer: s.Peer, UID: s.X.UID, RV: s.X.RV})
	}
}

// askWitness asks the next member, or leaves X of strand i as it is if none is left.
func (m *Machine) askWitness(i int) {
	s := &m.Strands[i]
	if s.Asked == len(m.witnesses(s)) {
		m.finish(i)
		return
	}
	s.Asked++
	m.send(i, "witness member", Command{Verb: ReadPeerSet, Peer: m.witnesses(s)[s.Asked-1]})
}

// witnesses are the configured peers but the two that contradict one another.
func (m *Machine) witnesses(s *Strand) []string {
	return slices.DeleteFunc(slices.Clone(m.Op.Peers), func(p string) bool {
		return p == s.Peer || p == s.X.Of(m.Op.Mode).Peer
	})
}

// mutual says whether a member knows both peers that contradict one another.
func (m *Machine) mutual(set PeerSet, s *Strand) bool {
	return set.Lists(s.Peer) && set.Lists(s.X.Of(m.Op.Mode).Peer)
}
