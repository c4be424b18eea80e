// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"maps"
	"slices"
)

// RingPlan is the decision about the ID of a ring.
type RingPlan struct {
	// ID is the ring's ID. If it is empty and At is not, the caller makes a new ID, writes
	// it to the one peer in At, on the PeerSet as it was read, and reads it back.
	ID string
	// At are the members whose PeerSets lack the ID.
	At []string
	// Conflict describes two members that list each other and have different IDs. Write
	// nothing then.
	Conflict string
}

// PlanRing decides about the ring's ID. sets are the PeerSets of Believed peers. It plans a write
// only if the PeerSets of all members were read, list the same members, are of full members and
// have no membership change under way. Only the first member gets a new ID. So two coordinators
// that make an ID conflict there, and so does a membership change.
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

// droppedIn reports whether another full member lists peer as departed, while peer does not
// list that member as departed.
func droppedIn(sets map[string]PeerSet, peer string) bool {
	for other, set := range sets {
		if other != peer && set.current() && set.Gone(peer) && !sets[peer].Gone(other) {
			return true
		}
	}
	return false
}
