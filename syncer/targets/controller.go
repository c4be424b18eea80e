// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/argument"
	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/syncer"
	"github.com/atoll-dev/atoll/syncer/internal/synctarget"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// Controller runs a Syncer for each SyncTarget of an upstream, in this process, or installs the Syncer in the
// cluster of the SyncTarget: see Mode. SyncTargets without a kubeconfig are left to syncers that run elsewhere.
type Controller struct {
	up      region.API
	opts    Options
	queue   *loop.Queue
	targets *loop.Objects
	started atomic.Bool

	mu          sync.Mutex
	running     map[string]*engaged
	pulses      map[string]lastHeartbeat
	types       map[string]condition
	upstreamUID types.UID
}

// New returns a Controller, or an error if up is nil. It does no I/O and starts nothing; see Start.
func New(up region.API, opts Options) (*Controller, error) {
	if argument.Missing(up) {
		return nil, errors.New("targets: the upstream API is nil: pass what region.APIFor returns")
	}
	if opts.Mode != nil && opts.Install == nil {
		opts.Install = func(context.Context, *v1alpha1.SyncTarget) (Install, error) {
			return Install{}, errors.New("Options.Install is nil: set it to install syncers in Pull mode")
		}
	}
	if opts.Heartbeat <= 0 {
		opts.Heartbeat = 20 * time.Second
	}
	if opts.Recheck <= 0 {
		opts.Recheck = 30 * time.Second
	}
	c := &Controller{up: up, opts: opts, queue: loop.NewQueue(loop.QueueOptions{}),
		running: map[string]*engaged{}, pulses: map[string]lastHeartbeat{}, types: map[string]condition{}}
	c.targets = loop.NewObjects(up.Dynamic(), synctarget.Resource, loop.ObjectsOptions{
		Strip: loop.KeepManager(), Changed: func(key types.NamespacedName) { c.queue.Add(key.Name) }, Flows: c.queueAll,
	})
	return c, nil
}

// queueAll queues every SyncTarget, and every connected cluster, since its SyncTarget may be gone.
func (c *Controller) queueAll() {
	for _, key := range c.targets.Keys() {
		c.queue.Add(key.Name)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range c.running {
		c.queue.Add(name)
	}
}

// Start runs until ctx ends, waits for all Syncers, then returns nil. When it ends, SyncTargets and objects stay as
// they are. Call it once.
func (c *Controller) Start(ctx context.Context) error {
	if c.up == nil {
		return errors.New("targets: the Controller was not made by New")
	}
	ctx = logging.Into(ctx, c.opts.Logger, "targets")
	if c.started.Swap(true) {
		return errors.New("targets: Start was called twice")
	}
	var all sync.WaitGroup
	all.Go(func() { _ = c.targets.Start(ctx) })
	_ = c.queue.Start(ctx, func(_ context.Context, name string) (time.Duration, error) { return c.reconcile(ctx, name) })
	all.Wait()
	for _, e := range c.running {
		e.end()
	}
	return nil
}

// Syncer returns the Syncer of a SyncTarget that runs in this process; nil if none does. It does not block.
func (c *Controller) Syncer(name string) *syncer.Syncer {
	if e := c.get(name); e != nil {
		return e.syncer
	}
	return nil
}

// Connected returns the APIs of the clusters that are connected at present, by the name of the SyncTarget. It does
// not block.
func (c *Controller) Connected() map[string]region.API {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[string]region.API{}
	for name, e := range c.running {
		all[name] = e.conn
	}
	return all
}

func (c *Controller) get(name string) *engaged {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running[name]
}

// stop ends the Syncer or the watch of a SyncTarget, if one runs.
func (c *Controller) stop(name string) {
	c.mu.Lock()
	e := c.running[name]
	delete(c.running, name)
	c.mu.Unlock()
	if e != nil {
		e.end()
	}
}
