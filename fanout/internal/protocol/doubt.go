// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// If evidence and the peer of its primary contradict each other, one of the two peers was
// restored. A third member decides: every full member holds a secondary of a durable object. So
// if a member that was full before it was read holds nothing of the object, a removal deleted
// the object, and the evidence comes from a restore.

// doubt reads X of strand i again after its primary was missing: a removal may have deleted
// both between the two reads.
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

// askWitness asks the next witness, or leaves X of strand i unchanged if none is left.
func (m *Machine) askWitness(i int) {
	s := &m.Strands[i]
	if s.Asked == len(m.witnesses(s)) {
		m.finish(i)
		return
	}
	s.Asked++
	m.send(i, "witness member", Command{Verb: ReadPeerSet, Peer: m.witnesses(s)[s.Asked-1]})
}

// witnesses returns the configured peers without the two that contradict each other.
func (m *Machine) witnesses(s *Strand) []string {
	return slices.DeleteFunc(slices.Clone(m.Op.Peers), func(p string) bool {
		return p == s.Peer || p == s.X.Of(m.Op.Mode).Peer
	})
}

// mutual reports whether a member lists both peers that contradict each other.
func (m *Machine) mutual(set PeerSet, s *Strand) bool {
	return set.Lists(s.Peer) && set.Lists(s.X.Of(m.Op.Mode).Peer)
}
