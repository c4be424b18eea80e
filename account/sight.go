// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"slices"

	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region"
)

// sight is the cached state of one peer and of its object.
type sight struct {
	peer   region.PeerName
	member fanoutv1alpha1.PeerState // Active ones count
	err    error                    // why the state is stale
	copy   *replica                 // nil if it has none
}

func (s sight) counts() bool { return s.member == fanoutv1alpha1.PeerActive }

// primary returns the sight of the home, nil if it is not known.
func primary(sights []sight) *sight {
	for i := range sights {
		if c := sights[i].copy; c != nil && c.Home && c.committed() {
			return &sights[i]
		}
	}
	return nil
}

// silent returns the unreachable members. Without them nothing can be added.
func silent(sights []sight) []region.PeerName {
	var names []region.PeerName
	for _, s := range sights {
		if s.err != nil && s.counts() {
			names = append(names, s.peer)
		}
	}
	return names
}

// anySilent reports whether a peer is unreachable, be it a member or not.
func anySilent(sights []sight) bool {
	return slices.ContainsFunc(sights, func(s sight) bool { return s.err != nil })
}

// unclaimed returns a peer other than itself with an object of the same name that has no claim.
func unclaimed(sights []sight, itself region.PeerName) region.PeerName {
	for _, s := range sights {
		if s.peer != itself && s.copy != nil && s.copy.Stage == "" && s.copy.Bad == "" {
			return s.peer
		}
	}
	return ""
}

// lagging reports whether a reachable member has an older revision than the home.
func lagging(sights []sight, home *sight) bool {
	return slices.ContainsFunc(sights, func(s sight) bool {
		return s.err == nil && s.counts() && (s.copy == nil ||
			s.copy.Bad == "" && s.copy.Stage != "" && (s.copy.Stage != fanoutv1alpha1.StageActive || s.copy.Revision < home.copy.Revision))
	})
}
