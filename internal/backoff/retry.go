// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package backoff

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Sleep waits for d and returns true. It returns false if ctx ends first.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Retry calls attempt until attempt succeeds, and returns true. It returns false if ctx ends first.
// After each failure, unless ctx has ended, it calls failed with the delay before the next attempt.
// failed may be nil.
func Retry(ctx context.Context, delays wait.Backoff, attempt func(context.Context) error, failed func(err error, delay time.Duration)) bool {
	for {
		err := attempt(ctx)
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		delay := delays.Step()
		if failed != nil {
			failed(err, delay)
		}
		if !Sleep(ctx, delay) {
			return false
		}
	}
}
