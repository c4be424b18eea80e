// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/syncer"
	"github.com/atoll-dev/atoll/syncer/internal/synctarget"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// Agent runs the Syncer of one SyncTarget, inside a cluster in pull mode or anywhere else. The Syncer runs while
// the SyncTarget exists and is not being deleted. If it ran longer, it could add its finalizer again to objects
// that were released.
type Agent struct {
	up, down region.API
	opts     syncer.Options
	targets  *loop.Objects
	wake     chan struct{}
	started  atomic.Bool

	mu      sync.Mutex
	running *syncer.Syncer
}

// NewAgent returns an Agent, or an error if an API is nil or an option is invalid. If the Heartbeat of opts is not
// positive, it is 20 s. NewAgent does no I/O and starts nothing; see Start.
func NewAgent(up, down region.API, opts syncer.Options) (*Agent, error) {
	if opts.Heartbeat <= 0 {
		opts.Heartbeat = 20 * time.Second
	}
	if _, err := syncer.New(up, down, opts); err != nil {
		return nil, err
	}
	a := &Agent{up: up, down: down, opts: opts, wake: make(chan struct{}, 1)}
	a.targets = loop.NewObjects(up.Dynamic(), synctarget.Resource, loop.ObjectsOptions{
		Fields: "metadata.name=" + opts.Target, Strip: loop.KeepManager(),
		Changed: func(types.NamespacedName) { a.look() }, Flows: a.look,
	})
	return a, nil
}

func (a *Agent) look() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// Syncer returns the running Syncer; nil if none runs.
func (a *Agent) Syncer() *syncer.Syncer {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.running
}

// Start runs until ctx ends, waits for the Syncer, then returns nil. It retries while a server is unreachable, and
// waits while there is no SyncTarget. It returns an error if both APIs reach the same cluster. When it ends, objects
// on both sides stay as they are. Call it once.
func (a *Agent) Start(ctx context.Context) error {
	if a.up == nil {
		return errors.New("targets: the Agent was not made by NewAgent")
	}
	ctx = logging.Into(ctx, a.opts.Logger, "agent")
	if a.started.Swap(true) {
		return errors.New("targets: Start of an Agent was called twice")
	}
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	all.Go(func() { _ = a.targets.Start(ctx) })
	var work syncerRun
	defer func() { work.end() }()
	for {
		var again <-chan time.Time
		if a.targets.Err() == nil {
			wait := a.reconcile(ctx, &work)
			if wait > 0 {
				again = time.After(wait)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case err := <-work.failed:
			return err
		case <-a.wake:
		case <-again:
		}
	}
}

// syncerRun is one run of the Syncer. uid is the UID of the SyncTarget that it runs for.
type syncerRun struct {
	uid    types.UID
	cancel context.CancelFunc
	all    sync.WaitGroup
	failed chan error
}

func (w *syncerRun) end() {
	if w.cancel != nil {
		w.cancel()
		w.all.Wait()
	}
	w.cancel, w.uid = nil, ""
}

// reconcile starts or stops the Syncer by the state of the SyncTarget. It returns the retry delay; 0 means until an
// event.
func (a *Agent) reconcile(ctx context.Context, work *syncerRun) time.Duration {
	target := &v1alpha1.SyncTarget{}
	obj, ok := a.targets.Get(types.NamespacedName{Name: a.opts.Target})
	if ok {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, target); err != nil {
			logging.From(ctx).Error(err, "The SyncTarget cannot be read", "target", a.opts.Target)
			return 0
		}
	}
	if work.cancel != nil && (work.uid != target.UID || target.DeletionTimestamp != nil) {
		work.end()
		a.set(nil)
	}
	switch {
	case !ok:
		return 0
	case target.DeletionTimestamp != nil:
		if err := a.ended(ctx, target); err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil {
			logging.From(ctx).Info("The end of the Syncer is not reported yet", "target", target.Name, "reason", err.Error())
			return synctarget.ShortRetry
		}
		return 0
	case work.cancel == nil:
		a.begin(ctx, target.UID, work)
	}
	return 0
}

func (a *Agent) set(s *syncer.Syncer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.running = s
}

func (a *Agent) begin(ctx context.Context, uid types.UID, work *syncerRun) {
	s, err := syncer.New(a.up, a.down, a.opts)
	failed := make(chan error, 1)
	work.uid, work.failed = uid, failed
	if err != nil {
		failed <- err // cannot happen: NewAgent has checked the options
		return
	}
	ctx, work.cancel = context.WithCancel(ctx)
	work.all.Go(func() {
		if err := s.Start(ctx); err != nil {
			failed <- err
		}
	})
	a.set(s)
}

// ended reports in the status of the SyncTarget that its Syncer has ended.
func (a *Agent) ended(ctx context.Context, target *v1alpha1.SyncTarget) error {
	if synctarget.HasEnded(target) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, synctarget.RequestTimeout)
	defer cancel()
	return synctarget.WriteStatus(ctx, a.up, target, func(_ *v1alpha1.SyncTargetStatus, set synctarget.SetCondition) {
		set(v1alpha1.SyncTargetConditionReady, metav1.ConditionFalse, v1alpha1.SyncTargetReasonStopped, "the SyncTarget is being deleted")
	})
}
