// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"fmt"
	"math"

	"k8s.io/apimachinery/pkg/types"
)

// Mode says what is wanted of a division.
type Mode string

const (
	// Spread gives each its share by weight. It is the default.
	Spread Mode = "Spread"
	// Fewest uses as few clusters, regions and zones as the bounds allow: the roomiest first, then the heaviest.
	Fewest Mode = "Fewest"
	// Fill fills one after another, the heaviest first.
	Fill Mode = "Fill"
	// Duplicate gives all replicas to each cluster, within its bounds.
	Duplicate Mode = "Duplicate"
)

// Demand is what is to be divided. The zero value of all but Replicas works.
type Demand struct {
	Replicas int64
	// Mode is what is wanted; empty: Spread.
	Mode Mode
	// Moves is how many replicas may leave clusters that could keep them, in this step, to come nearer to the shares.
	// Zero: none, so that a division only adds or only takes away what the bounds force it to. AnyMoves: all.
	Moves int64
	// UID is the parent's. It decides between equal claims: always the same for one UID, and fair over many.
	UID types.UID
}

// AnyMoves is a Demand.Moves without bound.
const AnyMoves = math.MaxInt64

// Share is the claim on replicas of one cluster, or of a region or zone with the clusters in it.
type Share struct {
	// Name is the cluster's, unique among all, or the region's or zone's, unique among its siblings.
	Name string
	// Weight is the claim in relation to the siblings'. Nil is 1. Zero asks for nothing: what is present is kept until it
	// may move, and nothing is added but for Min.
	Weight *int64
	// Min is the least it shall have. There may be too few replicas, or too little room, for it; see LimitUnmet.
	Min int64
	// Max is the most it may have. Nil is no bound.
	Max *int64
	// Capacity is how many of the parent's replicas it has room for in all: those that run there already and the room that
	// is free. Nil is no bound. A Kind takes what is Present for room that there is: it never takes replicas away for lack of
	// room.
	Capacity *int64
	// Present is how many it has now. Zero for regions and zones, which have what their members have.
	Present int64
	// Hold adds nothing to what is present, and takes nothing away unless there are fewer replicas than are present or the
	// bounds of others need them. It has no meaning for regions and zones.
	Hold bool
	// Group makes this a region or zone: what it gets is divided over its Members by the same rule. Like clusters, all have
	// the same weight unless they say otherwise.
	Group   bool
	Members []Share
}

// Divide gives replicas to clusters by weight within bounds: by the method of Webster and Sainte-Laguë, which gives one
// seat after another to whom its share falls short most, continued from what is present. Claims that are equal are
// decided by a hash of UID and name.
//
// It is pure, and the result does not depend on the order of shares. It takes O(n log n) for n clusters, whatever the
// number of replicas, and counts in integers without overflow.
//
// What it keeps to, for each level of regions and zones, all modes and any bounds:
//   - The replicas of all clusters and Plan.Unplaced make Demand.Replicas (except with Duplicate). Unplaced is zero while
//     anything with a weight is below its upper bound.
//   - Nobody has more than Max and Capacity. Nobody has less than Min, unless all have no more than theirs.
//   - More replicas take none away anywhere, and fewer add none anywhere, from any state within the bounds.
//   - One that joins only takes from the others, and one that leaves only gives to them. With Fewest that holds among
//     siblings; who joins makes its region roomier.
//   - No more replicas leave than the bounds force and Moves allows, unless there are too few for all minima. Repeated, the
//     plan ends at the shares, after as many moves as the first said were due (in a division without groups, not with
//     Fewest).
//
// It fails on input that contradicts itself: a number below zero, a Min above Max, an empty name or one that is there
// twice, weights of siblings that add up to more than an int64 holds. The error names the field.
func Divide(d Demand, shares []Share) (Plan, error) {
	switch d.Mode {
	case "", Spread, Fewest, Fill, Duplicate:
	default:
		return Plan{}, fmt.Errorf("divide: Mode is %q, not Spread, Fewest, Fill or Duplicate", d.Mode)
	}
	if d.Replicas < 0 {
		return Plan{}, fmt.Errorf("divide: Replicas is %d, and may not be below zero", d.Replicas)
	}
	if d.Moves < 0 {
		return Plan{}, fmt.Errorf("divide: Moves is %d, and may not be below zero: AnyMoves is no bound", d.Moves)
	}
	v := &division{Demand: d, budget: d.Moves}
	level, err := v.level(hold(d, shares), true)
	if err != nil {
		return Plan{}, fmt.Errorf("divide: %w", err)
	}
	if err := v.unique(); err != nil {
		return Plan{}, fmt.Errorf("divide: %w", err)
	}
	v.plan.Shards, v.plan.Unplaced = make([]Assignment, 0, len(v.names)), d.Replicas
	if d.Mode == Duplicate {
		v.plan.Unplaced = 0
		v.duplicate(level)
	} else {
		v.divide(level, d.Replicas, 0, 0)
	}
	v.plan.sort()
	return v.plan, nil
}
