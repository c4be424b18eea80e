// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	"github.com/atoll-dev/atoll/internal/argument"
	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
	syncerv1alpha1 "github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// Manager is the field manager of the Splitter's writes.
const Manager = v1alpha1.Manager

// Splitter divides parents over clusters and computes their status from that of their shards. It works on
// one API server and communicates with syncers only through the objects there. Run one per API server, or
// several with different kinds. Safe for concurrent use.
type Splitter struct {
	up        region.API
	clusters  Clusters
	opts      Options
	kinds     []*kindState
	queue     *loop.Queue
	readiness *readiness
	room      *room
}

// Options adjust a Splitter. The zero value works.
type Options struct {
	// Kinds are the types to divide; nil: Deployments.
	Kinds []Kind
	// Followers are the types whose objects follow the workloads of Kinds; nil: none.
	Followers []Follower
	// Turn is how long clusters have their part of something that is not enough for all, such as a disruption
	// budget of one, before the next clusters get it; zero or less: 1 minute. In a turn, pods leave a node and their
	// replacements become available.
	Turn time.Duration
	// Place selects the clusters of a parent; nil: Everywhere. Package placement has a Placement that
	// follows PlacementPolicies.
	Place Placement
	// Label is the label by which a syncer finds the shards of its cluster; empty: ClusterLabel of
	// syncer/v1alpha1.
	Label string
	// Grace is how long a cluster may be unreachable before its replicas are placed elsewhere;
	// zero: 5 minutes.
	Grace time.Duration
	// Rejoin is how long a cluster that has lost its replicas must be ready before it gets new ones; zero: 1
	// minute.
	Rejoin time.Duration
	// EvictionInterval is the least time between the losses of two clusters while many clusters are unready: see
	// Periods; zero: 5 minutes.
	EvictionInterval time.Duration
	// UnhealthyPercent is the percentage of unready clusters above which they count as many: see Periods; zero: 55.
	UnhealthyPercent int
	// Finalize creates shards with the finalizer of their cluster's syncer, which saves the syncer one write
	// per shard. Use it if each cluster has a syncer, or will have one: without a syncer, the deletion of a
	// shard waits until Clusters no longer lists the cluster.
	Finalize bool
	// Workers is how many parents are reconciled concurrently; zero: 8.
	Workers int
	// Observer receives events; nil: none.
	Observer *Observer

	// Logger receives log lines. Zero: the logger of Start's context, else slog.Default. To log nothing, use
	// logr.FromSlogHandler(slog.DiscardHandler).
	Logger logr.Logger
}

// Observer has functions that a Splitter calls on events. Any of them may be nil. They must not
// block and must be safe for concurrent use.
type Observer struct {
	// Divided is called after the Splitter wrote or removed shards of a parent, and after an error other
	// than a Conflict while it divided a parent.
	Divided func(context.Context, DividedEvent)
	// Reported is called after the Splitter has changed the status or the reason of a parent's condition.
	Reported func(context.Context, ReportedEvent)
	// Cluster is called once each time the weight label of a cluster gets a value that cannot be read. The
	// weight then counts as absent.
	Cluster func(context.Context, ClusterEvent)
}

// DividedEvent is the outcome of one division of a parent.
type DividedEvent struct {
	APIVersion, Kind string
	Parent           types.NamespacedName
	UID              types.UID // of the parent
	Plan             Plan
	// Written and Removed are the names of the shards that were written and deleted.
	Written, Removed []string
	Err              error
}

// ReportedEvent is a change of a condition of a parent.
type ReportedEvent struct {
	APIVersion, Kind string
	Parent           types.NamespacedName
	UID              types.UID // of the parent
	// Condition is the type of the condition, such as ConditionPlaced or Progressing.
	Condition string
	// Before is the status of the condition before the change; empty if the parent did not have the condition.
	Before, Status  string
	Reason, Message string
}

// ClusterEvent is a fault in the settings of a cluster.
type ClusterEvent struct {
	Cluster string
	// Err names the cluster, the label and the value that cannot be read.
	Err error
}

func (o *Observer) divided(ctx context.Context, e DividedEvent) {
	if o != nil && o.Divided != nil && (e.Err != nil || len(e.Written)+len(e.Removed) > 0) {
		o.Divided(ctx, e)
	}
}

func (o *Observer) reported(ctx context.Context, e ReportedEvent) {
	if o != nil && o.Reported != nil {
		o.Reported(ctx, e)
	}
}

func (o *Observer) cluster(ctx context.Context, e ClusterEvent) {
	logging.From(ctx).Info("A weight counts as absent", "reason", e.Err.Error())
	if o != nil && o.Cluster != nil {
		o.Cluster(ctx, e)
	}
}

// New returns a Splitter for the parents in one API server. It does no I/O; see Start. It fails
// if two kinds have the same resource.
func New(up region.API, clusters Clusters, opts Options) (*Splitter, error) {
	switch {
	case argument.Missing(up):
		return nil, errors.New("splitter: up is nil: pass what region.APIFor returns, or a region.Conn")
	case argument.Missing(clusters):
		return nil, errors.New("splitter: clusters is nil: pass SyncTargets of an API server, or StaticClusters")
	}
	if opts.Kinds == nil {
		opts.Kinds = []Kind{Deployments()}
	}
	if opts.Place == nil {
		opts.Place = Everywhere
	}
	if opts.Label == "" {
		opts.Label = syncerv1alpha1.ClusterLabel
	}
	if opts.Turn <= 0 {
		opts.Turn = time.Minute
	}
	periods := Periods{Grace: opts.Grace, Rejoin: opts.Rejoin, EvictionInterval: opts.EvictionInterval, UnhealthyPercent: opts.UnhealthyPercent}
	s := &Splitter{
		up: up, clusters: clusters, opts: opts, queue: loop.NewQueue(loop.QueueOptions{Workers: opts.Workers}), room: &room{},
		readiness: newReadiness(periods),
	}
	var kinds []divider
	for i, k := range opts.Kinds {
		if argument.Missing(k) {
			return nil, fmt.Errorf("splitter: Options.Kinds[%d] is nil", i)
		}
		kinds = append(kinds, k)
	}
	for i, f := range opts.Followers {
		if argument.Missing(f) {
			return nil, fmt.Errorf("splitter: Options.Followers[%d] is nil", i)
		}
		kinds = append(kinds, f)
	}
	for i, k := range kinds {
		if slices.ContainsFunc(kinds[:i], func(other divider) bool { return k.Resource() == other.Resource() }) {
			return nil, fmt.Errorf("splitter: Options.Kinds and Options.Followers have %s twice", k.Resource().GroupResource())
		}
		s.kinds = append(s.kinds, s.newKindState(i, k))
	}
	for _, k := range s.kinds[:len(opts.Kinds)] {
		k.followers = s.kinds[len(opts.Kinds):]
	}
	for _, k := range s.kinds[len(opts.Kinds):] {
		if _, ok := k.kind.(autoscaling); ok {
			k.scaled, k.targets = s.kinds[:len(opts.Kinds)], newTargets()
		}
	}
	return s, nil
}

// Start runs until ctx ends, waits for all goroutines that it started, then returns nil. It waits for kinds
// that the API server does not serve yet. It writes nothing if nothing differs. Call it once.
func (s *Splitter) Start(ctx context.Context) error {
	if s.up == nil {
		return errors.New("splitter: the Splitter was not made by New")
	}
	ctx = logging.Into(ctx, s.opts.Logger, "splitter")
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, k := range s.kinds {
		wg.Go(func() { _ = k.objects.Start(ctx) }) // retries errors until ctx ends
	}
	wg.Go(func() {
		var misread map[string]string
		for list := range s.clusters.Watch(ctx) {
			misread = s.misread(ctx, list, misread)
			s.room.setCapacities(capacities(list))
			s.readiness.set(ctx, list, time.Now())
			s.Again()
		}
	})
	return s.queue.Start(ctx, s.work)
}

// misread reports each weight that cannot be read, unless before has the same value. It returns all
// unreadable weights, by cluster.
func (s *Splitter) misread(ctx context.Context, list []Cluster, before map[string]string) map[string]string {
	now := map[string]string{}
	for _, c := range list {
		if _, err := c.Weight(); err != nil {
			now[c.Name] = c.Labels[v1alpha1.WeightLabel]
			if now[c.Name] != before[c.Name] {
				s.opts.Observer.cluster(ctx, ClusterEvent{Cluster: c.Name, Err: err})
			}
		}
	}
	return now
}

// Again requeues all parents. Call it when the Placement would decide differently than before. It does not
// block.
func (s *Splitter) Again() {
	for _, k := range s.kinds {
		k.all()
	}
}

// Plan returns the plan for one parent without writing anything. The API server need not have the parent;
// the parent's shards are read from the API server. Plan fails until Start has read the clusters, and the shards of all
// types if the capacity of a cluster is known.
func (s *Splitter) Plan(ctx context.Context, parent *unstructured.Unstructured) (Plan, error) {
	if parent == nil {
		return Plan{}, errors.New("splitter: parent is nil")
	}
	for _, k := range s.kinds {
		if gvr, _ := meta.UnsafeGuessKindToResource(parent.GroupVersionKind()); gvr != k.kind.Resource() {
			continue
		}
		list, silent, _, known := s.readiness.placing(time.Now())
		if !known {
			return Plan{}, errors.New("splitter: the clusters are not known yet")
		}
		if !counted(s.room, s.kinds) {
			return Plan{}, errors.New("splitter: the shards of all parents are not known yet")
		}
		var have []Shard
		if parent.GetUID() != "" {
			shards, err := k.client(parent.GetNamespace()).List(ctx, metav1.ListOptions{LabelSelector: v1alpha1.ParentLabel + "=" + string(parent.GetUID())})
			if err != nil {
				return Plan{}, fmt.Errorf("splitter: list shards of %s: %w", parent.GetName(), err)
			}
			for i := range shards.Items {
				have = s.have(have, &shards.Items[i], parent, silent)
			}
		}
		at := s.situation(k, parent, list)
		if kind, ok := k.kind.(Kind); ok {
			at.limits = s.room.limits(k.holder(loop.KeyOf(parent)), unitOf(kind, parent, have))
		}
		plan, _, err := s.cut(k, parent, at, have)
		return plan, err
	}
	return Plan{}, fmt.Errorf("splitter: no kind in Options.Kinds divides %s", parent.GroupVersionKind())
}

func (s *Splitter) cut(k *kindState, parent *unstructured.Unstructured, at situation, have []Shard) (plan Plan, shards []Shard, err error) {
	if at.err != nil {
		return Plan{}, nil, fmt.Errorf("splitter: %w", at.err)
	}
	switch kind := k.kind.(type) {
	case Follower:
		plan, shards, err = kind.cut(parent, at, have)
	case Kind:
		if at.scaling != nil {
			scaling := *at.scaling
			scaling.shares = withinRoom(scaling.shares, at.limits)
			plan, shards, err = scaling.cut(kind, parent, have)
			break
		}
		d, shares, err1 := s.opts.Place(parent, at.clusters)
		if err1 != nil {
			return Plan{}, nil, fmt.Errorf("splitter: place %s: %w", parent.GetName(), err1)
		}
		d.UID = parent.GetUID()
		plan, shards, err = kind.Cut(parent, d, withinRoom(shares, at.limits), have)
	}
	if err != nil {
		return Plan{}, nil, fmt.Errorf("splitter: cut %s: %w", parent.GetName(), err)
	}
	return plan, shards, nil
}

// have returns the list in the argument have, with obj appended if obj is a shard of the parent.
func (s *Splitter) have(have []Shard, obj, parent *unstructured.Unstructured, silent map[string]bool) []Shard {
	if !cutFrom(obj, parent) {
		return have
	}
	cluster := clusterOf(obj)
	return append(have, Shard{Cluster: cluster, Object: obj, Silent: silent[cluster], Lost: s.readiness.lost(cluster)})
}

// divider is a Kind or a Follower.
type divider interface {
	Resource() schema.GroupVersionResource
	Fold(parent *unstructured.Unstructured, shards []Shard) (status map[string]any, err error)
}

// kindState holds the state of one Kind or Follower: its cache, the indices of its parents and shards, and its recorded
// writes.
type kindState struct {
	kind       divider
	place      int
	objects    *loop.Objects
	namespaces namespaces
	shards     loop.Children
	writes     *writes
	queue      *loop.Queue
	room       *room
	dynamic    dynamic.Interface
	metadata   metadata.Interface
	followers  []*kindState // of a Kind
	scaled     []*kindState // the Kinds whose workloads an autoscaler may scale
	targets    *targets     // of autoscalers
	listed     atomic.Bool  // all objects have been listed once
}

func (s *Splitter) newKindState(place int, kind divider) *kindState {
	k := &kindState{kind: kind, place: place, writes: newWrites(), queue: s.queue, room: s.room, dynamic: s.up.Dynamic(), metadata: s.up.Metadata()}
	k.objects = loop.NewObjects(k.dynamic, kind.Resource(), loop.ObjectsOptions{
		Strip: loop.KeepManager(Manager), Changed: k.changed, Indexed: true, Flows: func() { s.flows(k) },
	})
	return k
}

func (k *kindState) client(namespace string) dynamic.ResourceInterface {
	return k.dynamic.Resource(k.kind.Resource()).Namespace(namespace)
}

// meta returns a client for writes. The client reads only the metadata of each response.
func (k *kindState) meta(namespace string) metadata.ResourceInterface {
	return k.metadata.Resource(k.kind.Resource()).Namespace(namespace)
}

func (k *kindState) changed(key types.NamespacedName) {
	obj, ok := k.objects.Get(key)
	parent := ""
	if ok {
		parent = parentOf(obj)
	}
	k.namespaces.set(key, ok && parent == "")
	before := k.shards.Set(key, parent)
	if parent != "" || before != "" {
		k.observe(key)
	}
	k.requeueScaled(key, cmp.Or(parent, before), obj)
	switch {
	case parent != "":
		k.requeue(types.NamespacedName{Namespace: key.Namespace, Name: parent})
	case before == "":
		k.requeue(key)
	}
	if before != "" && before != parent {
		k.requeue(types.NamespacedName{Namespace: key.Namespace, Name: before})
	}
}

// requeue requeues a parent and the parents that follow it.
func (k *kindState) requeue(parent types.NamespacedName) {
	k.add(parent)
	k.requeueFollowers(parent)
}

func (k *kindState) add(key types.NamespacedName) {
	k.queue.Add(k.holder(key).String())
}

// flows requeues all parents whose division may depend on the objects of k, since the cache is fresh.
func (k *kindState) flows() {
	k.all()
	for _, other := range k.scaled {
		other.all()
	}
}

// all requeues every parent, also deleted parents that still have shards.
func (k *kindState) all() {
	for _, obj := range k.objects.List() {
		if parent := parentOf(obj); parent != "" {
			k.add(types.NamespacedName{Namespace: obj.GetNamespace(), Name: parent})
		} else {
			k.add(loop.KeyOf(obj))
		}
	}
	for _, f := range k.followers {
		f.all()
	}
}
