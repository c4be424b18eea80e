// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// Evidence is a secondary that proves the commit of its primary. If the primary's peer does not have
// the committed primary, one of the two peers was restored from a backup. A third member, the
// witness, decides. If the object was durable, every full member holds a secondary of it. So if the
// witness was a full member before the object was read there, and holds nothing of the object, a
// removal deleted the object, and a restore brought the evidence back.

// doubt begins to check evidence X, whose primary is missing or not committed. It reads X again,
// because a removal may have deleted X and its primary since X was read.
func (s judgeTask) doubt() {
	s.send(stepUnchanged, readObject(s.Peer))
}

func (s judgeTask) stepDoubt(r Reply) {
	switch s.Step {
	case stepUnchanged:
		if r.Code != OK || r.Object.UID != s.X.UID || r.Object.RV != s.X.RV {
			s.finish()
			return
		}
		s.Asked = 0
		s.askWitness()
	case stepWitnessMember:
		if r.Code != OK || !r.PeerSet.current() || r.PeerSet.Self.State != peerActive || !s.mutual(r.PeerSet) {
			s.askWitness()
			return
		}
		s.send(stepWitness, readObject(s.witnesses()[s.Asked-1]))
	case stepWitness:
		gone := r.Code == NotFound || r.Code == OK && r.Object.Claim.Operation != s.X.Claim.Operation
		if !gone {
			s.askWitness()
			return
		}
		s.send(stepRemove, deleteObject(s.Peer, s.X))
	}
}

// askWitness reads the PeerSet of the next witness. If no witness is left, it leaves X unchanged.
func (s judgeTask) askWitness() {
	if s.Asked == len(s.witnesses()) {
		s.finish()
		return
	}
	s.Asked++
	s.send(stepWitnessMember, Command{Verb: ReadPeerSet, Peer: s.witnesses()[s.Asked-1]})
}

// witnesses returns the configured peers without the two that contradict each other.
func (s judgeTask) witnesses() []string {
	m := s.m
	return slices.DeleteFunc(slices.Clone(m.Op.Peers), func(p string) bool {
		return p == s.Peer || p == s.X.Of(m.Op.Mode).Peer
	})
}

// mutual reports whether set, the PeerSet of a witness, lists both peers that contradict each
// other.
func (s judgeTask) mutual(set PeerSet) bool {
	m := s.m
	return set.Lists(s.Peer) && set.Lists(s.X.Of(m.Op.Mode).Peer)
}
