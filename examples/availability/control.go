// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/examples/internal/stage"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/placement"
	splitterv1alpha1 "github.com/atoll-dev/atoll/splitter/v1alpha1"
	"github.com/atoll-dev/atoll/syncer"
	"github.com/atoll-dev/atoll/syncer/crds"
	"github.com/atoll-dev/atoll/syncer/targets"
	syncerv1alpha1 "github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// Shorter periods than in production.
const (
	heartbeat    = 500 * time.Millisecond // the default is 20 s
	defaultGrace = 10 * time.Second       // the default is 5 minutes
	minGrace     = 2 * heartbeat
	rejoin       = time.Second     // the default is a minute
	linger       = 2 * time.Second // the default is 5 minutes
	turn         = 4 * time.Second // the default is a minute
)

// install installs Atoll's types in the upstream.
func install(ctx context.Context, up region.API) error {
	_, err := config.InstallCRDs(ctx, up, config.InstallOptions{Groups: []string{syncerv1alpha1.GroupVersion.Group, splitterv1alpha1.GroupName}})
	return err
}

// newControl returns the Start functions of the loops that work with the upstream: a syncer for each SyncTarget, the
// placement controller, the splitter, and the controller of types. atoll-manager runs the same loops if its configuration
// has the section workloads.
func newControl(on *stage.Stage, grace time.Duration) ([]func(context.Context) error, error) {
	up := on.Upstream
	sync, err := targets.New(up, targets.Options{
		Heartbeat: heartbeat, Recheck: heartbeat,
		Configure: func(_ *syncerv1alpha1.SyncTarget, opts *syncer.Options) {
			opts.Discovery, opts.Capacity = time.Second, time.Second
		},
	})
	if err != nil {
		return nil, err
	}
	periods := splitter.Periods{Grace: grace, Rejoin: rejoin}
	place, err := placement.New(up, splitter.SyncTargets(up), placement.Options{Periods: periods, Linger: linger})
	if err != nil {
		return nil, err
	}
	split, err := splitter.New(up, splitter.SyncTargets(up), splitter.Options{
		Followers: []splitter.Follower{splitter.DisruptionBudgets(), splitter.Autoscalers()},
		Place:     placement.Place, Grace: periods.Grace, Rejoin: periods.Rejoin, Turn: turn,
	})
	if err != nil {
		return nil, err
	}
	var clusters []crds.Target
	for _, c := range on.Clusters {
		clusters = append(clusters, crds.Target{Name: c.Name, API: c.Conn})
	}
	types, err := crds.New(crds.Options{
		Upstream: up, Interval: time.Second,
		Targets: func() []crds.Target { return clusters },
		Policy:  crds.Policy{{Group: deployments.Group, Resource: deployments.Resource, Direction: crds.Pull}},
	})
	if err != nil {
		return nil, err
	}
	return []func(context.Context) error{types.Start, sync.Start, place.Start, split.Start}, nil
}

// runAll runs the functions until ctx ends or one fails.
func runAll(ctx context.Context, starts []func(context.Context) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, start := range starts {
		group.Go(func() error { return start(ctx) })
	}
	return group.Wait()
}
