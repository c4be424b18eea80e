// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/internal/selector"
)

// DisruptionBudgets returns the Follower of policy/v1 PodDisruptionBudgets. The clusters of the workloads that a budget
// selects share the disruptions that it allows: each cluster gets a budget with a part of them as maxUnavailable.
//
// The parts add up to at most what the parent allows for the replicas of the workloads; replicas that are missing in one
// cluster count in all. A part is raised only when the clusters have observed that others are lower. Each cluster gets
// at least one if there are enough, and the rest is divided by replicas. Otherwise those with cordoned nodes take turns
// of Options.Turn, so that each drain ends; clusters whose nodes are not known count among them. Without cordoned nodes,
// the parts stay where they are.
//
// In the mode Duplicate each cluster has all replicas, and all of them count. Workloads without a number of replicas do
// not count: Jobs, CronJobs and DaemonSets. A budget that selects no divided workload stays as it is.
func DisruptionBudgets() Follower { return disruptionBudgets{} }

type disruptionBudgets struct{}

func (disruptionBudgets) Resource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}
}

func (disruptionBudgets) follows(budget, workload *unstructured.Unstructured) bool {
	content, ok, err := unstructured.NestedMap(budget.Object, "spec", "selector")
	if !ok || err != nil {
		return false // as for API servers
	}
	pods, _, _ := unstructured.NestedStringMap(workload.Object, "spec", "template", "metadata", "labels")
	return selector.Read(content).Matches(labels.Set(pods))
}

func (disruptionBudgets) cut(budget *unstructured.Unstructured, at situation, have []Shard) (Plan, []Shard, error) {
	total, all := disruptions(budget, at, have)
	next, without, err := allowances(total, at.turn, budget.GetUID(), all)
	if err != nil {
		return Plan{}, nil, err
	}
	var plan Plan
	var shards []Shard
	for i, c := range all {
		if c.pods == 0 {
			continue
		}
		plan.Shards = append(plan.Shards, Assignment{Cluster: c.cluster, Replicas: next[i]})
		s := newShard(budget, c.cluster)
		unstructured.RemoveNestedField(s.Object.Object, "spec", "minAvailable")
		if err := specify(s, "maxUnavailable", next[i]); err != nil {
			return Plan{}, nil, err
		}
		shards = append(shards, s)
	}
	for _, cluster := range without {
		plan.Reasons = append(plan.Reasons, Reason{Name: cluster, Limit: LimitUnmet, By: 1})
	}
	plan.sort()
	return plan, shards, nil
}

// disruptions returns how many replicas of all clusters may be unavailable, and the clusters, sorted by name.
func disruptions(budget *unstructured.Unstructured, at situation, have []Shard) (total int64, all []disruptable) {
	clusters := map[string]*disruptable{}
	of := func(cluster string) *disruptable {
		if clusters[cluster] == nil {
			clusters[cluster] = &disruptable{cluster: cluster}
		}
		return clusters[cluster]
	}
	var desired, unplaced, surplus int64
	for _, w := range at.workloads {
		var placed int64
		for _, p := range w.parts {
			c := of(p.cluster)
			c.pods += p.desired
			c.missing += max(0, p.desired-p.available)
			placed += p.desired
		}
		if w.duplicate {
			desired += placed
			continue
		}
		desired += w.desired
		unplaced += max(0, w.desired-placed)
		surplus += max(0, placed-w.desired)
	}
	for _, s := range have {
		c := of(s.Cluster)
		if !s.exists() || c.pods == 0 {
			continue
		}
		c.present, c.allowed = true, max(0, numberOr(s.Object, math.MaxInt32, "spec", "maxUnavailable"))
		c.settled = numberOr(s.Object, 0, "status", "observedGeneration") >= s.Object.GetGeneration()
		c.missing = max(c.missing, min(c.pods, numberOr(s.Object, 0, "status", "expectedPods")-numberOr(s.Object, 0, "status", "currentHealthy")))
	}
	for _, c := range at.clusters {
		if d := clusters[c.Name]; d != nil {
			d.needs = c.CordonedNodes == nil || *c.CordonedNodes > 0
		}
	}
	for _, cluster := range slices.Sorted(maps.Keys(clusters)) {
		all = append(all, *clusters[cluster])
	}
	offset(all, surplus)
	return allowed(budget, desired) - unplaced, all
}

// offset takes replicas above the desired number from the missing ones: while a replica moves, two stand for it.
func offset(all []disruptable, surplus int64) {
	for i := range all {
		n := min(surplus, all[i].missing)
		all[i].missing -= n
		surplus -= n
	}
}

// allowed returns how many of the desired replicas a budget allows to be unavailable. As API servers do, it rounds
// percentages up, and allows nothing without a limit or with one that cannot be read.
func allowed(budget *unstructured.Unstructured, desired int64) int64 {
	limit := func(field string) (int64, bool) {
		v, ok, err := unstructured.NestedFieldNoCopy(budget.Object, "spec", field)
		if !ok || err != nil {
			return 0, false
		}
		return resolve(v, desired, true)
	}
	if n, ok := limit("maxUnavailable"); ok {
		return min(n, desired)
	}
	if n, ok := limit("minAvailable"); ok {
		return max(0, desired-n)
	}
	return 0
}

func (disruptionBudgets) Fold(budget *unstructured.Unstructured, shards []Shard) (map[string]any, error) {
	status := map[string]any{}
	observe(status, budget, shards)
	if err := add(status, counters([]string{"disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"}), budget, shards); err != nil {
		return nil, err
	}
	var none []string
	for _, s := range shards {
		if numberOr(s.Object, 0, "spec", "maxUnavailable") == 0 {
			none = append(none, s.Cluster)
		}
	}
	message := "each cluster has a part of the budget"
	if none != nil {
		message = fmt.Sprintf("%d of %d clusters have no part of the budget now: %s", len(none), len(shards), loop.Brief(none, ", "))
	}
	n, _ := status["disruptionsAllowed"].(int64)
	status["conditions"] = []any{condition("DisruptionAllowed", n > 0, "SufficientPods", "InsufficientPods", message)}
	return status, nil
}
