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
	"github.com/atoll-dev/atoll/syncer"
)

// Fleet is one Controller over all clusters that a syncer.Targets reaches. It says of each SyncTarget how its types stand: in
// the condition TypesDefined, and so in TypesCompatible.
type Fleet struct {
	*Controller
	targets *syncer.Targets
	told    map[string]bool // by target, during Start
}

// NewFleet returns a Fleet. Upstream and Targets of opts are set by it: clusters come and go with their SyncTargets. It does
// no I/O.
func NewFleet(up region.API, targets *syncer.Targets, opts Options) (*Fleet, error) {
	if argument.Missing(up) {
		return nil, errors.New("up is nil: give the API server whose types the targets share")
	}
	if targets == nil {
		return nil, errors.New("targets is nil: give the syncer.Targets whose clusters are meant")
	}
	f := &Fleet{targets: targets, told: map[string]bool{}}
	opts.Upstream, opts.Targets = up, f.list
	c, err := New(opts)
	if err != nil {
		return nil, err
	}
	f.Controller = c
	return f, nil
}

// list leaves out a SyncTarget that has the name of the other side.
func (f *Fleet) list() []Target {
	var all []Target
	for name, api := range f.targets.Connected() {
		if name != Upstream {
			all = append(all, Target{Name: name, API: api})
		}
	}
	return all
}

// Start makes one pass after the other until ctx ends, and returns nil then. It blocks.
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
			logging.From(ctx).Info("Types are not in step", "reason", err.Error())
		default:
			f.tell(asked, states)
		}
		select {
		case <-ctx.Done():
		case <-time.After(f.opts.Interval):
		}
	}
	return nil
}

// tell records how the types of each target stand that was reached before the pass and still is. What is not known changes
// nothing that was.
func (f *Fleet) tell(asked map[string]region.API, states []State) {
	present := map[string]bool{}
	for name, api := range f.targets.Connected() {
		if asked[name] != api {
			continue // it has come meanwhile
		}
		present[name] = true
		if name == Upstream {
			f.targets.SetTypes(name, []string{fmt.Sprintf("all: a SyncTarget that is named %q cannot be told from the upstream", name)}, true)
			continue
		}
		incompatible, known := standing(name, states)
		if known || !f.told[name] {
			f.targets.SetTypes(name, incompatible, known)
			f.told[name] = true
		}
	}
	for name := range f.told {
		if !present[name] {
			delete(f.told, name)
		}
	}
}

// standing says which types a target and the upstream do not have alike; known is false if one of the two did not answer.
func standing(name string, states []State) (incompatible []string, known bool) {
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
