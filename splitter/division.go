// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"fmt"
	"math"

	"k8s.io/apimachinery/pkg/types"
)

// Mode is the way in which replicas are divided.
type Mode string

const (
	// Spread gives each cluster its share by weight. It is the default.
	Spread Mode = "Spread"
	// Fewest uses as few clusters, regions and zones as the bounds allow: the roomiest first, then the heaviest.
	Fewest Mode = "Fewest"
	// Fill fills one cluster after another, the heaviest first.
	Fill Mode = "Fill"
	// Duplicate gives all replicas to each cluster, within its bounds.
	Duplicate Mode = "Duplicate"
)

// Demand is the number of replicas to divide, and how. Only Replicas has no default.
type Demand struct {
	Replicas int64
	// Mode; empty: Spread.
	Mode Mode
	// Moves is how many replicas this division may take from clusters that could keep them, to
	// come nearer to the shares. Zero: none, so that a division only adds, or only removes what
	// the bounds force it to. AnyMoves: all.
	Moves int64
	// UID is the parent's. It decides between equal claims: always the same for one UID, and
	// fairly over many.
	UID types.UID
}

// AnyMoves is a Demand.Moves without limit.
const AnyMoves = math.MaxInt64

// Share is a claim on replicas, of one cluster, or of a region or zone with its clusters.
type Share struct {
	// Name is the cluster's, unique among all clusters, or the region's or zone's, unique among
	// its siblings.
	Name string
	// Weight is the claim in relation to the siblings'. Nil is 1. Zero claims nothing: present
	// replicas stay until a move takes them, and none are added except for Min.
	Weight *int64
	// Min is the least that it shall have. It gets less if replicas or room are too few; see
	// LimitUnmet.
	Min int64
	// Max is the most it may have. Nil is no bound.
	Max *int64
	// Capacity is how many of the parent's replicas it has room for in all, the present ones
	// included. Nil is no bound. A Kind raises Capacity to at least Present: it never removes
	// replicas for lack of room.
	Capacity *int64
	// Present is how many it has now. Zero for regions and zones, whose members have them.
	Present int64
	// Hold adds no replicas, and removes present ones only if the replicas become fewer or the
	// bounds of others need them. It has no effect on regions and zones.
	Hold bool
	// Group makes this a region or zone: its replicas are divided over its Members by the same
	// rule. The default weight of a group is 1, like that of a cluster.
	Group   bool
	Members []Share
}

// Divide gives replicas to clusters by weight within bounds. It uses the method of Webster and
// Sainte-Laguë, which gives each next seat to the claim with the greatest shortfall, and starts
// from the present replicas. Equal claims are decided by a hash of UID and name.
//
// It is pure, and the result does not depend on the order of shares. It takes O(n log n) for n
// clusters, whatever the number of replicas, and counts in integers without overflow.
//
// It guarantees, for each level of regions and zones, all modes and any bounds:
//   - The replicas of all clusters and Plan.Unplaced add up to Demand.Replicas (except with
//     Duplicate). Unplaced is zero while any claim with a weight is below its upper bound.
//   - No cluster has more than Max or Capacity. A cluster with enough Capacity has less than Min
//     only if no sibling has more than its own.
//   - More replicas never reduce a cluster, and fewer never increase one, from any state within
//     the bounds.
//   - A cluster that joins only takes replicas from the others, and one that leaves only gives to
//     them. With Fewest this holds among siblings only: a cluster that joins makes its region
//     roomier.
//   - Replicas leave a cluster only if bounds force it or Moves allows it, unless there are too
//     few for all minima. Repeated, the division ends at the shares, after the first plan's Due
//     more moves (without groups, not with Fewest).
//
// It fails on contradictory input: a negative number, a Min above Max, an empty or duplicate
// name, or weights of siblings whose sum overflows an int64. The error names the field.
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
