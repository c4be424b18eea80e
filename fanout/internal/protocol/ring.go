// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"maps"
	"slices"
)

// RingPlan is what is to be done about the ID of a ring.
type RingPlan struct {
	// ID is the ring's. If it is empty and At is not, one is to be made: written to
	// the one peer in At, on its PeerSet as it was read, and read back.
	ID string
	// At are the members whose PeerSets lack it.
	At []string
	// Conflict says that members which list each other have two; nothing is written.
	Conflict string
}

// PlanRing decides about the ring's ID. sets are the PeerSets of believed peers. Nothing
// is done unless those of all members were read, list the same members, are full members
// and have no change of the membership under way. An ID is made in the first member
// alone: two who do so at once meet there, and a change meets them.
func PlanRing(sets map[string]PeerSet) RingPlan {
	var first PeerSet
	for _, p := range slices.Sorted(maps.Keys(sets)) {
		if set := sets[p]; set.current() && set.Lists(p) && !droppedIn(sets, p) {
			first = set
			break
		}
	}
	members := first.names("")
	var plan RingPlan
	var has string
	for _, p := range members {
		set, read := sets[p]
		if !read || !set.current() || set.Change.ID != "" || !slices.Equal(set.names(""), members) {
			return RingPlan{}
		}
		switch {
		case set.Ring == "":
			plan.At = append(plan.At, p)
		case plan.ID == "":
			plan.ID, has = set.Ring, p
		case set.Ring != plan.ID:
			return RingPlan{Conflict: fmt.Sprintf("%s belongs to ring %s and %s to ring %s, and they list each other", has, plan.ID, p, set.Ring)}
		}
	}
	if plan.ID == "" && len(plan.At) > 1 {
		plan.At = plan.At[:1]
	}
	return plan
}

// droppedIn says whether another full member knows that peer has departed, and peer
// does not know the same of it.
func droppedIn(sets map[string]PeerSet, peer string) bool {
	for other, set := range sets {
		if other != peer && set.current() && set.Gone(peer) && !sets[peer].Gone(other) {
			return true
		}
	}
	return false
}
