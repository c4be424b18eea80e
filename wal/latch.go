// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"cmp"
	"fmt"
	"sync"
)

// latch closes a File permanently after a failure that leaves the state of the file unknown.
type latch struct {
	mu      sync.Mutex
	failure error
}

// set makes every later call of the File fail. The latch keeps only the first err.
func (l *latch) set(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failure = cmp.Or(l.failure, err)
}

// refusal returns the error with which calls fail after set, or nil before set.
func (l *latch) refusal() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failure == nil {
		return nil
	}
	return fmt.Errorf("%w after a failure: %w", ErrClosed, l.failure)
}
