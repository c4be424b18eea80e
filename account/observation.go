// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"slices"

	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/internal/rivals"
	"github.com/atoll-dev/atoll/region"
)

// observation is the cached state of one peer, and of its object of one key.
type observation struct {
	peer   region.PeerName
	member fanoutv1alpha1.PeerState // its state in the ring; only Active members count
	err    error                    // why the state is stale
	copy   *replica                 // nil if the peer has no object
}

func (s observation) counts() bool { return s.member == fanoutv1alpha1.PeerActive }

// primary returns the observation of the peer that has the committed home; nil if no peer is known
// to have it.
func primary(observed []observation) *observation {
	for i := range observed {
		if c := observed[i].copy; c != nil && c.Home && c.committed() {
			return &observed[i]
		}
	}
	return nil
}

// unreachable returns the Active members that are unreachable. An add has to wait for them.
func unreachable(observed []observation) []region.PeerName {
	var names []region.PeerName
	for _, s := range observed {
		if s.err != nil && s.counts() {
			names = append(names, s.peer)
		}
	}
	return names
}

// anyUnreachable reports whether any peer is unreachable, member or not.
func anyUnreachable(observed []observation) bool {
	return slices.ContainsFunc(observed, func(s observation) bool { return s.err != nil })
}

// rivalsOf returns all objects of the same name without a claim.
func rivalsOf(observed []observation) (all []rivals.Rival) {
	for _, s := range observed {
		if s.copy != nil && s.copy.Stage == "" && s.copy.Bad == "" {
			all = append(all, rivals.Rival{Peer: string(s.peer), UID: string(s.copy.UID), Created: s.copy.Created})
		}
	}
	return all
}

// homeless returns the first peer that has an Active object or an object with an unreadable claim;
// empty if no peer has one. Call it only if no home is known.
func homeless(observed []observation) region.PeerName {
	for _, s := range observed {
		if s.copy != nil && (s.copy.Stage == fanoutv1alpha1.StageActive || s.copy.Bad != "") {
			return s.peer
		}
	}
	return ""
}

// lagging reports whether a reachable Active member lacks the home's revision: it has no object, or
// its object has a claim and is not Active with at least the home's revision.
func lagging(observed []observation, home *observation) bool {
	return slices.ContainsFunc(observed, func(s observation) bool {
		return s.err == nil && s.counts() && (s.copy == nil ||
			s.copy.Bad == "" && s.copy.Stage != "" && (s.copy.Stage != fanoutv1alpha1.StageActive || s.copy.Revision < home.copy.Revision))
	})
}
