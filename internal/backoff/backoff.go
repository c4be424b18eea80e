// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package backoff

import (
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Doubling returns a Backoff whose Step returns first, then twice the previous delay, at most limit. The Backoff is not
// safe for concurrent use; a copy of it continues independently.
func Doubling(first, limit time.Duration) wait.Backoff {
	return wait.Backoff{Duration: min(first, limit), Factor: 2, Cap: limit, Steps: math.MaxInt}
}

// After returns the delay after the given number of failures in a row: first after one failure, and twice the delay
// after each further failure, at most limit. failures is at least one.
func After(failures int, first, limit time.Duration) time.Duration {
	delays := Doubling(first, limit)
	for range min(failures, 64) - 1 {
		delays.Step()
	}
	return delays.Step()
}
