// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/loop"
)

// controller syncs one type. It queues the objects that have changed in its caches. One worker at a time reconciles an
// object, in both directions, so two writers of ours cannot disagree.
type controller struct {
	*syncedType
	objects reconciler
	born    upsync
	sweeper sweeper
	stop    context.CancelFunc

	// missed holds the reconciles that came up while mayDecide returned an error. missedBorn holds the reconciles of
	// objects that were born downstream, and that came up while mayDecideBorn returned an error.
	missed, missedBorn missed

	mu     sync.Mutex
	stale  time.Time // when a cache became stale; zero if none is stale
	losses []string  // how the schemas of the two sides differ, one line each
}

func newController(s *Syncer, name string, k kind) *controller {
	r := newSyncedType(s, name, k)
	c := &controller{syncedType: r, objects: newReconciler(r), born: upsync{r, rivals{r}}, sweeper: sweeper{r}, stale: time.Now()}
	enqueue := func(of func(types.NamespacedName) ref) func(types.NamespacedName, bool) {
		return func(key types.NamespacedName, listed bool) { c.enqueue(of(key), listed) }
	}
	r.caches = newCaches(s, k, r.rules, cacheEvents{
		fresh: c.resume, object: func(key types.NamespacedName, listed bool) {
			c.observeAutoscaler(autoscalerRef{key: key})
			c.enqueue(originRef(key), listed)
		}, place: func(place types.NamespacedName, listed bool) {
			c.observeAutoscaler(autoscalerRef{downstream: true, key: place})
			c.enqueue(r.refAt(place), listed)
		}, raised: enqueue(bornRef),
		born: func(place types.NamespacedName, listed bool) {
			if key, ok := r.originAt(place); ok { // otherwise no upstream namespace maps to the namespace of place
				c.enqueue(bornRef(key), listed)
			}
		},
		appeared: func(place types.NamespacedName) {
			r.records.update(r.refAt(place), func(d *detail) { d.appeared = true })
		},
		withdrawn: func(obj *unstructured.Unstructured) { r.withdrawn.add(obj.GetUID()) },
	})
	return c
}

// enqueue queues a reconcile. If listed is true, a list showed the object, and it is queued behind the objects
// that have just changed.
func (c *controller) enqueue(of ref, listed bool) {
	if listed {
		c.syncer.addBehind(of.queueKey(c.name))
		return
	}
	c.syncer.add(of.queueKey(c.name))
}

// run runs the caches, the sweeper and the watches of blockers until ctx ends.
func (c *controller) run(ctx context.Context) {
	var running sync.WaitGroup
	for _, o := range c.caches.used() {
		running.Go(func() {
			side := c.up
			if c.caches.isDownstream(o) {
				side = c.down
			}
			if c.kind.Refused == "" || c.caches.mayRead(ctx, side) {
				_ = o.Start(ctx)
			}
		})
	}
	running.Go(func() {
		if awaitLists(ctx, c.caches.required()) == nil {
			c.sweeper.run(ctx)
		}
	})
	running.Go(func() { c.blockers.run(ctx) })
	running.Wait()
}

// mayDecide returns an error if nothing may be decided now: a cache is stale, or the lease is lost.
func (c *controller) mayDecide() error { return errors.Join(c.syncer.lease.err(), c.caches.staleErr()) }

// mayDecideBorn does the same as mayDecide, for objects that were born downstream.
func (c *controller) mayDecideBorn() error {
	return errors.Join(c.syncer.lease.err(), c.caches.bornFresh())
}

// resume runs when a cache has become fresh or stale, and when the lease is back. If the caches of origins and of their
// downstream objects are fresh, it queues every object in them, and the missed reconciles. It does the same for the
// caches of objects that were born downstream.
func (c *controller) resume() {
	err := c.caches.staleErr()
	c.mu.Lock()
	switch {
	case err == nil:
		c.stale = time.Time{}
	case c.stale.IsZero():
		c.stale = time.Now()
	}
	c.mu.Unlock()
	if c.caches.born != nil && c.caches.bornFresh() == nil {
		c.enqueueBorn()
		c.missedBorn.requeue(c.syncer.addBehind)
	}
	if err == nil {
		if c.syncer.autoscalers.typeOf(c.kind.GVR.GroupResource()) != nil {
			c.syncer.enqueueAutoscaled()
		}
		c.enqueueAll()
		c.missed.requeue(c.syncer.addBehind)
	}
}

// enqueueAll queues each object in the caches of origins and of their downstream objects.
func (c *controller) enqueueAll() {
	for _, o := range []*loop.Objects{c.caches.one, c.caches.many} {
		for _, key := range o.Keys() {
			c.enqueue(originRef(key), true)
		}
	}
	for _, place := range c.caches.down.Keys() {
		c.enqueue(c.refAt(place), true)
	}
}

// enqueueBorn queues each object in the caches of objects that were born downstream and of their upstream objects.
func (c *controller) enqueueBorn() {
	for _, place := range c.caches.born.Keys() {
		if key, ok := c.originAt(place); ok {
			c.enqueue(bornRef(key), true)
		}
	}
	for _, key := range c.caches.raised.Keys() {
		c.enqueue(bornRef(key), true)
	}
}

// reconcile brings one object up to date on both sides. While nothing may be decided it does nothing, and resume
// queues the object again.
func (c *controller) reconcile(ctx context.Context, of ref) (time.Duration, error) {
	if of.role == asBorn && c.caches.born == nil {
		return 0, nil // objects that are born downstream are no longer brought up
	}
	mayDecide, missed := c.mayDecide, &c.missed
	if of.role == asBorn {
		mayDecide, missed = c.mayDecideBorn, &c.missedBorn
	}
	if err := missed.check(of.queueKey(c.name), mayDecide); err != nil {
		return c.syncer.putOff(err)
	}
	switch of.role {
	case asBorn:
		return c.born.reconcile(ctx, of)
	case asStray:
		return c.objects.reconcileStray(ctx, of)
	default:
		return c.objects.reconcile(ctx, of)
	}
}

// status returns the state of the type.
func (c *controller) status() TypeStatus {
	s := TypeStatus{
		Resource: c.kind.GVR, Upstream: c.caches.one.Len() + c.caches.many.Len(), Downstream: c.caches.down.Len(),
		Held: c.valve.held(), Err: c.caches.staleErr(), Problems: c.records.problems(),
	}
	if c.kind.Refused != "" {
		s.Reason, s.Message = ReasonNotPermitted, c.kind.Refused
	}
	for _, p := range s.Problems {
		if p.Reason == ReasonOriginGone {
			s.OriginGone++
		}
	}
	s.Held += s.OriginGone
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.Err != nil {
		s.Since = c.stale
	}
	s.Losses = append([]string(nil), c.losses...)
	return s
}

func (c *controller) setLosses(losses []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.losses = losses
}
