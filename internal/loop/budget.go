// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package loop

import "time"

// Budget limits the writes for an object that changes repeatedly: size writes at once, then one per
// interval. It is not safe for concurrent use.
type Budget struct {
	size     int
	interval time.Duration
	left     int
	next     time.Time // time of the next additional write
}

// NewBudget allows size writes at once, then one in each interval.
func NewBudget(size int, interval time.Duration) Budget {
	return Budget{size: size, interval: interval, left: size}
}

// Take returns zero if a write is allowed now, and counts it. Otherwise it returns the time to
// wait.
func (b *Budget) Take(now time.Time) time.Duration {
	for b.left < b.size && !now.Before(b.next) {
		b.left++
		b.next = b.next.Add(b.interval)
	}
	if b.left == 0 {
		return b.next.Sub(now)
	}
	if b.left == b.size {
		b.next = now.Add(b.interval)
	}
	b.left--
	return 0
}
