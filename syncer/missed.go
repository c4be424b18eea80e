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

// missed remembers the reconciles that could not decide, because a cache was stale or the lease was lost. It queues
// them again when they may decide. Otherwise the syncer would forget an object that is in no cache by then.
type missed struct {
	mu     sync.Mutex
	queued map[string]bool
}

// check calls fresh and returns its error. If there is an error, it remembers the queue key of the reconcile.
func (m *missed) check(queued string, fresh func() error) error {
	if fresh() == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	// The caches may have become fresh since the first call. Under the lock, requeue cannot run between the call
	// of fresh and the write of queued.
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

// putOff returns the result of a reconcile that may not decide because of err. The result is no error, since the
// reconcile is queued again when it may decide. In a dry run it is not queued again, so putOff returns an error.
func (s *Syncer) putOff(err error) (time.Duration, error) {
	if s.dry {
		return 0, fmt.Errorf("%w: %w", errNotFresh, err)
	}
	return 0, nil
}
