// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"iter"
	"sync/atomic"
)

// toggled is a Shard that owns nothing until own is called.
type toggled struct {
	owned   atomic.Bool
	changed chan struct{}
}

func (s *toggled) own() {
	s.owned.Store(true)
	close(s.changed)
}

func (s *toggled) Owns(string) bool { return s.owned.Load() }

func (s *toggled) Watch(ctx context.Context) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		select {
		case <-s.changed:
			yield(1)
		case <-ctx.Done():
		}
	}
}
