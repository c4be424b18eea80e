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
	// Resolve returns the peer that serves k. The error region.ErrUnknownRegion means that no peer serves k. Any
	// other error means that the question failed: known routes then stay unchanged. ctx has a deadline.
	Resolve(ctx context.Context, k region.Key) (region.PeerName, error)
}

// ResolverFunc is a func that implements Resolver.
type ResolverFunc func(ctx context.Context, k region.Key) (region.PeerName, error)

// Resolve calls f.
func (f ResolverFunc) Resolve(ctx context.Context, k region.Key) (region.PeerName, error) {
	return f(ctx, k)
}

const (
	maxQuestions = 16          // concurrent questions to the Resolver
	maxMisses    = 4096        // misses that the asker remembers
	failurePause = time.Second // before a question that failed is repeated
)

// asker asks the Resolver. It asks at most one question per region at a time, and asks no question while it
// remembers a miss for the region. A caller whose context ends stops waiting, but the question goes on.
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

// flight is one open question, which concurrent callers for the region share.
type flight struct {
	cancel context.CancelFunc
	done   chan struct{} // closed once err is set and the table has the answer
	err    error
}

// miss is the result of a question that yielded no peer. It is valid until a time, and for one generation of the
// Directory only, since any change of the Directory may add the region.
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

// ask asks about k and waits for the answer, or until ctx ends. If the error is nil, the table has the answer.
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

// refresh asks about the region of e in the background if e is stale.
func (a *asker) refresh(ctx context.Context, t *table, e *entry) {
	if !e.stale.CompareAndSwap(true, false) {
		return
	}
	e.after(a.opts.Fresh)                         // ask again later if this question fails
	_, _ = a.begin(ctx, t.generation(), e.Region) // the answer reaches readers through the table
}

// begin joins the flight that asks about k, or starts one. If the asker remembers a miss for k or has ended, begin
// returns nil and the error of the miss or of the end instead.
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
	// The question must survive the end of its first caller's context: other callers may wait for the answer.
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

// last returns the miss that the asker remembers for k, even if the miss is no longer valid. It returns false if the
// asker remembers none.
func (a *asker) last(k region.Key) (miss, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	m, ok := a.misses[k]
	return m, ok
}

// end cancels the open questions, waits for them, and refuses further ones.
func (a *asker) end() {
	a.mu.Lock()
	a.ended = true
	for _, f := range a.flights {
		f.cancel()
	}
	a.mu.Unlock()
	a.wg.Wait()
}
