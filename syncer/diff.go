// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/loop"
)

// Change is a write that a Syncer would make for one object, or the reason why the Syncer would make no write.
type Change struct {
	Resource schema.GroupResource
	Object   types.NamespacedName // the upstream key of the object; with WriteNamespace, the name of the namespace
	// Write is empty if the Syncer would write nothing: then Reason and Message are set.
	Write   Write
	Reason  Reason
	Message string
	// Overruled are the fields that other clients changed and that would be overwritten, each as the server names it,
	// with its manager.
	Overruled []string
}

// Diff yields, type by type, the writes that the next reconcile of each object would make on either side, and the
// reason for each write that the reconcile could not make. It changes nothing: it sends each write as a dry run, which
// a server rejects for the same reasons as the write itself. Consequences of the writes are unknown: an object that
// would be created has no status yet, and Diff does not find out whether the downstream rejects an object in a
// namespace that would be created too.
//
// Diff lists all synced objects of each type, one type after the other. It yields an error, and skips the type, if the
// lists of a type are not complete after 30 seconds. It yields an error, and goes on with the next object, if the
// requests for an object fail. If a cache of the type becomes stale meanwhile, it yields an error and skips the rest
// of the type.
//
// Diff blocks while it is iterated. It may be called with or without Start, also at the same time, and needs the same
// rights as Start.
func (s *Syncer) Diff(ctx context.Context) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		if s.up == nil {
			yield(Change{}, errNotMade)
			return
		}
		run := &dryRun{}
		shadow, err := newSyncer(s.up, s.down, s.given)
		if err != nil {
			yield(Change{}, err)
			return
		}
		shadow.dry, shadow.opts.Observer, shadow.lease = true, run.observer(), newLease(0)
		shadow.add, shadow.addBehind = run.queue, run.queue
		if err := shadow.identifyOnce(ctx); err != nil {
			yield(Change{}, wrap("syncer: diff", err))
			return
		}
		types, err := typeDiscovery{shadow}.compare()
		if err != nil {
			yield(Change{}, wrap("syncer: diff", err))
			return
		}
		defer shadow.readAutoscalers(ctx, types)()
		for _, name := range slices.Sorted(maps.Keys(types.wanted)) {
			if !shadow.diffType(ctx, run, name, types.wanted[name], yield) {
				return
			}
		}
	}
}

// readAutoscalers starts caches of the autoscalers, which the reconciles of other types need, and waits for their first
// lists. If these do not come, replicas that autoscalers may have set stay as they are. The result stops the caches.
func (s *Syncer) readAutoscalers(ctx context.Context, types compared) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var caches sync.WaitGroup
	var used []*loop.Objects
	for of := range s.autoscalers.types {
		k, ok := types.wanted[of]
		if !ok || k.Refused != "" {
			s.autoscalers.follow(of, nil, types.unknown[of])
			continue
		}
		c := newController(s, of, k)
		s.autoscalers.follow(of, c, false)
		used = append(used, c.caches.used()...)
	}
	for _, o := range used {
		caches.Go(func() { _ = o.Start(ctx) })
	}
	lists, done := context.WithTimeout(ctx, requestTimeout)
	defer done()
	_ = awaitLists(lists, used) // diffType reports the error
	return func() {
		cancel()
		caches.Wait()
	}
}

// diffType yields the changes of one type. It returns false if the iteration is to stop.
func (s *Syncer) diffType(ctx context.Context, run *dryRun, name string, k kind, yield func(Change, error) bool) bool {
	c := newController(s, name, k)
	if k.Refused != "" && apierrors.IsForbidden(c.up.probe(ctx)) {
		return true // nothing would be written, and a syncer needs no rights on types that it refuses
	}
	s.mu.Lock()
	s.controllers = map[string]*controller{name: c}
	s.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	var caches sync.WaitGroup
	defer caches.Wait()
	defer cancel()
	for _, o := range c.caches.used() {
		caches.Go(func() { _ = o.Start(ctx) })
	}
	if err := c.listAll(ctx); err != nil {
		return yield(Change{Resource: k.GVR.GroupResource()}, wrap("syncer: diff "+name, err)) && ctx.Err() == nil
	}
	for _, queued := range run.takeQueue() {
		_, err := s.work(ctx, queued)
		for _, change := range run.takeChanges() {
			if !yield(change, nil) {
				return false
			}
		}
		if errors.Is(err, errNotFresh) {
			return yield(Change{Resource: k.GVR.GroupResource()}, wrap("syncer: diff "+name, err)) && ctx.Err() == nil
		}
		if err != nil {
			_, of := parseQueueKey(queued)
			if !yield(Change{Resource: k.GVR.GroupResource(), Object: of.NamespacedName}, fmt.Errorf("syncer: diff: %w", err)) {
				return false
			}
		}
	}
	return true
}

// listAll waits until all caches have their first lists, and queues every object.
func (c *controller) listAll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if err := awaitLists(ctx, c.caches.used()); err != nil {
		return errors.Join(c.caches.staleErr(), wrap("list", err))
	}
	// A cache may have become stale again before resume could queue the objects, so queue them here.
	c.enqueueAll()
	if c.caches.born != nil {
		c.enqueueBorn()
	}
	return c.sweeper.sweep(ctx)
}

// dryRun collects the changes of a dry run. One goroutine reconciles the objects of a type; the caches queue them
// from other goroutines.
type dryRun struct {
	changes   []Change
	overruled []string

	mu     sync.Mutex
	queued map[string]bool
}

func (r *dryRun) queue(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.queued == nil {
		r.queued = map[string]bool{}
	}
	r.queued[key] = true
}

func (r *dryRun) takeQueue() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	keys := slices.Sorted(maps.Keys(r.queued))
	r.queued = nil
	return keys
}

func (r *dryRun) takeChanges() []Change {
	changes := r.changes
	r.changes, r.overruled = nil, nil
	return changes
}

func (r *dryRun) observer() *Observer {
	return &Observer{
		Wrote: func(_ context.Context, e WriteEvent) {
			r.changes = append(r.changes, Change{Resource: e.Resource, Object: e.Object, Write: e.Write, Overruled: r.overruled})
			r.overruled = nil
		},
		Problem: func(_ context.Context, e ProblemEvent) {
			if e.Reason != "" {
				r.changes = append(r.changes, Change{Resource: e.Resource, Object: e.Object, Reason: e.Reason, Message: e.Message})
			}
		},
		Overruled: func(_ context.Context, e OverruledEvent) { r.overruled = e.Fields },
	}
}
