// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/loop"
)

// Follower divides one type of objects that belong to workloads, such as disruption budgets: their shards are in the
// clusters that have shards of these workloads. DisruptionBudgets returns one.
type Follower interface {
	// Resource is the type of parents and shards.
	Resource() schema.GroupVersionResource
	// Fold returns the parent's status, computed from that of its shards. See Kind.
	Fold(parent *unstructured.Unstructured, shards []Shard) (status map[string]any, err error)
	// follows reports whether parent belongs to a workload.
	follows(parent, workload *unstructured.Unstructured) bool
	// cut returns the plan of a parent and its desired shards. It is pure.
	cut(parent *unstructured.Unstructured, at situation, have []Shard) (Plan, []Shard, error)
}

// situation is the state by which a parent is divided.
type situation struct {
	clusters  []Cluster
	scaling   *scalingPlan  // of a workload whose replicas an autoscaler sets; nil without one, and for a Follower
	workloads []followed    // to which the parent of a Follower belongs
	err       error         // why the parent is not divided: ErrUndecided while workloads or autoscalers are not known
	idle      bool          // all workloads are known and the parent belongs to none, so it gets no shards
	turn      int64         // the number of the present turn
	next      time.Duration // until the next turn; zero for a Kind

	limits map[string]limit // of the room in the clusters; nil for a Follower
}

// followed is a workload to which a parent of a Follower belongs.
type followed struct {
	name      string
	desired   int64 // replicas
	duplicate bool  // each cluster has all replicas
	placed    bool  // the Placement has decided
	demand    Demand
	shares    []Share
	parts     []part
	ending    map[string]int64 // replicas of shards that are being deleted, by cluster, without those of lost clusters
}

// part is the part of a workload in one cluster.
type part struct {
	cluster            string
	desired, available int64 // replicas
	runs               int64 // replicas that are desired, or that may still run
	floor              int64 // the least number of replicas that the autoscaler may choose while replicas move
}

// counting is a Kind whose workloads have replicas.
type counting interface {
	// count returns the desired and the available replicas of a parent or shard.
	count(obj *unstructured.Unstructured) (desired, available int64)
}

// turnOf returns the number of a turn, and the time until the next one.
func turnOf(now time.Time, length time.Duration) (turn int64, next time.Duration) {
	nanoseconds := now.UnixNano()
	return nanoseconds / int64(length), length - time.Duration(nanoseconds%int64(length))
}

// situation returns the state by which a parent of k is divided now.
func (s *Splitter) situation(k *kindState, parent *unstructured.Unstructured, list []Cluster) situation {
	at := situation{clusters: list}
	follower, ok := k.kind.(Follower)
	if !ok {
		at.scaling, at.err = s.scalingOf(k, parent, list)
		return at
	}
	workloads, known := s.workloads(k, follower, parent, list)
	at.workloads, at.idle = workloads, known && len(workloads) == 0
	if !known {
		at.err = fmt.Errorf("the workloads of %s: %w", parent.GetName(), ErrUndecided)
	}
	at.turn, at.next = turnOf(time.Now(), s.opts.Turn)
	return at
}

// workloads returns the workloads to which a parent belongs. It returns false if they are not all known.
func (s *Splitter) workloads(k *kindState, follower Follower, parent *unstructured.Unstructured, list []Cluster) (all []followed, known bool) {
	for _, other := range s.kinds {
		if _, ok := other.kind.(counting); !ok {
			continue
		}
		if other.objects.Err() != nil {
			return nil, false
		}
		for _, key := range other.namespaces.in(parent.GetNamespace()) {
			workload, ok := other.objects.Get(key)
			if !ok || !s.divisible(workload) || !follower.follows(parent, workload) || !s.leads(k, parent, workload) {
				continue
			}
			all = append(all, s.followed(other, workload, list))
		}
	}
	return all, true
}

// followed returns a workload of a Kind that counts replicas, as its Followers need it.
func (s *Splitter) followed(k *kindState, workload *unstructured.Unstructured, list []Cluster) followed {
	kind, _ := k.kind.(counting)
	f := followed{name: workload.GetName(), ending: map[string]int64{}}
	f.desired, _ = kind.count(workload)
	d, shares, err := s.opts.Place(workload, list)
	d.UID = workload.GetUID()
	f.placed, f.demand, f.shares, f.duplicate = err == nil, d, shares, err == nil && d.Mode == Duplicate
	var have []Shard
	for _, at := range k.shards.Of(loop.KeyOf(workload)) {
		shard, ok := k.objects.Get(at)
		if !ok || !cutFrom(shard, workload) {
			continue
		}
		have = append(have, Shard{Cluster: clusterOf(shard), Object: shard})
		p := part{cluster: clusterOf(shard), floor: floorOf(shard)}
		p.desired, p.available = kind.count(shard)
		p.runs = max(p.desired, lastReplicas(k.kind, Shard{Object: shard}))
		if shard.GetDeletionTimestamp() == nil {
			f.parts = append(f.parts, p)
		} else if slices.ContainsFunc(list, func(c Cluster) bool { return c.Name == p.cluster }) {
			f.ending[p.cluster] = p.runs
		}
	}
	if numbered, ok := k.kind.(numbering); ok {
		f.shares = numbered.bound(workload, f.shares, have) // the bounds of an autoscaler are divided by these shares
	}
	return f
}

// requeueFollowers requeues the parents that belong to a workload, or all parents of its namespace if it is gone.
func (k *kindState) requeueFollowers(workload types.NamespacedName) {
	obj, there := k.objects.Get(workload)
	for _, f := range k.followers {
		follower, _ := f.kind.(Follower)
		for _, key := range f.namespaces.in(workload.Namespace) {
			if parent, ok := f.objects.Get(key); ok && (!there || follower.follows(parent, obj)) {
				f.add(key)
			}
		}
	}
}
