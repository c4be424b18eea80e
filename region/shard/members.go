// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/internal/argument"
	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
)

// Members divides keys among the replicas of a program. It is safe for concurrent use; only Start does I/O.
type Members struct {
	namespace, group string
	opts             Options
	holder           string // the identity and a suffix that is unique to this run
	client           dynamic.ResourceInterface
	copy             *loop.Objects
	started          atomic.Bool

	changed    chan struct{}  // the cache has changed
	hurry      chan struct{}  // requests an early renewal
	deadLeases chan *deletion // Leases to delete

	until atomic.Pointer[time.Time] // from then on this replica owns nothing, unless it renews before
	view  atomic.Pointer[view]
}

type deletion struct {
	name string
	only metav1.Preconditions
}

// view is the set of live replicas of one generation.
type view struct {
	generation uint64
	live       []string
	candidates []candidate
	next       chan struct{} // closed when there is a newer view
}

// New makes Members for this replica. The replicas with the same group in the same namespace of plane share the keys.
// namespace and group must be DNS-1123 labels. New does no I/O and starts nothing; see Start. Errors name the wrong
// argument or option.
func New(plane region.API, namespace, group string, opts Options) (*Members, error) {
	if argument.Missing(plane) {
		return nil, errors.New("shard: plane is nil; use region.APIFor, or a Conn of a Ring")
	}
	if err := opts.complete(namespace, group); err != nil {
		return nil, err
	}
	m := &Members{
		namespace: namespace, group: group, opts: opts, holder: opts.Identity + "_" + rand.Text(),
		client:  plane.Dynamic().Resource(leases).Namespace(namespace),
		changed: make(chan struct{}, 1), hurry: make(chan struct{}, 1), deadLeases: make(chan *deletion, 1),
	}
	m.copy = loop.NewObjects(plane.Dynamic(), leases, loop.ObjectsOptions{
		Namespace: namespace, Labels: Label + "=" + group, Strip: loop.KeepManager(),
		Changed: func(types.NamespacedName) { poke(m.changed) },
	})
	m.until.Store(&time.Time{})
	m.view.Store(&view{next: make(chan struct{})})
	return m, nil
}

// poke wakes the reader of c. It does not block.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Identity returns the name of this replica in its group.
func (m *Members) Identity() string { return m.opts.Identity }

// Live returns the sorted identities of the replicas that share the keys now. It is empty while this replica owns
// nothing, whatever the others do.
func (m *Members) Live() []string {
	if !time.Now().Before(*m.until.Load()) {
		return nil
	}
	return slices.Clone(m.view.Load().live)
}

// Owns reports whether key belongs to this replica now. It is false before the first renewal and after Start has
// returned.
func (m *Members) Owns(key string) bool {
	v := m.view.Load()
	return owner(v.candidates, key) == m.opts.Identity && time.Now().Before(*m.until.Load())
}

// Watch yields the current generation, as soon as this replica is a member, then the newest after each change of
// ownership, until ctx ends. It also yields when this replica loses all keys.
func (m *Members) Watch(ctx context.Context) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for v := m.view.Load(); ctx.Err() == nil; v = m.view.Load() {
			if v.generation > 0 && !yield(v.generation) {
				return
			}
			select {
			case <-v.next:
			case <-ctx.Done():
			}
		}
	}
}

// Start keeps this replica a member until ctx ends. Then it waits for its goroutines, deletes the replica's Lease,
// which takes up to a third of Options.Lease, and returns nil. Errors of the plane do not end it: it retries. Call it
// once.
func (m *Members) Start(ctx context.Context) error {
	if m.client == nil {
		return errors.New("shard: the Members were not made by New")
	}
	ctx = logging.Into(ctx, m.opts.Logger, "members")
	if m.started.Swap(true) {
		return errors.New("shard: Start was called twice")
	}
	log := logging.From(ctx).WithValues("group", m.group, "identity", m.opts.Identity)
	ctx = logr.NewContext(ctx, log)
	var wg sync.WaitGroup
	renewals := make(chan renewal)
	wg.Go(func() { _ = m.copy.Start(ctx) }) // fails only if started twice
	wg.Go(func() { m.renewals(ctx, renewals) })
	m.judge(ctx, renewals)
	wg.Wait()
	m.publish(log, nil)
	m.leave(context.WithoutCancel(ctx))
	return nil
}

// renewals renews this replica's Lease after a third of its duration, sooner after a request or an error, and deletes
// the Leases of dead replicas.
func (m *Members) renewals(ctx context.Context, out chan<- renewal) {
	for ctx.Err() == nil {
		r := m.renew(ctx)
		select {
		case out <- r:
		case <-ctx.Done():
			return
		}
		next := r.begun.Add(m.opts.Lease / 3)
		if r.err != nil {
			next = r.begun.Add(m.opts.Lease / 15)
		}
		for time.Now().Before(next) && ctx.Err() == nil {
			select {
			case <-time.After(time.Until(next)):
			case <-m.hurry:
				if soon := r.begun.Add(m.opts.Lease / 30); soon.Before(next) {
					next = soon
				}
			case d := <-m.deadLeases:
				if err := m.remove(ctx, d.name, d.only); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
					logging.From(ctx).V(1).Info("The Lease of a dead replica was not deleted", "error", err.Error())
				}
			case <-ctx.Done():
			}
		}
	}
}

// judge publishes which replicas are live.
func (m *Members) judge(ctx context.Context, renewals <-chan renewal) {
	log := logging.From(ctx)
	r := &roster{group: m.group, identity: m.opts.Identity, lease: m.opts.Lease, others: map[string]*replica{}}
	var hurried time.Time
	var failing, shared bool
	for {
		now := time.Now()
		r.observe(m.copy.List(), now)
		j := r.judge(now)
		until := r.renewed.Add(m.opts.Lease)
		m.until.Store(&until)
		m.publish(log, j.live)
		if j.doubt.After(hurried) {
			hurried = now
			poke(m.hurry)
		}
		m.sweep(r, j, now)
		if foreign := !r.confirmed.IsZero() && r.holder != m.holder; foreign != shared {
			if shared = foreign; shared {
				log.Error(nil, "Another replica has the same identity: both work on the same keys; set a unique Options.Identity in each", "holder", r.holder)
			}
		}
		var timer <-chan time.Time
		if !j.next.IsZero() {
			timer = time.After(time.Until(j.next))
		}
		select {
		case <-m.changed:
		case <-timer:
		case one := <-renewals:
			r.renewal(one)
			if one.err != nil && ctx.Err() == nil {
				if !failing {
					log.Error(one.err, "Lease cannot be renewed")
				}
				m.opts.Observer.renewFailed(one.err)
			}
			failing = one.err != nil
		case <-ctx.Done():
			return
		}
	}
}

// sweep requests the deletion of a Lease whose replica has been dead for long. To divide this work, each replica
// deletes only the Leases whose names it owns as keys.
func (m *Members) sweep(r *roster, j judgement, now time.Time) {
	all := candidates(j.live)
	for _, identity := range j.corpses {
		name := leaseName(m.group, identity)
		if owner(all, name) != m.opts.Identity {
			continue
		}
		select {
		case m.deadLeases <- &deletion{name, r.others[identity].precondition()}:
			r.others[identity].swept = now
		default:
		}
	}
}

// publish stores a view of the live replicas, if they have changed.
func (m *Members) publish(log logr.Logger, live []string) {
	old := m.view.Load()
	if slices.Equal(old.live, live) {
		return
	}
	next := &view{generation: old.generation + 1, live: live, candidates: candidates(live), next: make(chan struct{})}
	m.view.Store(next)
	close(old.next)
	log.Info("Replicas share the keys", "live", live, "generation", next.generation)
	m.opts.Observer.changed(next.generation, slices.Clone(live))
}

// leave deletes this replica's Lease, so that the others take over at once.
func (m *Members) leave(ctx context.Context) {
	err := func() error {
		ctx, cancel := context.WithTimeout(ctx, m.opts.Lease/3)
		defer cancel()
		lease, err := m.client.Get(ctx, leaseName(m.group, m.opts.Identity), metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("shard: read Lease %s/%s: %w", m.namespace, leaseName(m.group, m.opts.Identity), err)
		}
		if holderOf(lease) != m.holder {
			return nil // the Lease belongs to another run with the same identity
		}
		only := (&replica{uid: lease.GetUID(), version: lease.GetResourceVersion()}).precondition()
		return m.remove(ctx, lease.GetName(), only)
	}()
	if err != nil && !apierrors.IsNotFound(err) {
		logging.From(ctx).Info("The Lease was not deleted; it expires", "error", err.Error())
	}
}
