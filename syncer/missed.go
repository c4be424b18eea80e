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

// missed remembers the reconciles that were queued while caches were stale, and queues them again when the caches are
// fresh. An object that is in no cache by then would otherwise be forgotten.
type missed struct {
	mu     sync.Mutex
	queued map[string]bool
}

// check returns the error of fresh, and remembers queued if there is an error.
func (m *missed) check(queued string, fresh func() error) error {
	if fresh() == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	// Checked again under the lock: requeue, which runs after the caches have become fresh, then finds queued.
	err := fresh()
	if err != nil {
		if m.queued == nil {
			m.queued = map[string]bool{}
		}
		m.queued[queued] = true
	}
	return err
}

// requeue queues all remembered reconciles again.
func (m *missed) requeue(add func(queued string)) {
	m.mu.Lock()
	queued := slices.Collect(maps.Keys(m.queued))
	m.queued = nil
	m.mu.Unlock()
	for _, q := range queued {
		add(q)
	}
}

var errNotFresh = errors.New("a cache is stale")

// putOff returns the result of a reconcile that may not decide because of err. It is queued again when it may. In a
// dry run it is not, so that it fails.
func (s *Syncer) putOff(err error) (time.Duration, error) {
	if s.dry {
		return 0, fmt.Errorf("%w: %w", errNotFresh, err)
	}
	return 0, nil
}
