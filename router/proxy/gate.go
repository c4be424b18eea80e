// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"slices"
	"sync"
	"time"
)

// gate limits the concurrent requests by their flow. Requests above a bound wait for a limited time, in one queue
// per flow; the queues take turns. A waiting request takes no place.
type gate struct {
	patience time.Duration // how long a request may wait

	mu      sync.Mutex
	busy    shares // counts admitted requests
	waiting shares // counts waiting requests
	lines   []*line
	lineOf  map[flow]*line
}

// line is the queue of one flow.
type line struct {
	flow    flow
	waiters []*waiter
}

// waiter is a waiting request. The channel ready is closed once the request is admitted.
type waiter struct{ ready chan struct{} }

func newGate(busy, waiting bounds, patience time.Duration) *gate {
	return &gate{patience: patience, busy: newShares(busy), waiting: newShares(waiting), lineOf: map[flow]*line{}}
}

// enter admits a request of f, or waits for at most g.patience until the request can be admitted. If the error is
// nil, the caller must call leave once. The error is a refusal, or the cause of the end of ctx.
func (g *gate) enter(ctx context.Context, f flow) error {
	g.mu.Lock()
	held := g.busy.bindingBound(f)
	if held == free && g.lineOf[f] == nil {
		g.busy.take(f)
		g.mu.Unlock()
		return nil
	}
	if g.waiting.bindingBound(f) != free {
		g.mu.Unlock()
		return busy(held)
	}
	w := g.join(f)
	g.mu.Unlock()

	timer := time.NewTimer(g.patience)
	defer timer.Stop()
	select {
	case <-w.ready:
		return nil
	case <-timer.C:
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-w.ready: // admitted in the meantime
		if ctx.Err() == nil {
			return nil
		}
		g.busy.give(f)
		g.admit()
	default:
		g.quit(f, w)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return busy(g.busy.bindingBound(f))
}

// leave releases the place of a request of f, and admits waiting requests that fit now.
func (g *gate) leave(f flow) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.busy.give(f)
	g.admit()
}

// join appends a request to the queue of its flow. The caller holds g.mu.
func (g *gate) join(f flow) *waiter {
	l := g.lineOf[f]
	if l == nil {
		l = &line{flow: f}
		g.lineOf[f] = l
		g.lines = append(g.lines, l)
	}
	w := &waiter{ready: make(chan struct{})}
	l.waiters = append(l.waiters, w)
	g.waiting.take(f)
	return w
}

// quit removes a request from its queue. The caller holds g.mu.
func (g *gate) quit(f flow, w *waiter) {
	l := g.lineOf[f]
	l.waiters = slices.DeleteFunc(l.waiters, func(other *waiter) bool { return other == w })
	g.waiting.give(f)
	if len(l.waiters) == 0 {
		delete(g.lineOf, f)
		g.lines = slices.DeleteFunc(g.lines, func(other *line) bool { return other == l })
	}
}

// admit admits all waiting requests that fit, one from each queue in turn; a queue that had its turn moves to the
// end. The caller holds g.mu.
func (g *gate) admit() {
	for admitted := true; admitted; {
		admitted = false
		var behind []*line
		g.lines = slices.DeleteFunc(g.lines, func(l *line) bool {
			if g.busy.bindingBound(l.flow) != free {
				return false
			}
			admitted = true
			first := l.waiters[0]
			l.waiters = l.waiters[1:]
			g.waiting.give(l.flow)
			g.busy.take(l.flow)
			close(first.ready)
			if len(l.waiters) > 0 {
				behind = append(behind, l)
			} else {
				delete(g.lineOf, l.flow)
			}
			return true
		})
		g.lines = append(g.lines, behind...)
	}
}
