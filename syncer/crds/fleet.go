// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/internal/argument"
	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/syncer/targets"
)

// Fleet is one Controller over all clusters that a targets.Controller reaches. It reports the state of the types of
// each SyncTarget in the condition TypesDefined, and thereby in TypesCompatible.
type Fleet struct {
	*Controller
	targets  *targets.Controller
	reported map[string]bool // by target, during Start
}

// NewFleet returns a Fleet. It sets Upstream and Targets of opts: clusters are added and removed with their
// SyncTargets. It does no I/O.
func NewFleet(up region.API, targets *targets.Controller, opts Options) (*Fleet, error) {
	if argument.Missing(up) {
		return nil, errors.New("up is nil: give the API server whose types the targets share")
	}
	if targets == nil {
		return nil, errors.New("targets is nil: give the targets.Controller of the clusters")
	}
	f := &Fleet{targets: targets, reported: map[string]bool{}}
	opts.Upstream, opts.Targets = up, f.list
	c, err := New(opts)
	if err != nil {
		return nil, err
	}
	f.Controller = c
	return f, nil
}

// list returns the connected clusters, except the one whose SyncTarget is named "upstream".
func (f *Fleet) list() []Target {
	var all []Target
	for name, api := range f.targets.Connected() {
		if name != Upstream {
			all = append(all, Target{Name: name, API: api})
		}
	}
	return all
}

// Start makes one pass after the other until ctx ends, and then returns nil. It blocks.
func (f *Fleet) Start(ctx context.Context) error {
	if f.Controller == nil {
		return errors.New("the Fleet was not made by NewFleet")
	}
	ctx = logging.Into(ctx, f.opts.Logger, "crds")
	for ctx.Err() == nil {
		asked := f.targets.Connected()
		states, err := f.Sync(ctx)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			logging.From(ctx).Info("Cannot reconcile types", "reason", err.Error())
		default:
			f.reportTypes(asked, states)
		}
		select {
		case <-ctx.Done():
		case <-time.After(f.opts.Interval):
		}
	}
	return nil
}

// reportTypes reports the types of each target that was connected during the whole pass. A target that did not answer keeps
// its last reported result.
func (f *Fleet) reportTypes(asked map[string]region.API, states []State) {
	present := map[string]bool{}
	for name, api := range f.targets.Connected() {
		if asked[name] != api {
			continue // connected during the pass: not asked
		}
		present[name] = true
		if name == Upstream {
			f.targets.SetTypes(name, []string{fmt.Sprintf("all: the name %q is reserved for the upstream: rename the SyncTarget", name)}, true)
			continue
		}
		incompatible, known := incompatibleTypes(name, states)
		if known || !f.reported[name] {
			f.targets.SetTypes(name, incompatible, known)
			f.reported[name] = true
		}
	}
	for name := range f.reported {
		if !present[name] {
			delete(f.reported, name)
		}
	}
}

// incompatibleTypes returns the types that are incompatible between a target and the upstream. known is false if the
// target or the upstream did not answer.
func incompatibleTypes(name string, states []State) (incompatible []string, known bool) {
	known = true
	for _, s := range states {
		concerned := s.Side == name || s.Side == Upstream && slices.Contains(s.From, name)
		switch {
		case s.Type.Empty() && (s.Side == name || s.Side == Upstream):
			known = false
		case concerned && s.Condition().Status == metav1.ConditionFalse:
			incompatible = append(incompatible, fmt.Sprintf("%s (%s: %s)", s.Type, s.Reason, s.Message))
		}
	}
	return slices.Compact(incompatible), known
}
