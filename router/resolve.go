// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/atoll-dev/atoll/region"
)

// Resolver asks a central plane which peer serves a region.
type Resolver interface {
	// Resolve returns the peer that serves k. An error that is region.ErrUnknownRegion says that nobody does; any other,
	// that it could not be learned, which changes nothing of what is known. ctx has a deadline.
	Resolve(ctx context.Context, k region.Key) (region.PeerName, error)
}

// ResolverFunc makes a Resolver of a func.
type ResolverFunc func(ctx context.Context, k region.Key) (region.PeerName, error)

// Resolve calls f.
func (f ResolverFunc) Resolve(ctx context.Context, k region.Key) (region.PeerName, error) {
	return f(ctx, k)
}

const (
	maxQuestions = 16          // to the Resolver at one time
	maxMisses    = 4096        // that are remembered
	failurePause = time.Second // after a question that was not answered, before the same is asked again
)

// asker asks the Resolver: once at a time for each region, for no caller longer than that caller wants, and not at all for
// what it was told a moment ago.
type asker struct {
	opts   Options
	learn  func(k region.Key, peer region.PeerName)
	forget func(k region.Key)
	places chan struct{}

	mu      sync.Mutex
	flights map[region.Key]*flight
	misses  map[region.Key]miss
	ended   bool
	wg      sync.WaitGroup // of the flights
}

// flight is one question that is being asked.
type flight struct {
	cancel context.CancelFunc
	done   chan struct{} // closed once err is set and the answer can be seen in the table
	err    error
}

// miss is an answer that names no peer. It holds for one generation of the Directory: any change there may have added the
// region.
type miss struct {
	err        error
	until      time.Time
	generation uint64
}

func newAsker(opts Options, learn func(region.Key, region.PeerName), forget func(region.Key)) *asker {
	return &asker{
		opts: opts, learn: learn, forget: forget, places: make(chan struct{}, maxQuestions),
		flights: make(map[region.Key]*flight), misses: make(map[region.Key]miss),
	}
}

// ask asks about k and waits for the answer, which is in the table if the error is nil.
func (a *asker) ask(ctx context.Context, generation uint64, k region.Key) error {
	f, err := a.begin(ctx, generation, k)
	if f == nil {
		return err
	}
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// refresh has e, which is stale, asked for anew in the background.
func (a *asker) refresh(ctx context.Context, t *table, e *entry) {
	if !e.stale.CompareAndSwap(true, false) {
		return
	}
	e.after(a.opts.Fresh)                         // in case that nobody answers
	_, _ = a.begin(ctx, t.generation(), e.Region) // who does not wait hears of it from the table
}

// begin joins the flight that asks about k, or starts one. Without a flight, the error says why there is none.
func (a *asker) begin(ctx context.Context, generation uint64, k region.Key) (*flight, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if m, ok := a.misses[k]; ok && m.generation == generation && time.Now().Before(m.until) {
		return nil, m.err
	}
	if f, ok := a.flights[k]; ok {
		return f, nil
	}
	if a.ended {
		return nil, fmt.Errorf("%w: the router has ended", region.ErrUnavailable)
	}
	// The question outlives whoever asks it first: others may wait for it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.opts.Timeout)
	f := &flight{cancel: cancel, done: make(chan struct{})}
	a.flights[k] = f
	a.wg.Go(func() {
		defer cancel()
		defer close(f.done)
		f.err = a.question(ctx, generation, k)
	})
	return f, nil
}

func (a *asker) question(ctx context.Context, generation uint64, k region.Key) error {
	start := time.Now()
	peer, err := a.resolve(ctx, k)
	unknown := errors.Is(err, region.ErrUnknownRegion)
	m := miss{err: err, generation: generation}
	switch {
	case err == nil:
		a.learn(k, peer)
	case unknown:
		a.forget(k)
		m.until = time.Now().Add(a.opts.Negative)
	default:
		if !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) {
			m.err = fmt.Errorf("%w: the resolver does not answer: %w", region.ErrUnavailable, err)
		}
		m.until = time.Now().Add(min(failurePause, a.opts.Negative))
	}
	a.mu.Lock()
	delete(a.flights, k)
	delete(a.misses, k)
	if err != nil {
		if len(a.misses) >= maxMisses {
			clear(a.misses)
		}
		a.misses[k] = m
	}
	a.mu.Unlock()
	a.opts.Observer.resolved(ctx, ResolveEvent{Region: k, Peer: peer, Elapsed: time.Since(start), Err: err})
	return m.err
}

func (a *asker) resolve(ctx context.Context, k region.Key) (region.PeerName, error) {
	select {
	case a.places <- struct{}{}:
		defer func() { <-a.places }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	peer, err := a.opts.Resolver.Resolve(ctx, k)
	if err != nil {
		return "", err
	}
	if err := peer.Validate(); err != nil {
		return "", fmt.Errorf("its answer names no peer: %w", err)
	}
	return peer, nil
}

// last is the answer about k that named no peer, if one is remembered.
func (a *asker) last(k region.Key) (miss, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	m, ok := a.misses[k]
	return m, ok
}

// end cancels what is being asked, waits for it, and asks nothing any more.
func (a *asker) end() {
	a.mu.Lock()
	a.ended = true
	for _, f := range a.flights {
		f.cancel()
	}
	a.mu.Unlock()
	a.wg.Wait()
}
