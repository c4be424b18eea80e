// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/internal/argument"
	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/region"
)

// Target is an API server other than the upstream.
type Target struct {
	// Name must not be empty or "upstream", and must be unique among the targets.
	Name string
	API  region.API
}

// Options configure a Controller.
type Options struct {
	// Upstream is required.
	Upstream region.API
	// Targets returns the present targets. It is called in every pass and must not block. A target whose API has
	// changed counts as a new one. Required.
	Targets func() []Target
	// Policy selects the types and the direction in which each is defined. Without rules no type is defined.
	Policy Policy
	// Interval is the time between two passes. Zero means 30 seconds.
	Interval time.Duration
	// Timeout limits the requests that read the definitions of one side in a pass, and the requests that write or
	// remove one definition. Zero means 30 seconds. Discovery has a timeout of its own.
	Timeout  time.Duration
	Observer *Observer

	// Logger receives log lines. Zero: the logger of Start's context, else slog.Default. To log nothing, use
	// logr.FromSlogHandler(slog.DiscardHandler).
	Logger logr.Logger
}

// Controller syncs the definitions of types between the upstream and the targets, in the directions of
// Options.Policy. It is safe for concurrent use.
type Controller struct {
	opts Options

	pass  sync.Mutex // held during a pass
	sides map[string]*side

	mu     sync.Mutex
	states []State
}

// New returns a Controller. It does no I/O.
func New(opts Options) (*Controller, error) {
	switch {
	case argument.Missing(opts.Upstream):
		return nil, errors.New("options: Upstream is nil: give the API server whose types the targets share")
	case opts.Targets == nil:
		return nil, errors.New("options: Targets is nil: give a func that returns the targets")
	case opts.Interval < 0:
		return nil, fmt.Errorf("options: Interval is %s: want zero or more", opts.Interval)
	case opts.Timeout < 0:
		return nil, fmt.Errorf("options: Timeout is %s: want zero or more", opts.Timeout)
	}
	if err := opts.Policy.validate(); err != nil {
		return nil, fmt.Errorf("options: %w", err)
	}
	if opts.Interval == 0 {
		opts.Interval = 30 * time.Second
	}
	if opts.Timeout == 0 {
		opts.Timeout = 30 * time.Second
	}
	opts.Policy = slices.Clone(opts.Policy)
	return &Controller{opts: opts, sides: map[string]*side{}}, nil
}

// Start makes one pass after the other until ctx ends, and then returns nil. It blocks.
func (c *Controller) Start(ctx context.Context) error {
	if c.opts.Upstream == nil {
		return errNotMade
	}
	ctx = logging.Into(ctx, c.opts.Logger, "crds")
	log := logging.From(ctx)
	for ctx.Err() == nil {
		if _, err := c.Sync(ctx); err != nil && ctx.Err() == nil {
			log.Info("Cannot reconcile types", "reason", err.Error())
		}
		select {
		case <-ctx.Done():
		case <-time.After(c.opts.Interval):
		}
	}
	return nil
}

var errNotMade = errors.New("the Controller was not made by New")

// States returns the state of each type in the last pass, sorted by type and side.
func (c *Controller) States() []State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.states)
}

// Sync makes one pass and returns the state of each type. It blocks until the pass is complete; it waits for each side
// no longer than the timeouts in Options. It returns an error if the targets are misconfigured or ctx has ended; all
// other failures are in the states.
func (c *Controller) Sync(ctx context.Context) ([]State, error) {
	if c.opts.Upstream == nil {
		return nil, errNotMade
	}
	c.pass.Lock()
	defer c.pass.Unlock()
	up, targets, err := c.configure()
	if err != nil {
		return nil, err
	}
	var looks sync.WaitGroup
	for _, s := range append([]*side{up}, targets...) {
		looks.Go(func() {
			timed, cancel := context.WithTimeout(ctx, c.opts.Timeout)
			defer cancel()
			s.read(timed)
		})
	}
	looks.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p := &comparison{opts: c.opts, up: up, targets: targets}
	p.run(ctx)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	sortStates(p.states)
	c.publish(ctx, p.states)
	return slices.Clone(p.states), nil
}

// configure returns the sides of this pass. A side that was in the last pass keeps its cached definitions and
// documents.
func (c *Controller) configure() (*side, []*side, error) {
	present := map[string]*side{}
	keep := func(name string, api region.API) *side {
		s := c.sides[name]
		if s == nil || s.api != api {
			s = newSide(name, api)
		}
		present[name] = s
		return s
	}
	up := keep(Upstream, c.opts.Upstream)
	var targets []*side
	for i, t := range c.opts.Targets() {
		if t.Name == "" || present[t.Name] != nil {
			return nil, nil, fmt.Errorf("targets[%d].Name is %q: want a name that no other side has", i, t.Name)
		}
		if argument.Missing(t.API) {
			return nil, nil, fmt.Errorf("targets[%d].API of %s is nil", i, t.Name)
		}
		targets = append(targets, keep(t.Name, t.API))
	}
	slices.SortFunc(targets, func(a, b *side) int {
		if a.name < b.name {
			return -1
		}
		return 1
	})
	c.sides = present
	return up, targets, nil
}

// publish replaces the states, and reports each state that has changed to the Observer. It also logs a changed
// state if the type is not synced.
func (c *Controller) publish(ctx context.Context, states []State) {
	type key struct{ group, resource, side string }
	keyOf := func(s State) key { return key{s.Type.Group, s.Type.Resource, s.Side} }
	before := map[key]State{}
	c.mu.Lock()
	for _, s := range c.states {
		before[keyOf(s)] = s
	}
	c.states = states
	c.mu.Unlock()
	for _, s := range states {
		if old, ok := before[keyOf(s)]; !ok || old.Reason != s.Reason || old.Message != s.Message {
			c.opts.Observer.changed(ctx, s)
			if s.Condition().Status != metav1.ConditionTrue {
				logging.From(ctx).Info("Type is not synced", "type", s.Type.String(), "side", s.Side, "reason", s.Reason, "message", s.Message)
			}
		}
	}
}
