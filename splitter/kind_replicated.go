// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Paths holds the paths of the fields that a Splitter needs of a type of workload. A path is the
// field names joined by dots.
type Paths struct {
	// Replicas is the path of the desired number of replicas; empty: "spec.replicas". An object
	// without this field has one replica.
	Replicas string
	// Available is the path of the number of available replicas; empty: "status.availableReplicas".
	// It must begin with "status.".
	Available string
	// Counters are the paths of the other numbers in the status to sum up; nil: "status.replicas"
	// and "status.readyReplicas". They must begin with "status.".
	Counters []string
}

// ByPaths returns the Kind of any resource that has replicas and a status with counters. Its shards
// differ from the parent only in the number of replicas. A replica moves only when its replacement is
// available. ByPaths fails if gvr has no resource or no version. It also fails if a path is not a
// path to a field: Replicas must be outside the metadata and the status, and the other paths must be
// inside the status.
func ByPaths(gvr schema.GroupVersionResource, p Paths) (Kind, error) {
	if p.Replicas == "" {
		p.Replicas = "spec.replicas"
	}
	if p.Available == "" {
		p.Available = "status.availableReplicas"
	}
	if p.Counters == nil {
		p.Counters = []string{"status.replicas", "status.readyReplicas"}
	}
	if gvr.Resource == "" || gvr.Version == "" {
		return nil, fmt.Errorf("splitter: resource %q of version %q: both must be set", gvr.Resource, gvr.Version)
	}
	k := replicated{gvr: gvr, replicas: strings.Split(p.Replicas, ".")}
	if slices.Contains(k.replicas, "") || k.replicas[0] == "status" || k.replicas[0] == "metadata" || len(k.replicas) < 2 {
		return nil, fmt.Errorf("splitter: Paths.Replicas is %q, not a field such as spec.replicas", p.Replicas)
	}
	for _, c := range append([]string{p.Available}, p.Counters...) {
		path := strings.Split(c, ".")
		if path[0] != "status" || len(path) < 2 || slices.Contains(path, "") {
			return nil, fmt.Errorf("splitter: Paths have the counter %q, not a field such as status.readyReplicas", c)
		}
		if !slices.ContainsFunc(k.counters, func(c counter) bool { return slices.Equal(c.path, path) }) {
			k.counters = append(k.counters, counter{path: path})
		}
	}
	k.available = k.counters[0].path
	return k, nil
}

// replicated is the common part of all kinds whose replicas are divided.
type replicated struct {
	gvr       schema.GroupVersionResource
	replicas  []string
	available []string
	counters  []counter
	// brokenFirst is true if the type's controller removes unready replicas first when it scales
	// down.
	brokenFirst bool
}

func (k replicated) Resource() schema.GroupVersionResource { return k.gvr }

func (k replicated) Cut(parent *unstructured.Unstructured, d Demand, shares []Share, have []Shard) (Plan, []Shard, error) {
	plan, want, err := k.divide(parent, d, shares, have)
	if err != nil {
		return Plan{}, nil, err
	}
	shards, err := k.paced(parent, d.Mode, plan, want, have)
	if err != nil {
		return Plan{}, nil, err
	}
	return plan, shards, nil
}

// divide returns the plan of a parent, and the replicas of each cluster according to it.
func (k replicated) divide(parent *unstructured.Unstructured, d Demand, shares []Share, have []Shard) (Plan, map[string]int64, error) {
	d.Replicas = numberOr(parent, 1, k.replicas...)
	present := map[string]int64{}
	for _, s := range have {
		if s.exists() {
			present[s.Cluster] = max(0, numberOr(s.Object, 1, k.replicas...)) // the schema of a custom type may allow negative numbers
		}
	}
	shares = withPresent(shares, present)
	settled, err := k.settled(d, shares, present, have)
	if err != nil {
		return Plan{}, nil, err
	}
	if !settled {
		d.Moves = 0 // only one move at a time
	}
	plan, err := Divide(d, shares)
	if err != nil {
		return Plan{}, nil, err
	}
	want := map[string]int64{}
	for _, a := range plan.Shards {
		want[a.Cluster] = a.Replicas
	}
	return plan, want, nil
}

// paced returns the shards for the wanted replicas. A replica leaves its cluster only when its
// replacement is available.
func (k replicated) paced(parent *unstructured.Unstructured, mode Mode, plan Plan, want map[string]int64, have []Shard) (shards []Shard, err error) {
	replicas := numberOr(parent, 1, k.replicas...)
	if (mode != Duplicate || len(plan.Shards) > 0) && !alone(want, have, replicas) {
		k.pace(want, have, replicas)
	}
	for _, cluster := range sorted(want) {
		if want[cluster] == 0 {
			continue
		}
		s, err := k.shard(parent, cluster, want[cluster])
		if err != nil {
			return nil, err
		}
		shards = append(shards, s)
	}
	return shards, nil
}

// shard returns the shard of a parent for a cluster, with the given replicas.
func (k replicated) shard(parent *unstructured.Unstructured, cluster string, replicas int64) (Shard, error) {
	s := newShard(parent, cluster)
	if err := unstructured.SetNestedField(s.Object.Object, replicas, k.replicas...); err != nil {
		return Shard{}, fmt.Errorf("%s: %w", strings.Join(k.replicas, "."), err)
	}
	return s, nil
}

func (k replicated) count(obj *unstructured.Unstructured) (desired, available int64) {
	return count(obj, 1, k.replicas...), count(obj, 0, k.available...)
}

// settled reports whether earlier moves are done: no shard is being deleted or in an unreachable
// cluster, the shards add up to the desired replicas, and all replicas that stay in their cluster
// are available. Unavailable replicas above a cluster's share delay no move, since they may never
// become available. Unavailable replicas that stay do delay moves: replicas that move to their
// cluster may not become available either.
func (k replicated) settled(d Demand, shares []Share, present map[string]int64, have []Shard) (bool, error) {
	d.Moves = AnyMoves
	end, err := Divide(d, shares)
	if err != nil {
		return false, err
	}
	var total int64
	for _, s := range have {
		stays := min(present[s.Cluster], end.Replicas(s.Cluster))
		if s.Silent || !s.exists() || numberOr(s.Object, 0, k.available...) < stays {
			return false, nil
		}
		total += present[s.Cluster]
	}
	return total == d.Replicas, nil
}

// alone reports whether one cluster has all replicas and keeps them. Then no replica moves, and a
// scale-down does not wait: the cluster's controller handles it as for any workload, and an
// unavailable replica may be the reason for the scale-down.
func alone(want map[string]int64, have []Shard, replicas int64) bool {
	return len(have) == 1 && want[have[0].Cluster] == replicas
}

// remainingAvailable returns how many available replicas of a shard certainly remain once its cluster has
// removed the replicas above the shard's desired number.
func (k replicated) remainingAvailable(shard *unstructured.Unstructured) int64 {
	there, works := numberOr(shard, 1, k.replicas...), numberOr(shard, 0, k.available...)
	if !k.brokenFirst {
		works -= max(0, numberOr(shard, 0, "status", "replicas")-there) // the cluster may remove available replicas
	}
	return max(0, min(works, there))
}

// pace raises want for the clusters that lose replicas, so that the available replicas do not fall
// below the number least: a replica leaves only when its replacement is available. Replicas in
// unreachable clusters count as unavailable and may leave. Shards under deletion count as gone.
func (k replicated) pace(want map[string]int64, have []Shard, least int64) {
	var available int64
	for _, s := range have {
		if !s.Silent && s.exists() {
			available += k.remainingAvailable(s.Object)
		}
	}
	spare := max(0, available-least)
	for _, s := range slices.SortedFunc(slices.Values(have), func(a, b Shard) int { return strings.Compare(a.Cluster, b.Cluster) }) {
		if s.Silent || !s.exists() {
			continue
		}
		there := numberOr(s.Object, 1, k.replicas...)
		works := k.remainingAvailable(s.Object)
		if status, _, _ := unstructured.NestedMap(s.Object.Object, "status"); len(status) == 0 {
			works = there // no status is reported yet: assume that all replicas are available
		}
		broken := int64(0) // without brokenFirst, the cluster may remove an available replica
		if k.brokenFirst {
			// A replica that is ready, but not yet available because of minReadySeconds, is not
			// among those removed first.
			broken = there - max(works, min(there, numberOr(s.Object, 0, "status", "readyReplicas")))
		}
		lost := min(works, max(0, there-broken-want[s.Cluster]))
		gone := min(lost, spare)
		spare -= gone
		if lost > gone {
			want[s.Cluster] = there - broken - gone
		}
	}
}

func (k replicated) Fold(parent *unstructured.Unstructured, shards []Shard) (map[string]any, error) {
	status := map[string]any{}
	observe(status, parent, shards)
	return status, add(status, k.counters, parent, shards)
}

func sorted(m map[string]int64) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// StatefulSets returns the Kind of apps/v1 StatefulSets. The ordinals of each shard's pods begin at
// zero. The pod names are still unique, because they begin with the shard's name. The condition
// Available reports whether all replicas are available, and which clusters lack some.
func StatefulSets() Kind {
	return statefulSets{replicated{
		gvr:       schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"},
		replicas:  []string{"spec", "replicas"},
		available: []string{"status", "availableReplicas"},
		counters:  counters([]string{"replicas", "availableReplicas"}, "readyReplicas", "currentReplicas", "updatedReplicas"),
	}}
}

type statefulSets struct{ replicated }

// Conditions permits Placed and Duplicated.
func (statefulSets) Conditions() Conditions { return Conditions{Placed: true, Duplicated: true} }

func (k statefulSets) Fold(parent *unstructured.Unstructured, shards []Shard) (map[string]any, error) {
	status, err := k.replicated.Fold(parent, shards)
	if err != nil {
		return nil, err
	}
	wanted := numberOr(parent, 1, k.replicas...)
	works, _ := status["availableReplicas"].(int64)
	status["conditions"] = append([]any{condition("Available", works >= wanted, "AllReplicasAvailable", "ReplicasUnavailable",
		fmt.Sprintf("%d of %d replicas are available%s", works, wanted, k.behind(shards)))}, unscheduled(shards)...)
	return status, nil
}
