// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/argument"
	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
)

// Arbiter sets the status of every RegionClaim in every peer to Bound, Conflict or Pending, creates
// RegionClaims for ServiceClusters without one, and keeps a ServiceCluster Pending while its claim
// is not Bound. Any number of Arbiters may run over the same peers and plane. Make one with New.
type Arbiter struct {
	plane     region.API // nil: the fan-out protocol decides
	directory region.Directory
	opts      Options
	queue     *loop.Queue
	decisions *loop.Objects // nil without a plane
	started   atomic.Bool
	began     time.Time // when Start was called

	mu         sync.Mutex
	peers      map[region.PeerName]*peer       // the engaged peers
	ring       map[region.PeerName]time.Time   // when each peer joined the Directory; nil: not known yet
	missing    map[region.PeerName]time.Time   // when a holder was first found missing from the ring
	claimed    map[region.Key]time.Time        // when a region without holder was first found claimed
	open       map[region.Key]struct{}         // regions that were not settled when last reconciled
	lastWonBid map[region.Key]*statementRecord // the last bid that won
}

// New returns an Arbiter for the peers of d that records its decisions in plane. With a nil plane
// the fan-out protocol decides about RegionClaims (see Kind), and the Arbiter reports the result.
// New does no I/O. The error names the wrong argument or option.
func New(plane region.API, d region.Directory, opts Options) (*Arbiter, error) {
	switch {
	case argument.Missing(d):
		return nil, errors.New("claim: Directory is nil: pass the region.Ring of the peers")
	case plane != nil && argument.Missing(plane):
		return nil, fmt.Errorf("claim: plane is a nil %T: pass the result of region.APIFor, or an untyped nil for none", plane)
	}
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	a := &Arbiter{
		plane: plane, directory: d, opts: opts,
		queue:      loop.NewQueue(loop.QueueOptions{Workers: opts.Workers}),
		peers:      map[region.PeerName]*peer{},
		missing:    map[region.PeerName]time.Time{},
		claimed:    map[region.Key]time.Time{},
		open:       map[region.Key]struct{}{},
		lastWonBid: map[region.Key]*statementRecord{},
	}
	if plane != nil {
		a.decisions = loop.NewObjects(plane.Dynamic(), leases, loop.ObjectsOptions{
			Namespace: opts.Namespace, Labels: DecisionLabel + "=" + decisionValue,
			Changed: a.decisionChanged, Flows: a.touchAll,
		})
	}
	return a, nil
}

// Start arbitrates until ctx ends, waits for its goroutines, then returns nil. An unreachable peer
// or plane does not end it: Start retries, and the other peers are not affected. Call it once.
func (a *Arbiter) Start(ctx context.Context) error {
	if a.directory == nil {
		return errors.New("claim: the Arbiter was not made by New")
	}
	ctx = logging.Into(ctx, a.opts.Logger, "arbiter")
	if a.started.Swap(true) {
		return errors.New("claim: Start was called twice")
	}
	a.began = time.Now()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	errs := make(chan error, 4)
	run := func(part func() error) {
		wg.Go(func() {
			if err := part(); err != nil {
				errs <- err
				cancel()
			}
		})
	}
	run(func() error { return a.queue.Start(ctx, a.work) })
	run(func() error { return region.Engage(ctx, a.directory, a.engage) })
	run(func() error {
		for s := range a.directory.Watch(ctx) {
			a.ringChanged(s)
		}
		return nil
	})
	if a.decisions != nil {
		run(func() error { return a.decisions.Start(ctx) })
	}
	run(func() error {
		loop.Resharded(ctx, a.opts.Shard, a.touchAll)
		return nil
	})
	wg.Wait()
	close(errs)
	return <-errs
}

// touch enqueues the region of an object.
func (a *Arbiter) touch(key types.NamespacedName) {
	a.queue.Add(region.Key{Provider: key.Namespace, Name: key.Name}.String())
}

// decisionChanged enqueues the region whose Lease changed.
func (a *Arbiter) decisionChanged(key types.NamespacedName) {
	if lease, ok := a.decisions.Get(key); ok {
		a.queue.Add(lease.GetAnnotations()[regionAnnotation])
		return
	}
	// The Lease is deleted, and its name may be a hash: then the region is not known.
	if k, err := region.ParseKey(key.Name); err == nil {
		a.queue.Add(k.String())
	} else {
		a.touchAll()
	}
}

// touchAll enqueues every known region.
func (a *Arbiter) touchAll() {
	if a.decisions != nil {
		for _, lease := range a.decisions.List() {
			a.queue.Add(lease.GetAnnotations()[regionAnnotation])
		}
	}
	for _, p := range a.engaged() {
		a.touchPeer(p)
	}
}

// touchPeer enqueues the regions of all cached objects of a peer.
func (a *Arbiter) touchPeer(p *peer) {
	for _, objects := range []*loop.Objects{p.claims, p.clusters} {
		for _, obj := range objects.List() {
			a.touch(loop.KeyOf(obj))
		}
	}
}

// touchOpen enqueues the regions that are not settled, and those held by one of the peers in held.
func (a *Arbiter) touchOpen(held ...region.PeerName) {
	a.mu.Lock()
	open := make([]region.Key, 0, len(a.open))
	for k := range a.open {
		open = append(open, k)
	}
	a.mu.Unlock()
	for _, k := range open {
		a.queue.Add(k.String())
	}
	if a.decisions == nil || len(held) == 0 {
		return
	}
	for _, lease := range a.decisions.List() {
		for _, name := range held {
			if holderOf(lease) == name {
				a.queue.Add(lease.GetAnnotations()[regionAnnotation])
			}
		}
	}
}

// ringChanged records which peers are in the Directory, and enqueues the regions that the change
// may affect.
func (a *Arbiter) ringChanged(s *region.Snapshot) {
	now := time.Now()
	ring := make(map[region.PeerName]time.Time, s.Len())
	var moved []region.PeerName
	a.mu.Lock()
	for p := range s.Peers() {
		since, ok := a.ring[p.Name]
		if !ok {
			since = now
			moved = append(moved, p.Name)
		}
		ring[p.Name] = since
		delete(a.missing, p.Name)
	}
	for name := range a.ring {
		if _, ok := ring[name]; !ok {
			moved = append(moved, name)
		}
	}
	known := a.ring != nil
	a.ring = ring
	a.mu.Unlock()
	if !known {
		a.touchAll()
		return
	}
	a.touchOpen(moved...)
}
