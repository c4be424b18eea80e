// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"cmp"
	"slices"
)

// Plan is the result of a division: the replicas of each cluster, the number of unplaced replicas, and the reasons.
// Dry runs and conditions use it.
type Plan struct {
	// Shards has an entry for each cluster that took part, sorted by name, also for a cluster without replicas.
	Shards []Assignment
	// Unplaced is how many replicas do not fit within the bounds. With Duplicate it is the sum over all clusters.
	Unplaced int64
	// Moved is how many replicas leave clusters that could keep them, to bring the clusters nearer to their shares.
	// It is never above Demand.Moves.
	Moved int64
	// Due is how many more moves would bring all clusters to their shares. It is above zero only if Demand.Moves
	// was too small.
	Due int64
	// Held names the clusters that keep replicas of a StatefulSet because of their volumes, although they should
	// have fewer.
	Held []string
	// SameOrdinals names the clusters whose pods of a StatefulSet may have the same ordinals, although it asks for
	// unique ones: their shards are older than the OrdinalsPerClusterAnnotation of splitter/v1alpha1.
	SameOrdinals []string
	// Reasons lists the limits that clusters, regions and zones have hit, sorted by name.
	Reasons []Reason
}

// Assignment is the number of replicas of one cluster.
type Assignment struct {
	Cluster  string
	Replicas int64
}

// Limit is the reason why a cluster, region or zone does not get exactly its share. In the comments below, "the place"
// is this cluster, region or zone, and By is the field of the Reason.
type Limit string

const (
	// LimitMin: the place gets By more than its share, since its minimum requires them.
	LimitMin Limit = "Min"
	// LimitMax: the place gets By less than its share, since its maximum does not allow more.
	LimitMax Limit = "Max"
	// LimitCapacity: the place gets By less than its share, since it has no room for more.
	LimitCapacity Limit = "Capacity"
	// LimitPresent: the place keeps By more than its share, since Demand.Moves does not allow moving them.
	LimitPresent Limit = "Present"
	// LimitUnmet: the place gets By less than its minimum, since the demand or its room is too small.
	LimitUnmet Limit = "Unmet"
	// LimitWeight: the place gets none of the By unplaced replicas, since its weight is zero.
	LimitWeight Limit = "Weight"
)

// Reason records one limit that a cluster, region or zone has hit, and by how many replicas.
type Reason struct {
	// Name is the name of the cluster, region or zone.
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
