// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// missed is what the queue was asked for while copies were not fresh. It is asked for again when they are: what no copy
// has then, nobody else would ask for.
type missed struct {
	mu     sync.Mutex
	queued map[string]bool
}

// stale returns fresh's error, and remembers queued then.
func (m *missed) stale(queued string, fresh func() error) error {
	if fresh() == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	// Asked again under the lock: who takes what was missed after the copies have become fresh finds it here.
	err := fresh()
	if err != nil {
		if m.queued == nil {
			m.queued = map[string]bool{}
		}
		m.queued[queued] = true
	}
	return err
}

func (m *missed) take() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	queued := slices.Collect(maps.Keys(m.queued))
	m.queued = nil
	return queued
}

var errNotFresh = errors.New("a copy is not up to date")

// putOff is what a pass returns that cannot be made because a copy is not fresh: flows asks for it again. A dry run is asked
// for only once, so it says so.
func (s *Syncer) putOff(err error) (time.Duration, error) {
	if s.dry {
		return 0, fmt.Errorf("%w: %w", errNotFresh, err)
	}
	return 0, nil
}
