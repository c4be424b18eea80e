// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/splitter/workload"
)

// Jobs returns the Kind of batch/v1 Jobs. Parallelism is divided by weight, and completions in
// proportion to parallelism. A shard's completions are immutable, so they stay in their cluster. The
// completions of a lost cluster are repeated elsewhere, unless the Job has ended: an ended Job does
// not change.
//
// An Indexed Job is not divided by default: one cluster has all of it. If it has the DivideIndexesAnnotation of
// splitter/v1alpha1, each cluster gets one range of the indexes, and all containers get IndexOffsetVariable.
// ConditionIndexesDivided reports the ranges, or why the Job is not divided. completedIndexes and failedIndexes in the
// parent's status are those of the whole Job.
//
// When a cluster loses its shard, other clusters repeat all its indexes, also completed ones. They begin after the pods
// of the shard have stopped, but do not wait for the pods of a lost cluster.
func Jobs() Kind { return jobs{declaration{workload.BuiltinType("jobs")}} }

type jobs struct{ declaration }

func (jobs) Cut(parent *unstructured.Unstructured, d Demand, shares []Share, have []Shard) (Plan, []Shard, error) {
	if ended(parent) {
		return endedShards(parent, have)
	}
	d.Replicas = numberOr(parent, 1, "spec", "parallelism")
	if divides, _ := dividesIndexes(parent, have); indexed(parent) && !divides {
		return undivided(parent, d, shares, have)
	}
	if suspended, _, _ := unstructured.NestedBool(parent.Object, "spec", "suspend"); suspended && len(have) == 0 {
		d.Replicas = 0 // no pod may run yet, so do not choose the clusters yet
	}
	d.Moves = 0
	present := map[string]int64{}
	for _, s := range have {
		if s.exists() {
			present[s.Cluster] = max(0, numberOr(s.Object, 1, "spec", "parallelism"))
		}
	}
	work := completionsOf(parent, shares, have)
	shares = withPresent(shares, present)
	if len(present) > 0 && work.givenOut() {
		// Only clusters that have some of the completions take part.
		shares = filterShares(shares, func(s Share) bool { return work.in(s.Name) })
	}
	plan, err := Divide(d, shares)
	if err != nil {
		return Plan{}, nil, err
	}
	parts, err := work.divide(d.UID, plan)
	if err != nil {
		return Plan{}, nil, err
	}
	plan.Unplaced = max(plan.Unplaced, parts.Unplaced)
	shards, err := work.shards(parent, plan, parts)
	if err != nil {
		return Plan{}, nil, err
	}
	return plan, shards, nil
}

// ended reports whether a Job is Complete or Failed. Both are final: an API server rejects later
// changes of these conditions.
func ended(job *unstructured.Unstructured) bool {
	return isTrue(job, "Complete") || isTrue(job, "Failed")
}

// endedShards returns the shards of an ended Job, with the parallelism and completions that they have.
func endedShards(parent *unstructured.Unstructured, have []Shard) (Plan, []Shard, error) {
	var plan Plan
	var shards []Shard
	for _, h := range have {
		if h.Object == nil {
			continue
		}
		s := generated(newShard(parent, h.Cluster))
		if offset, ok := offsetOf(parent, h.Object); ok {
			setOffset(s.Object, offset)
		}
		for _, field := range []string{"parallelism", "completions"} {
			n, ok := number(h.Object, "spec", field)
			if !ok {
				continue
			}
			if err := specify(s, field, n); err != nil {
				return Plan{}, nil, err
			}
		}
		shards = append(shards, s)
		plan.Shards = append(plan.Shards, Assignment{Cluster: h.Cluster, Replicas: numberOr(h.Object, 1, "spec", "parallelism")})
	}
	plan.sort()
	return plan, shards, nil
}

// specify sets a number in the spec of a shard.
func specify(s Shard, field string, n int64) error {
	if err := unstructured.SetNestedField(s.Object.Object, n, "spec", field); err != nil {
		return fmt.Errorf("spec.%s: %w", field, err)
	}
	return nil
}

// generated removes the fields that each API server generates for a Job: a selector with the Job's
// UID, and the labels that this selector matches.
func generated(s Shard) Shard {
	if manual, _, _ := unstructured.NestedBool(s.Object.Object, "spec", "manualSelector"); manual {
		return s
	}
	unstructured.RemoveNestedField(s.Object.Object, "spec", "selector")
	for _, label := range []string{"controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"} {
		unstructured.RemoveNestedField(s.Object.Object, "spec", "template", "metadata", "labels", label)
	}
	if labels, ok, _ := unstructured.NestedMap(s.Object.Object, "spec", "template", "metadata", "labels"); ok && len(labels) == 0 {
		unstructured.RemoveNestedField(s.Object.Object, "spec", "template", "metadata", "labels")
	}
	if meta, ok, _ := unstructured.NestedMap(s.Object.Object, "spec", "template", "metadata"); ok && len(meta) == 0 {
		unstructured.RemoveNestedField(s.Object.Object, "spec", "template", "metadata")
	}
	return s
}

// filterShares returns the shares without the clusters for which the predicate in returns false. Groups stay.
func filterShares(shares []Share, in func(Share) bool) (left []Share) {
	for _, s := range shares {
		switch {
		case s.Group:
			s.Members = filterShares(s.Members, in)
			left = append(left, s)
		case in(s):
			left = append(left, s)
		}
	}
	return left
}

// undivided is Cut for a parent that cannot be divided. One cluster gets the whole parent, and keeps it as
// long as the shares permit that cluster. If the shares permit no cluster, there is no shard.
func undivided(parent *unstructured.Unstructured, d Demand, shares []Share, have []Shard) (Plan, []Shard, error) {
	d.Replicas, d.Mode, d.Moves = 1, Fewest, 0
	present := map[string]int64{}
	for _, s := range have {
		if s.exists() {
			present[s.Cluster] = 1
		}
	}
	shares = withPresent(shares, present)
	plan, err := Divide(d, shares)
	if err != nil {
		return Plan{}, nil, err
	}
	var shards []Shard
	for _, a := range plan.Shards {
		if a.Replicas > 0 {
			shards = append(shards, generated(newShard(parent, a.Cluster)))
		}
	}
	return plan, shards, nil
}
