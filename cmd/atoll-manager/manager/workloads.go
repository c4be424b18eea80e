// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/cmd/atoll-manager/config"
	"github.com/atoll-dev/atoll/events"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/shard"
	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/declarations"
	"github.com/atoll-dev/atoll/splitter/placement"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
	"github.com/atoll-dev/atoll/splitter/workload"
)

// workloads divides the workloads of the central plane. One replica does so: the one that owns workloadsKey.
type workloads struct {
	plane   region.API
	config  *config.Workloads
	fixed   []v1alpha1.WorkloadTypeSpec // from files
	shard   *shard.Members
	metrics *metrics
	events  *events.Recorder
}

// workloadsKey is a key for the shards.
const workloadsKey = "workloads"

// ReadTypes reads the files with WorkloadTypes. Errors name the field of the configuration.
func ReadTypes(c *config.Workloads) (all []v1alpha1.WorkloadTypeSpec, err error) {
	if c == nil {
		return nil, nil
	}
	for i, path := range c.TypeFiles {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("workloads.typeFiles[%d]: %w", i, err)
		}
		types, err := workload.Decode(data)
		if err != nil {
			return nil, fmt.Errorf("workloads.typeFiles[%d]: %s: %w", i, path, err)
		}
		for _, one := range types {
			if _, err := workload.Compile(one.Spec); err != nil {
				return nil, fmt.Errorf("workloads.typeFiles[%d]: %s: %s: %w", i, path, one.Name, err)
			}
			all = append(all, one.Spec)
		}
	}
	return all, nil
}

// check returns an error if the loops cannot be made for the configured types.
func (w *workloads) check() error {
	if _, err := w.follower(); err != nil {
		return fmt.Errorf("workloads.typeFiles: %w", err)
	}
	if _, err := w.make(w.fixed); err != nil {
		return fmt.Errorf("workloads.typeFiles: %w", err)
	}
	return nil
}

// Start divides the workloads while this replica owns the key, until ctx ends.
func (w *workloads) Start(ctx context.Context) error {
	var stop func()
	defer func() {
		if stop != nil {
			stop()
		}
	}()
	for range w.shard.Watch(ctx) {
		switch owns := w.shard.Owns(workloadsKey); {
		case owns && stop == nil:
			start, err := w.loop()
			if err != nil {
				return err
			}
			owned, cancel := context.WithCancel(ctx)
			done := make(chan struct{})
			go func() {
				defer close(done)
				_ = start(owned) // ends only with its context
			}()
			stop = func() { cancel(); <-done }
		case !owns && stop != nil:
			stop()
			stop = nil
		}
	}
	return nil
}

// loop returns the Start function of new loops.
func (w *workloads) loop() (func(context.Context) error, error) {
	if !*w.config.FollowTypes {
		return func(ctx context.Context) error { return w.run(ctx, w.fixed) }, nil
	}
	f, err := w.follower()
	if err != nil {
		return nil, err
	}
	return f.Start, nil
}

func (w *workloads) follower() (*declarations.Follower, error) {
	return declarations.New(w.plane, w.run, declarations.Options{Fixed: w.fixed, Refuse: func(spec v1alpha1.WorkloadTypeSpec) error {
		_, err := w.make(append(w.fixed[:len(w.fixed):len(w.fixed)], spec)) // rejects types that are placed or divided otherwise
		return err
	}})
}

// run divides and places the configured and the declared types until ctx ends.
func (w *workloads) run(ctx context.Context, types []v1alpha1.WorkloadTypeSpec) error {
	parts, err := w.make(types)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, start := range parts {
		group.Go(func() error { return start(ctx) })
	}
	return group.Wait()
}

// make returns the Start functions of a Splitter and a placement Controller. It does no I/O.
func (w *workloads) make(types []v1alpha1.WorkloadTypeSpec) ([]func(context.Context) error, error) {
	var kinds []splitter.Kind
	var resources []schema.GroupVersionResource
	for _, name := range w.config.Types {
		kind := config.KindOf(name)
		kinds = append(kinds, kind)
		resources = append(resources, kind.Resource())
	}
	for _, spec := range types {
		if spec.Division == v1alpha1.DivideNone {
			continue
		}
		kind, err := splitter.Declared(spec)
		if err != nil {
			return nil, err
		}
		kinds = append(kinds, kind)
	}
	s, err := splitter.New(w.plane, splitter.SyncTargets(w.plane), splitter.Options{
		Kinds: kinds, Followers: []splitter.Follower{splitter.DisruptionBudgets(), splitter.Autoscalers()}, Place: placement.Place, Observer: w.events.Splitter(w.plane, w.metrics.Splitter(nil)),
	})
	if err != nil {
		return nil, err
	}
	c, err := placement.New(w.plane, splitter.SyncTargets(w.plane), placement.Options{
		Workloads: resources, WorkloadTypes: types, Observer: w.events.Placement(w.plane, w.metrics.Placement(nil)),
	})
	if err != nil {
		return nil, err
	}
	return []func(context.Context) error{s.Start, c.Start}, nil
}
