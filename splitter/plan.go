// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"cmp"
	"slices"
)

// Plan is a decision as data: who gets how much, what finds no place, and why. It is what a dry run shows and what
// conditions are made of.
type Plan struct {
	// Shards are all clusters that took part, by name, also those that get nothing.
	Shards []Assignment
	// Unplaced is how many replicas find no place within the bounds; with Duplicate, over all clusters.
	Unplaced int64
	// Moved is how many replicas leave clusters that could have kept them, to come nearer to the shares. It is never above
	// Demand.Moves.
	Moved int64
	// Due is how many more such moves would bring all to their shares. It is not zero only if Demand.Moves was too small.
	Due int64
	// Reasons are the limits that were hit, by name.
	Reasons []Reason
}

// Assignment is what one cluster gets.
type Assignment struct {
	Cluster  string
	Replicas int64
}

// Limit is what keeps a cluster, or a region or zone, from getting exactly its share.
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
	// LimitUnmet: it lacks By of its minimum, since there are too few replicas or it has too little room.
	LimitUnmet Limit = "Unmet"
	// LimitWeight: it gets none of the By replicas that find no place, since its weight is zero.
	LimitWeight Limit = "Weight"
)

// Reason says which limit was hit, where, and by how much.
type Reason struct {
	// Name is the cluster's, or the region's or zone's.
	Name  string
	Limit Limit
	By    int64
}

// Replicas returns what a cluster gets: zero if it took no part.
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
