// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"cmp"
	"slices"
)

// Plan is the result of a division: the replicas of each cluster, the unplaced ones, and the
// reasons. Dry runs and conditions are made from it.
type Plan struct {
	// Shards are all clusters that took part, sorted by name, also those without replicas.
	Shards []Assignment
	// Unplaced is how many replicas find no place within the bounds; with Duplicate, summed over
	// all clusters.
	Unplaced int64
	// Moved is how many replicas leave clusters that could have kept them, to come nearer to the shares. It is never above
	// Demand.Moves.
	Moved int64
	// Due is how many more such moves would bring all clusters to their shares. It is above zero
	// only if Demand.Moves was too small.
	Due int64
	// Reasons are the limits that were hit, sorted by name.
	Reasons []Reason
}

// Assignment is the number of replicas of one cluster.
type Assignment struct {
	Cluster  string
	Replicas int64
}

// Limit is the reason why a cluster, region or zone does not get exactly its share.
type Limit string

const (
	// LimitMin: it gets By more than its share, since its minimum asks for them.
	LimitMin Limit = "Min"
	// LimitMax: it gets By less than its share, since its maximum does not allow more.
	LimitMax Limit = "Max"
	// LimitCapacity: it gets By less than its share, since it has no room for more.
	LimitCapacity Limit = "Capacity"
	// LimitPresent: it keeps By more than its share, since it has them already and moving them was not allowed.
	LimitPresent Limit = "Present"
	// LimitUnmet: it lacks By of its minimum, since replicas or its room are too few.
	LimitUnmet Limit = "Unmet"
	// LimitWeight: it gets none of the By replicas that find no place, since its weight is zero.
	LimitWeight Limit = "Weight"
)

// Reason is one limit that was hit, where, and by how much.
type Reason struct {
	// Name is the cluster's, or the region's or zone's.
	Name  string
	Limit Limit
	By    int64
}

// Replicas returns the replicas of a cluster: zero if it took no part.
func (p Plan) Replicas(cluster string) int64 {
	i, ok := slices.BinarySearchFunc(p.Shards, cluster, func(a Assignment, name string) int { return cmp.Compare(a.Cluster, name) })
	if !ok {
		return 0
	}
	return p.Shards[i].Replicas
}

func (p *Plan) sort() {
	byCluster := func(a, b Assignment) int { return cmp.Compare(a.Cluster, b.Cluster) }
	if !slices.IsSortedFunc(p.Shards, byCluster) {
		slices.SortFunc(p.Shards, byCluster)
	}
	slices.SortFunc(p.Reasons, func(a, b Reason) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Limit, b.Limit), cmp.Compare(a.By, b.By))
	})
}
