// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"fmt"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Mode is the way in which replicas are divided.
type Mode string

const (
	// Spread gives each cluster its share by weight. It is the default.
	Spread Mode = "Spread"
	// Fewest uses as few clusters, regions and zones as the bounds allow. It fills those with a minimum
	// first, then those with the most room, and between equal room the heaviest.
	Fewest Mode = "Fewest"
	// FewestSpread uses the clusters, regions and zones that Fewest uses, and gives each its share by
	// weight: 7 and 5 of 12 replicas, for example, if two of three clusters have room for 10 each.
	FewestSpread Mode = "FewestSpread"
	// Fill fills one cluster after another, the heaviest first.
	Fill Mode = "Fill"
	// Duplicate gives all replicas to each cluster, within its bounds.
	Duplicate Mode = "Duplicate"
)

// Demand is the number of replicas to divide, and the rules for the division. Only Replicas has no default.
type Demand struct {
	Replicas int64
	// Mode; empty: Spread.
	Mode Mode
	// Moves is how many replicas this division may move away from clusters that could keep them, to bring all
	// clusters nearer to their shares. With zero, a division only adds replicas or removes those that the bounds
	// do not permit. AnyMoves sets no limit.
	Moves int64
	// Rollout adjusts how a Deployment is rolled out and moves between clusters. Divide ignores it.
	Rollout Rollout
	// UID is the UID of the parent. Between equal claims, a hash of the UID decides: always in the same way for
	// one UID, and evenly over many UIDs.
	UID types.UID
}

// Rollout adjusts the rollout of a Deployment over its clusters. The zero value works.
type Rollout struct {
	// Order names the clusters that get a new template first. The other clusters follow, sorted by
	// name.
	Order []string
	// Clusters is how many clusters may be in a rollout at the same time. With 1, a cluster gets a
	// new template only when all pods of the previous one are replaced and available. Zero means no
	// limit other than maxUnavailable and maxSurge.
	Clusters int64
	// MoveSurge is how many pods above maxSurge there may be while replicas move between clusters.
	MoveSurge int64
}

// AnyMoves is a Demand.Moves without limit.
const AnyMoves = math.MaxInt64

// Share is a claim on replicas, of one cluster, or of a region or zone with its clusters.
type Share struct {
	// Name is the name of the cluster, region or zone. A cluster's name is unique among all clusters; a region's
	// or zone's is unique among its siblings.
	Name string
	// Weight is the size of the claim in relation to its siblings. Nil means 1. With zero, a cluster gets no
	// new replicas except for Min, and keeps its present replicas until a move or a lower demand takes them.
	Weight *int64
	// Min is the least number of replicas for this claim. The claim gets fewer if the demand or the room is too
	// small; see LimitUnmet.
	Min int64
	// Max is the greatest number of replicas for this claim. Nil means no bound.
	Max *int64
	// Capacity is how many of the parent's replicas fit here in all, including the present ones. Nil means no
	// bound. A Kind raises Capacity to at least Present, so that it never removes replicas for lack of room.
	Capacity *int64
	// Present is the number of replicas that the cluster has now. It is zero for regions and zones: their
	// members have the replicas.
	Present int64
	// Hold prevents new replicas in this cluster. Present replicas leave only if the demand falls or if
	// bounds force it. Hold has no effect on regions and zones.
	Hold bool
	// Group makes this Share a region or zone: its replicas are divided over its Members by the same rule. The
	// default weight of a group is 1, like that of a cluster.
	Group   bool
	Members []Share
}

// Divide gives replicas to clusters by weight within bounds. It starts from the present replicas. With Spread it
// uses the method of Webster and Sainte-Laguë: the next replica goes to the claim whose weight / (2n + 1) is the
// greatest, where n is the number of replicas that the claim has so far. Between equal claims, a hash of UID and
// name decides.
//
// It is pure, and the result does not depend on the order of shares. It takes O(n log n) for n clusters,
// whatever the number of replicas, and counts in integers without overflow.
//
// It guarantees, for each level of regions and zones, all modes and any bounds:
//   - The replicas of all clusters and Plan.Unplaced add up to Demand.Replicas (except with Duplicate). Unplaced
//     is zero while a cluster with a weight above zero has room within the bounds.
//   - No cluster has more than Max or Capacity. A cluster with enough Capacity has less than its Min only if the
//     replicas of its level are too few for the minima of all siblings and their members.
//   - From any state within the bounds, a higher Demand.Replicas never reduces a cluster, and a lower one never
//     increases a cluster, apart from the replicas that Moves lets move.
//   - A cluster that joins only takes replicas from the other clusters, and one that leaves only gives replicas
//     to them, apart from the replicas that Moves lets move. With Fewest this holds among siblings only: a
//     cluster that joins makes its region roomier. With FewestSpread it does not hold: a cluster that joins
//     can replace two others.
//   - Replicas leave a cluster only if bounds force it or Moves allows it, unless there are too few replicas for
//     all minima. Without groups, and with Spread or Fill, repeated divisions reach the shares after
//     as many more moves as the first plan's Due.
//
// It fails on invalid input, such as an unknown Mode, a negative number, a Min above Max, an empty or duplicate
// name, or weights of siblings whose sum overflows an int64. The error names the field.
func Divide(d Demand, shares []Share) (Plan, error) {
	switch d.Mode {
	case "", Spread, Fewest, FewestSpread, Fill, Duplicate:
	default:
		return Plan{}, fmt.Errorf("divide: Mode is %q, not Spread, Fewest, FewestSpread, Fill or Duplicate", d.Mode)
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

// eachCluster returns a copy of the shares in which f has changed those of the clusters: the leaves below all groups.
func eachCluster(shares []Share, f func(*Share)) []Share {
	shares = slices.Clone(shares)
	for i := range shares {
		if s := &shares[i]; s.Group {
			s.Members = eachCluster(s.Members, f)
		} else {
			f(s)
		}
	}
	return shares
}

// clusters returns the shares of clusters: the leaves below all groups.
func clusters(shares []Share) (leaves []Share) {
	for _, s := range shares {
		if s.Group {
			leaves = append(leaves, clusters(s.Members)...)
		} else {
			leaves = append(leaves, s)
		}
	}
	return leaves
}
