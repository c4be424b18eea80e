// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
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

// situation is the state by which a parent is divided. A Kind needs only the clusters.
type situation struct {
	clusters  []Cluster
	workloads []followed    // to which the parent of a Follower belongs
	unread    bool          // the workloads are not all known
	idle      bool          // all workloads are known and the parent belongs to none, so it gets no shards
	turn      int64         // the number of the present turn
	next      time.Duration // until the next turn; zero for a Kind
}

// followed is a workload to which a parent of a Follower belongs.
type followed struct {
	desired   int64 // replicas
	duplicate bool  // each cluster has all replicas
	parts     []part
}

// part is the part of a workload in one cluster.
type part struct {
	cluster            string
	desired, available int64 // replicas
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
	if follower, ok := k.kind.(Follower); ok {
		workloads, known := s.workloads(follower, parent, list)
		at.workloads, at.unread, at.idle = workloads, !known, known && len(workloads) == 0
		at.turn, at.next = turnOf(time.Now(), s.opts.Turn)
	}
	return at
}

// workloads returns the workloads to which a parent belongs. It returns false if they are not all known.
func (s *Splitter) workloads(follower Follower, parent *unstructured.Unstructured, list []Cluster) (all []followed, known bool) {
	for _, other := range s.kinds {
		kind, ok := other.kind.(counting)
		if !ok {
			continue
		}
		if other.objects.Err() != nil {
			return nil, false
		}
		for _, key := range other.namespaces.in(parent.GetNamespace()) {
			workload, ok := other.objects.Get(key)
			if !ok || !s.divisible(workload) || !follower.follows(parent, workload) {
				continue
			}
			f := followed{duplicate: s.duplicates(workload, list)}
			f.desired, _ = kind.count(workload)
			for _, at := range other.shards.of(key) {
				if shard, ok := other.objects.Get(at); ok && cutFrom(shard, workload) && shard.GetDeletionTimestamp() == nil {
					p := part{cluster: clusterOf(shard)}
					p.desired, p.available = kind.count(shard)
					f.parts = append(f.parts, p)
				}
			}
			all = append(all, f)
		}
	}
	return all, true
}

// duplicates reports whether each cluster gets all replicas of a workload.
func (s *Splitter) duplicates(workload *unstructured.Unstructured, list []Cluster) bool {
	d, _, err := s.opts.Place(workload, list)
	return err == nil && d.Mode == Duplicate
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
