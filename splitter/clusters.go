// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/argument"
	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/splitter/workload"
	syncerv1alpha1 "github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// Cluster is the observed state of a cluster.
type Cluster struct {
	Name   string
	Labels map[string]string
	// Ready is Unknown while the cluster is unreachable.
	Ready metav1.ConditionStatus
	// Unschedulable keeps new replicas out of the cluster; present ones stay.
	Unschedulable bool
	// EvictAfter is the time from which the present replicas move to other clusters. The zero time
	// means never.
	EvictAfter time.Time
	// Taints keep away objects whose placement policy does not tolerate them: see package placement.
	// If a taint has no TimeAdded, States and the Splitter set it to the time at which they first
	// observed the taint.
	Taints []syncerv1alpha1.Taint
	// Pods is the total number of pods that the cluster can hold, including those that run there
	// now. Nil means unknown.
	Pods *int64
	// Capacity is the total room of the cluster, such as cpu and memory, including the room that is used now. A
	// Splitter places new replicas only where their requests fit, together with those of all its other parents. An
	// absent resource is unknown and limits nothing. The number of pods in Capacity counts only if Pods is nil.
	Capacity corev1.ResourceList
	// CordonedNodes is how many nodes of the cluster are cordoned, as for a drain. Nil means unknown.
	CordonedNodes *int64
	// State is set by the Splitter before it calls its Placement, and by the function States.
	// Implementations of Clusters leave it empty.
	State State
}

// State is the way in which replicas may be placed in a cluster.
type State string

const (
	// Placeable: the cluster may have replicas.
	Placeable State = "Placeable"
	// Holding: the cluster keeps its replicas and gets no new ones. It is unschedulable, or it is
	// unreachable and has not lost its replicas yet.
	Holding State = "Holding"
	// Draining: the replicas move to other clusters.
	Draining State = "Draining"
)

// Clusters lists the clusters. Implementations: SyncTargets, StaticClusters.
type Clusters interface {
	// Watch yields the complete list, first at once and then after each change, until ctx ends. An
	// unreachable cluster is in the list with Ready Unknown; only a removed cluster is missing. The
	// Splitter calls Watch once.
	Watch(ctx context.Context) iter.Seq[[]Cluster]
}

// StaticClusters returns clusters that always exist and are always ready.
func StaticClusters(names ...string) Clusters { return staticClusters(names) }

type staticClusters []string

func (s staticClusters) Watch(ctx context.Context) iter.Seq[[]Cluster] {
	return func(yield func([]Cluster) bool) {
		var list []Cluster
		for _, name := range s {
			list = append(list, Cluster{Name: name, Ready: metav1.ConditionTrue})
		}
		if yield(list) {
			<-ctx.Done()
		}
	}
}

// SyncTargets returns the clusters that the SyncTargets in one API server describe. A cluster whose
// heartbeat has not changed for a minute, by this process's clock, has Ready Unknown. Cluster.Pods
// is spec.pods of the SyncTarget or, if that is not set, the pods in status.capacity.
// Cluster.Capacity has all other resources, from spec.capacity or else from status.capacity. If
// spec.pods is above the pods in status.capacity, nodes will be added: then Cluster.Capacity has only
// the resources in spec.capacity. Cluster.CordonedNodes is status.cordonedNodes.
func SyncTargets(up region.API) Clusters {
	if argument.Missing(up) {
		return nil // refused by New
	}
	return &syncTargets{up: up}
}

type syncTargets struct {
	up    region.API
	mu    sync.Mutex
	beats map[types.UID]beat
}

// beat is a heartbeat of a cluster, with the time at which this process first observed it.
type beat struct {
	said string
	seen time.Time
}

const (
	heartbeatTimeout = time.Minute
	heartbeatCheck   = 10 * time.Second
)

func (t *syncTargets) Watch(ctx context.Context) iter.Seq[[]Cluster] {
	return func(yield func([]Cluster) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var wg sync.WaitGroup
		defer wg.Wait()
		defer cancel()
		changed := make(chan struct{}, 1)
		tell := func() {
			select {
			case changed <- struct{}{}:
			default:
			}
		}
		targets := loop.NewObjects(t.up.Dynamic(), syncerv1alpha1.GroupVersion.WithResource("synctargets"), loop.ObjectsOptions{
			Strip: loop.KeepManager(), Changed: func(types.NamespacedName) { tell() }, Flows: tell,
		})
		wg.Go(func() { _ = targets.Start(ctx) }) // retries errors until ctx ends
		select {
		case <-targets.Synced():
		case <-ctx.Done():
			return
		}
		check := time.NewTicker(heartbeatCheck)
		defer check.Stop()
		var before []Cluster
		for first := true; ctx.Err() == nil; first = false {
			list := t.clusters(targets.List(), time.Now())
			if first || !slices.EqualFunc(before, list, same) {
				before = list
				if !yield(slices.Clone(list)) {
					return
				}
			}
			select {
			case <-changed:
			case <-check.C:
			case <-ctx.Done():
			}
		}
	}
}

// clusters converts SyncTargets to Clusters. It keeps the last heartbeat of each in t.beats.
func (t *syncTargets) clusters(targets []*unstructured.Unstructured, now time.Time) []Cluster {
	t.mu.Lock()
	defer t.mu.Unlock()
	beats := map[types.UID]beat{}
	var list []Cluster
	for _, obj := range targets {
		if obj.GetDeletionTimestamp() != nil {
			// The finalizer keeps a deleted SyncTarget until the cluster's objects are gone: drain
			// the cluster.
			list = append(list, Cluster{Name: obj.GetName(), Labels: obj.GetLabels(), Ready: ready(obj), EvictAfter: obj.GetDeletionTimestamp().Time})
			continue
		}
		c := Cluster{Name: obj.GetName(), Labels: obj.GetLabels(), Ready: ready(obj)}
		c.Unschedulable, _, _ = unstructured.NestedBool(obj.Object, "spec", "unschedulable")
		if at, _, _ := unstructured.NestedString(obj.Object, "spec", "evictAfter"); at != "" {
			c.EvictAfter, _ = time.Parse(time.RFC3339, at)
		}
		c.Taints = taints(obj)
		c.Pods, c.Capacity = pods(obj), capacity(obj)
		if n, ok := number(obj, "status", "cordonedNodes"); ok {
			c.CordonedNodes = &n
		}
		b := t.beats[obj.GetUID()]
		if said := text(obj, "lastSyncerHeartbeatTime"); said != b.said || b.seen.IsZero() {
			b = beat{said, now}
		}
		beats[obj.GetUID()] = b
		if b.said != "" && now.Sub(b.seen) >= heartbeatTimeout {
			c.Ready = metav1.ConditionUnknown
		}
		list = append(list, c)
	}
	t.beats = beats
	return list
}

func ready(obj *unstructured.Unstructured) metav1.ConditionStatus {
	status, ok := workload.Condition(obj, string(syncerv1alpha1.SyncTargetConditionReady))["status"].(string)
	if !ok {
		return metav1.ConditionUnknown
	}
	return metav1.ConditionStatus(status)
}

// pods returns how many pods a cluster can hold: spec.pods of its SyncTarget or, without that
// field, the pods in status.capacity. Nil means unknown.
func pods(obj *unstructured.Unstructured) *int64 {
	if n, ok := number(obj, "spec", "pods"); ok && n >= 0 {
		return &n
	}
	if q, ok := resourceList(obj, "status", "capacity")[corev1.ResourcePods]; ok {
		return new(q.Value())
	}
	return nil
}

func same(a, b Cluster) bool {
	return a.Name == b.Name && a.Ready == b.Ready && a.Unschedulable == b.Unschedulable && a.EvictAfter.Equal(b.EvictAfter) &&
		a.State == b.State && maps.Equal(a.Labels, b.Labels) && slices.EqualFunc(a.Taints, b.Taints, sameTaint) && sameNumber(a.Pods, b.Pods) &&
		sameCapacity(a.Capacity, b.Capacity) && sameNumber(a.CordonedNodes, b.CordonedNodes)
}

func sameNumber(a, b *int64) bool { return a == b || a != nil && b != nil && *a == *b }
