// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"sync"

	"github.com/atoll-dev/atoll/router/proxy"
)

// streams are the long-running requests under way. The zero value works.
type streams struct {
	mu    sync.Mutex
	ended bool
	next  int
	open  map[int]context.CancelCauseFunc
}

// begin returns a context that ends when the gateway drains. The caller calls end when the request has ended.
func (s *streams) begin(parent context.Context) (ctx context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(parent)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		cancel(proxy.ErrDraining)
		return ctx, func() {}
	}
	if s.open == nil {
		s.open = map[int]context.CancelCauseFunc{}
	}
	s.next++
	id := s.next
	s.open[id] = cancel
	return ctx, func() {
		s.mu.Lock()
		delete(s.open, id)
		s.mu.Unlock()
		cancel(nil)
	}
}

// drain ends all streams, and those that begin later.
func (s *streams) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for _, cancel := range s.open {
		cancel(proxy.ErrDraining)
	}
}
