// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterdaemonset

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/argument"
	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
	syncerv1alpha1 "github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// Manager is the field manager of the Controller's writes.
const Manager = "atoll-clusterdaemonset"

var (
	setsResource        = v1alpha1.GroupVersion.WithResource("clusterdaemonsets")
	deploymentsResource = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

// Options adjust a Controller. The zero value works.
type Options struct {
	// Label is the label by which a syncer finds the Deployments of its cluster; empty: ClusterLabel of
	// syncer/v1alpha1.
	Label string
	// Workers is how many ClusterDaemonSets are reconciled concurrently; zero: 8.
	Workers int
	// Shard selects the ClusterDaemonSets of this replica, by keys "ClusterDaemonSet/NAMESPACE/NAME"; nil: all.
	Shard region.Shard
	// Observer receives events; nil: none.
	Observer *Observer

	// Logger receives log lines. Zero: the logger of Start's context, else slog.Default. To log nothing, use
	// logr.FromSlogHandler(slog.DiscardHandler).
	Logger logr.Logger
}

// Controller carries out the ClusterDaemonSets of one API server; see the package's documentation. It is safe
// for concurrent use. Any number may run on one API server; with Options.Shard they share the work.
type Controller struct {
	up       region.API
	clusters splitter.Clusters
	opts     Options
	sets     *loop.Objects // ClusterDaemonSets
	copies   *loop.Objects // their Deployments
	index    *index
	queue    *loop.Queue
	taken    sync.Map // keys of Deployments that could not be created because other objects had their names

	mu    sync.Mutex
	list  []splitter.Cluster
	known bool
}

// New returns a Controller for the ClusterDaemonSets in one API server. The Controller watches clusters, which
// permits only one watch: do not pass the value that a Splitter has. New does no I/O; see Start. It fails if an
// argument is nil.
func New(up region.API, clusters splitter.Clusters, opts Options) (*Controller, error) {
	switch {
	case argument.Missing(up):
		return nil, errors.New("clusterdaemonset: up is nil: pass what region.APIFor returns, or a region.Conn")
	case argument.Missing(clusters):
		return nil, errors.New("clusterdaemonset: clusters is nil: pass splitter.SyncTargets of an API server, or StaticClusters")
	}
	if opts.Label == "" {
		opts.Label = syncerv1alpha1.ClusterLabel
	}
	c := &Controller{up: up, clusters: clusters, opts: opts, index: newIndex(), queue: loop.NewQueue(loop.QueueOptions{Workers: opts.Workers})}
	c.sets = loop.NewObjects(up.Dynamic(), setsResource, loop.ObjectsOptions{
		Strip: loop.KeepManager(Manager), Changed: c.setChanged, Indexed: true, Flows: c.all,
	})
	c.copies = loop.NewObjects(up.Dynamic(), deploymentsResource, loop.ObjectsOptions{
		Labels: v1alpha1.ClusterDaemonSetLabel, Strip: loop.KeepManager(Manager), Changed: c.copyChanged, Indexed: true, Flows: c.all,
	})
	return c, nil
}

// Start runs until ctx ends, waits for all goroutines that it started, then returns nil. It waits for types that
// the API server does not serve yet. It writes nothing if nothing differs. Call it once.
func (c *Controller) Start(ctx context.Context) error {
	if c.up == nil {
		return errors.New("clusterdaemonset: the Controller was not made by New")
	}
	ctx = logging.Into(ctx, c.opts.Logger, "clusterdaemonset")
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, cache := range []*loop.Objects{c.sets, c.copies} {
		wg.Go(func() { _ = cache.Start(ctx) }) // retries errors until ctx ends
	}
	wg.Go(func() {
		for list := range c.clusters.Watch(ctx) {
			c.mu.Lock()
			c.list, c.known = slices.Clone(list), true
			c.mu.Unlock()
			c.all()
		}
	})
	wg.Go(func() { loop.Resharded(ctx, c.opts.Shard, c.all) })
	return c.queue.Start(ctx, c.work)
}

// now returns the clusters, false if they are not known yet.
func (c *Controller) now() ([]splitter.Cluster, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.list, c.known
}

func (c *Controller) add(key types.NamespacedName) { c.queue.Add(loop.KeyText(key)) }

// all requeues every ClusterDaemonSet, also deleted ones that still have Deployments.
func (c *Controller) all() {
	for _, key := range slices.Concat(c.sets.Keys(), c.index.Parents()) {
		c.add(key)
	}
}

func (c *Controller) setChanged(key types.NamespacedName) {
	var uid types.UID
	if obj, ok := c.sets.Get(key); ok {
		uid = obj.GetUID()
	}
	c.index.identify(key, uid)
	c.add(key)
}

// copyChanged requeues up to three ClusterDaemonSets after a change of a Deployment: the one to which the Deployment
// belongs by its name, the one to which it belonged before, and the one whose UID is in its label.
func (c *Controller) copyChanged(key types.NamespacedName) {
	now := ""
	if obj, ok := c.copies.Get(key); ok {
		now = setOf(obj)
		if set, ok := c.index.identified(types.UID(obj.GetLabels()[v1alpha1.ClusterDaemonSetLabel])); ok {
			c.add(set)
		}
	}
	for _, set := range []string{c.index.Set(key, now), now} {
		if set != "" {
			c.add(types.NamespacedName{Namespace: key.Namespace, Name: set})
		}
	}
}
