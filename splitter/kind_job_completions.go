// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// completions holds the completions of a Job: the total, and those that are already assigned to
// shards.
type completions struct {
	counted bool // the Job sets spec.completions
	total   int64
	kept    map[string]int64 // completions of the shards that stay, by cluster; they are immutable
	held    int64            // the sum of kept

	// These fields are nil unless the indexes of the Job are divided.
	offsets map[string]int64 // the first index of each cluster
	stay    []span           // the indexes of the shards that stay
	taken   []span           // indexes that no new shard may get
	ending  map[string]bool  // clusters with a shard that is being removed
}

// completionsOf returns the completions of a Job. A shard in a cluster without room keeps its
// completions: finished work is not repeated.
func completionsOf(parent *unstructured.Unstructured, shares []Share, have []Shard) completions {
	c := completions{kept: map[string]int64{}}
	c.total, c.counted = number(parent, "spec", "completions")
	done := map[string]int64{}
	for _, s := range have {
		if s.exists() {
			done[s.Cluster] = numberOr(s.Object, 0, "spec", "completions")
		}
	}
	for _, s := range clusters(shares) {
		if n, ok := done[s.Name]; ok && (s.Max == nil || *s.Max > 0) {
			c.kept[s.Name] = n
			c.held += n
		}
	}
	if !indexed(parent) {
		return c
	}
	c.offsets, c.ending = map[string]int64{}, map[string]bool{}
	for _, s := range have {
		if s.Object == nil {
			continue
		}
		c.ending[s.Cluster] = !s.exists()
		if s.exists() && c.in(s.Cluster) {
			c.offsets[s.Cluster], _ = offsetOf(parent, s.Object)
			c.stay = append(c.stay, indexesOf(parent, s.Object))
		}
	}
	c.taken = c.busy(parent, have)
	return c
}

// givenOut reports whether the shards that stay have all completions, so that none are left for
// other shards.
func (c completions) givenOut() bool {
	if c.offsets != nil {
		return len(gaps(c.total, c.stay)) == 0
	}
	return c.counted && c.held >= c.total
}

// in reports whether the cluster has a shard that stays.
func (c completions) in(cluster string) bool {
	_, ok := c.kept[cluster]
	return ok
}

// divide divides the completions that no shard has yet. The clusters of the plan without a shard
// get them, in proportion to their replicas in the plan.
func (c completions) divide(uid types.UID, plan Plan) (Plan, error) {
	if !c.counted {
		return Plan{}, nil
	}
	if c.offsets != nil {
		return c.divideIndexes(uid, plan)
	}
	var claims []Share
	for _, a := range plan.Shards {
		if a.Replicas > 0 && !c.in(a.Cluster) {
			claims = append(claims, Share{Name: a.Cluster, Weight: new(a.Replicas)})
		}
	}
	rest, err := Divide(Demand{Replicas: max(0, c.total-c.held), UID: uid}, claims)
	if err != nil {
		return Plan{}, fmt.Errorf("completions: %w", err)
	}
	return rest, nil
}

// shards returns the shards of a plan. A shard that stays keeps its completions; a new shard gets
// them from parts. A cluster gets a new shard only if the plan gives it replicas and, for a Job
// with completions, parts gives it some of them.
func (c completions) shards(parent *unstructured.Unstructured, plan, parts Plan) ([]Shard, error) {
	var shards []Shard
	for _, a := range plan.Shards {
		part, stays := c.kept[a.Cluster]
		if !stays {
			part = parts.Replicas(a.Cluster)
			if a.Replicas == 0 || c.counted && part == 0 {
				continue
			}
		}
		s := generated(newShard(parent, a.Cluster))
		if c.offsets != nil {
			setOffset(s.Object, c.offsets[a.Cluster])
		}
		if err := specify(s, "parallelism", a.Replicas); err != nil {
			return nil, err
		}
		if c.counted {
			if err := specify(s, "completions", part); err != nil {
				return nil, err
			}
		}
		shards = append(shards, s)
	}
	return shards, nil
}
