// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"context"
	"sync"
)

// presence asks for the present version of a source. Callers that ask at one time share a request, but only one that
// begins after they asked.
type presence struct {
	mu      sync.Mutex
	running *question
	next    *question // begins when running has ended
}

// question is one request.
type question struct {
	done      chan struct{}
	now       string // once done is closed
	err       error
	abandoned bool // its caller gave up
}

// ask returns the answer of do, or that of a later request of another caller.
func (p *presence) ask(ctx context.Context, do func(context.Context) (string, error)) (string, error) {
	for {
		q, before, leads := p.join()
		if leads {
			return p.lead(ctx, q, before, do)
		}
		select {
		case <-q.done:
			if !q.abandoned {
				return q.now, q.err
			}
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// join returns the next question, and the running one, which must end before the next is asked (nil: none runs). If
// leads is true, the caller must ask the question; otherwise another caller does.
func (p *presence) join() (q, before *question, leads bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next == nil {
		p.next, leads = &question{done: make(chan struct{})}, true
	}
	return p.next, p.running, leads
}

func (p *presence) lead(ctx context.Context, q, before *question, do func(context.Context) (string, error)) (string, error) {
	if before != nil {
		select {
		case <-before.done:
		case <-ctx.Done():
		}
	}
	p.mu.Lock()
	p.next, p.running = nil, q
	p.mu.Unlock()
	q.now, q.err = do(ctx)
	q.abandoned = ctx.Err() != nil
	close(q.done)
	return q.now, q.err
}
