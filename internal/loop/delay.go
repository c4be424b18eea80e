// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package loop

import "time"

// Sooner returns the shorter of two delays until a key is to be reconciled again. A delay of zero or less means that no
// reconcile is needed; if both delays are zero or less, Sooner returns zero.
func Sooner(a, b time.Duration) time.Duration {
	if a <= 0 || b > 0 && b < a {
		return max(0, b)
	}
	return a
}
