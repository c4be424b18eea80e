// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/splitter/v1alpha1"
	"github.com/atoll-dev/atoll/splitter/workload"
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
// inside the status. Declared does the same, with more of a type's fields.
func ByPaths(gvr schema.GroupVersionResource, p Paths) (Kind, error) {
	if p.Counters == nil {
		p.Counters = []string{"status.replicas", "status.readyReplicas"}
	}
	spec := v1alpha1.WorkloadTypeSpec{
		// Only placement and syncers read the kind.
		Resource: v1alpha1.WorkloadResource{Group: gvr.Group, Version: gvr.Version, Resource: gvr.Resource, Kind: cmp.Or(gvr.Resource, "-")},
		Replicas: v1alpha1.FieldPath(p.Replicas),
		Status: v1alpha1.WorkloadStatusPaths{
			Replicas: "status.replicas", Ready: "status.readyReplicas", Available: v1alpha1.FieldPath(cmp.Or(p.Available, "status.availableReplicas")),
			ObservedGeneration: &v1alpha1.ObservedGenerationPath{Path: "status.observedGeneration"},
		},
	}
	for _, path := range append([]string{string(spec.Status.Available)}, p.Counters...) {
		sum := v1alpha1.FoldedField{Path: v1alpha1.FieldPath(path), Fold: v1alpha1.FoldSum}
		if !slices.ContainsFunc(spec.Status.Fields, func(f v1alpha1.FoldedField) bool { return f.Path == sum.Path }) {
			spec.Status.Fields = append(spec.Status.Fields, sum)
		}
	}
	t, err := workload.Compile(spec)
	if err != nil {
		return nil, fmt.Errorf("splitter: Paths of %s: %w", gvr, err)
	}
	return newReplicated(t), nil
}

// replicated is the common part of all kinds whose replicas are divided.
type replicated struct {
	declaration

	replicas []string
	// brokenFirst is true if the type's controller removes unready replicas first when it scales
	// down.
	brokenFirst bool
}

func newReplicated(t *workload.Type) replicated {
	return replicated{declaration: declaration{t}, replicas: t.Replicas(), brokenFirst: t.UnreadyFirst()}
}

// available returns the number of available replicas of a shard, as it last reported.
func (k replicated) available(shard *unstructured.Unstructured) int64 {
	if path := k.t.Available(); path != nil {
		return numberOr(shard, 0, path...)
	}
	if healthy, _ := k.t.Healthy(shard); healthy {
		return numberOr(shard, 1, k.replicas...)
	}
	return 0
}

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
	s := k.newShard(parent, cluster)
	if err := unstructured.SetNestedField(s.Object.Object, replicas, k.replicas...); err != nil {
		return Shard{}, fmt.Errorf("%s: %w", strings.Join(k.replicas, "."), err)
	}
	return s, nil
}

func (k replicated) count(obj *unstructured.Unstructured) (desired, available int64) {
	return count(obj, 1, k.replicas...), max(0, k.available(obj))
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
		if s.Silent || !s.exists() || k.available(s.Object) < stays {
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
	there, works := numberOr(shard, 1, k.replicas...), k.available(shard)
	if !k.brokenFirst {
		works -= max(0, numberOr(shard, 0, k.t.Pods()...)-there) // the cluster may remove available replicas
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
			broken = there - max(works, min(there, numberOr(s.Object, 0, k.t.Ready()...)))
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
	status, err := k.fold(parent, shards)
	if err != nil || !k.t.Adds(v1alpha1.AddAvailable) {
		return status, err
	}
	wanted, works := numberOr(parent, 1, k.replicas...), int64(0)
	for _, s := range shards {
		works = plus(works, max(0, k.available(s.Object)))
	}
	return withCondition(status, condition("Available", works >= wanted, "AllReplicasAvailable", "ReplicasUnavailable",
		fmt.Sprintf("%d of %d replicas are available%s", works, wanted, k.behind(shards)))), nil
}

func sorted(m map[string]int64) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// ReplicaSets returns the Kind of apps/v1 ReplicaSets. Those of a Deployment should not be on the
// parents' API server: see the limits of the package. The conditions are those of StatefulSets, and
// ReplicaFailure while one cluster reports it.
func ReplicaSets() Kind { return newReplicated(workload.BuiltinType("replicasets")) }

// ReplicationControllers returns the Kind of v1 ReplicationControllers, with the conditions of
// ReplicaSets.
func ReplicationControllers() Kind {
	return newReplicated(workload.BuiltinType("replicationcontrollers"))
}
