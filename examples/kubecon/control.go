// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/examples/internal/stage"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/syncer"
	"github.com/atoll-dev/atoll/syncer/crds"
	"github.com/atoll-dev/atoll/syncer/targets"
	syncerv1alpha1 "github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// Shorter periods than in production.
const (
	heartbeat    = 500 * time.Millisecond // the default is 20 s
	defaultGrace = 2 * time.Second        // the default is 5 minutes
	minGrace     = 2 * heartbeat
	rejoin       = time.Second // the default is a minute
)

// control has the loops that work with the upstream: a syncer for each SyncTarget, the splitter,
// and the controller of types.
type control struct {
	targets  *targets.Controller
	splitter *splitter.Splitter
	types    *crds.Controller

	mu       sync.Mutex
	attached []crds.Target
}

// install installs the type SyncTarget in the upstream.
func install(ctx context.Context, up region.API) error {
	_, err := config.InstallCRDs(ctx, up, config.InstallOptions{Groups: []string{syncerv1alpha1.GroupVersion.Group}})
	return err
}

func newControl(up region.API, grace time.Duration) (*control, error) {
	c := &control{}
	var err error
	if c.targets, err = targets.New(up, targets.Options{
		Heartbeat: heartbeat,
		Recheck:   heartbeat,
		Configure: func(_ *syncerv1alpha1.SyncTarget, opts *syncer.Options) {
			opts.Discovery = time.Second
			opts.Types = func(gr schema.GroupResource) bool { return gr == deployments.GroupResource() }
		},
	}); err != nil {
		return nil, err
	}
	if c.splitter, err = splitter.New(up, splitter.SyncTargets(up), splitter.Options{Grace: grace, Rejoin: rejoin}); err != nil {
		return nil, err
	}
	c.types, err = crds.New(crds.Options{
		Upstream: up,
		Targets: func() []crds.Target {
			c.mu.Lock()
			defer c.mu.Unlock()
			return append([]crds.Target(nil), c.attached...)
		},
		Policy:   crds.Policy{{Group: deployments.Group, Resource: deployments.Resource, Direction: crds.Pull}},
		Interval: time.Second,
	})
	return c, err
}

// run runs all loops until ctx ends or one fails.
func (c *control) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.types.Start(ctx) })
	group.Go(func() error { return c.targets.Start(ctx) })
	group.Go(func() error { return c.splitter.Start(ctx) })
	return group.Wait()
}

// attach lets the upstream import types from a cluster.
func (c *control) attach(to *stage.Cluster) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.attached = append(c.attached, crds.Target{Name: to.Name, API: to.Conn})
}
