// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package backoff

import (
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Doubling returns delays: its Step returns first, then twice the delay before, at most limit. It is not safe for
// concurrent use. A copy of it continues on its own.
func Doubling(first, limit time.Duration) wait.Backoff {
	return wait.Backoff{Duration: min(first, limit), Factor: 2, Cap: limit, Steps: math.MaxInt}
}

// After returns the delay of Doubling after that number of failures in a row, which is at least one.
func After(failures int, first, limit time.Duration) time.Duration {
	delays := Doubling(first, limit)
	for range min(failures, 64) - 1 {
		delays.Step()
	}
	return delays.Step()
}
