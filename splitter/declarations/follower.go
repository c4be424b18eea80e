// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package declarations

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/argument"
	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
	"github.com/atoll-dev/atoll/splitter/workload"
)

// Manager is the field manager of the Follower's writes.
const Manager = "atoll-declarations"

// Run is a function that a Follower runs with the declared types, sorted by name, until ctx ends. It must return then. If
// it returns earlier, the Follower runs it again after Options.Retry.
type Run func(ctx context.Context, types []v1alpha1.WorkloadTypeSpec) error

// Options adjust a Follower. The zero value works.
type Options struct {
	// Fixed are types that the program declares itself, for example from files. They are always in effect, and no
	// WorkloadType object can declare them.
	Fixed []v1alpha1.WorkloadTypeSpec
	// Refuse returns an error for a declaration that must not be in effect, and nil for others. The condition Ready has
	// the error. It must be pure. nil: all are accepted.
	Refuse func(v1alpha1.WorkloadTypeSpec) error
	// ReadOnly makes the Follower write no status. Of the programs that follow one API server, set it in all but one.
	ReadOnly bool
	// Settle is how long the Follower waits after a change for further changes; zero: 1 s.
	Settle time.Duration
	// Retry is the time after which a failed write or run is repeated; zero: 10 s.
	Retry time.Duration

	// Logger receives log lines. Zero: the logger of Start's context, else slog.Default. To log nothing, use
	// logr.FromSlogHandler(slog.DiscardHandler).
	Logger logr.Logger
}

// Follower follows the WorkloadTypes of one API server. Use New. Safe for concurrent use.
type Follower struct {
	up      region.API
	run     Run
	opts    Options
	fixed   map[string]bool // by RESOURCE.GROUP
	objects *loop.Objects
	changed chan struct{}
}

var resource = v1alpha1.GroupVersion.WithResource("workloadtypes")

// New returns a Follower. It does no I/O; see Start. It fails if a type in Options.Fixed has a fault, is declared twice or
// is built in.
func New(up region.API, run Run, opts Options) (*Follower, error) {
	switch {
	case argument.Missing(up):
		return nil, errors.New("declarations: up is nil: pass what region.APIFor returns, or a region.Conn")
	case argument.Missing(run):
		return nil, errors.New("declarations: run is nil: pass a function that runs a splitter, for example")
	}
	if opts.Settle <= 0 {
		opts.Settle = time.Second
	}
	if opts.Retry <= 0 {
		opts.Retry = 10 * time.Second
	}
	f := &Follower{up: up, run: run, opts: opts, fixed: map[string]bool{}, changed: make(chan struct{}, 1)}
	for i, spec := range opts.Fixed {
		t, err := workload.Compile(spec)
		if err == nil {
			err = t.NotBuiltin()
		}
		if err != nil {
			return nil, fmt.Errorf("declarations: Options.Fixed[%d] (%s): %w", i, spec.Resource.Resource, err)
		}
		name := t.Resource().GroupResource().String()
		if f.fixed[name] {
			return nil, fmt.Errorf("declarations: Options.Fixed has %s twice", name)
		}
		f.fixed[name] = true
	}
	f.objects = loop.NewObjects(up.Dynamic(), resource, loop.ObjectsOptions{
		Strip: loop.KeepManager(Manager), Indexed: true, Flows: f.poke, Changed: func(types.NamespacedName) { f.poke() },
	})
	return f, nil
}

func (f *Follower) poke() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// refuse returns why a spec is rejected, besides its own faults.
func (f *Follower) refuse(spec v1alpha1.WorkloadTypeSpec) error {
	name := v1alpha1.GroupVersion.WithResource(spec.Resource.Resource).GroupResource()
	if name.Group = spec.Resource.Group; f.fixed[name.String()] {
		return fmt.Errorf("spec.resource: %s is declared by a file of the program", name)
	}
	if f.opts.Refuse == nil {
		return nil
	}
	return f.opts.Refuse(spec)
}

// Start follows the WorkloadTypes until ctx ends, waits for the function, and returns nil. As long as the API server does
// not serve WorkloadTypes, only the types in Options.Fixed are declared. Call it once.
func (f *Follower) Start(ctx context.Context) error {
	if f.up == nil {
		return errors.New("declarations: the Follower was not made by New")
	}
	ctx = logging.Into(ctx, f.opts.Logger, "declarations")
	cached := make(chan struct{})
	go func() {
		defer close(cached)
		_ = f.objects.Start(ctx) // retries errors until ctx ends
	}()
	defer func() { <-cached }()
	running := &runner{follower: f}
	defer running.stop()
	var last map[string]declaration
	for ctx.Err() == nil {
		wait := f.opts.Retry
		if all, known := f.judge(last); known {
			last = byName(all)
			running.follow(ctx, f.effective(all))
			if err := f.report(ctx, all); err != nil && ctx.Err() == nil {
				logging.From(ctx).Info("The status of a WorkloadType is not written", "reason", err.Error())
			} else if running.running() {
				wait = 0
			}
		}
		f.await(ctx, wait, running.ended())
	}
	return nil
}

// judge returns the judgement about all WorkloadTypes. It returns false while they are not known.
func (f *Follower) judge(last map[string]declaration) ([]declaration, bool) {
	switch err := f.objects.Err(); {
	case apierrors.IsNotFound(err) && last == nil:
		return nil, true // the type is not served
	case err != nil:
		return nil, false
	}
	return judge(f.objects.List(), last, f.refuse), true
}

func byName(all []declaration) map[string]declaration {
	m := map[string]declaration{}
	for _, d := range all {
		m[d.Name] = d
	}
	return m
}

// effective returns the types that are in effect.
func (f *Follower) effective(all []declaration) []v1alpha1.WorkloadTypeSpec {
	specs := slices.Clone(f.opts.Fixed)
	for _, d := range all {
		if d.InEffect != nil {
			specs = append(specs, *d.InEffect)
		}
	}
	return specs
}

// await returns Options.Settle after a WorkloadType has changed, or after wait unless it is zero, or Options.Retry after
// ended is closed, or when ctx ends.
func (f *Follower) await(ctx context.Context, wait time.Duration, ended <-chan struct{}) {
	var timer <-chan time.Time
	if wait > 0 {
		timer = time.After(wait)
	}
	select {
	case <-f.changed:
	case <-timer:
		return
	case <-ended:
		timer = time.After(f.opts.Retry)
		select {
		case <-timer:
		case <-ctx.Done():
		}
		return
	case <-ctx.Done():
		return
	}
	select {
	case <-time.After(f.opts.Settle):
	case <-ctx.Done():
	}
}

// runner runs the function of a Follower in a goroutine.
type runner struct {
	follower *Follower
	types    []v1alpha1.WorkloadTypeSpec
	cancel   context.CancelFunc
	done     chan struct{}
}

// follow runs the function with these types, unless it runs with them already.
func (r *runner) follow(ctx context.Context, specs []v1alpha1.WorkloadTypeSpec) {
	if r.running() && reflect.DeepEqual(r.types, specs) {
		return
	}
	r.stop()
	runCtx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	r.types, r.cancel, r.done = specs, cancel, done
	logging.From(ctx).Info("The declared types are in effect", "types", len(specs))
	go func() {
		defer close(done)
		if err := r.follower.run(runCtx, slices.Clone(specs)); err != nil && runCtx.Err() == nil {
			logging.From(ctx).Info("The function of the declared types failed", "reason", err.Error())
		}
	}()
}

// running reports whether the function runs.
func (r *runner) running() bool {
	if r.done == nil {
		return false
	}
	select {
	case <-r.done:
		return false
	default:
		return true
	}
}

// ended returns a channel that is closed when the function has returned; nil if it was never run.
func (r *runner) ended() <-chan struct{} { return r.done }

// stop ends the function and waits for it.
func (r *runner) stop() {
	if r.cancel != nil {
		r.cancel()
		<-r.done
	}
}

// report writes the status of each WorkloadType whose status differs from the desired one.
func (f *Follower) report(ctx context.Context, all []declaration) error {
	if f.opts.ReadOnly {
		return nil
	}
	var errs []error
	for _, d := range all {
		obj, ok := f.objects.Get(types.NamespacedName{Name: d.Name})
		if !ok || obj.GetGeneration() != d.Generation {
			continue // the object has changed since it was judged: the event of the change leads here again
		}
		desired, err := d.status(obj, time.Now())
		if err == nil {
			_, err = loop.Apply(ctx, f.up.Dynamic().Resource(resource), obj, desired, Manager, "status")
		}
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// status returns the WorkloadType with its desired status.
func (d declaration) status(obj *unstructured.Unstructured, now time.Time) (*unstructured.Unstructured, error) {
	is, reason := metav1.ConditionTrue, v1alpha1.ReasonComplete
	if d.Err != nil {
		is, reason = metav1.ConditionFalse, v1alpha1.ReasonInvalid
	}
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v1alpha1.WorkloadTypeStatus{
		ObservedGeneration: d.Generation, Accepted: d.InEffect, AcceptedGeneration: d.InEffectGeneration,
	})
	if err != nil {
		return nil, fmt.Errorf("status of WorkloadType %s: %w", d.Name, err)
	}
	const ready = string(v1alpha1.ConditionReady)
	status["conditions"] = []any{loop.Condition(obj, workload.Condition(obj, ready), ready, string(is), string(reason), d.message(), now)}
	desired := loop.Identity(obj)
	desired.Object["status"] = status
	return desired, nil
}
