// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/loop"
)

func TestSooner(t *testing.T) {
	for _, tc := range []struct{ a, b, want time.Duration }{
		{1, 2, 1}, {2, 1, 1}, {0, 2, 2}, {2, 0, 2}, {-1, 2, 2}, {2, -1, 2}, {0, 0, 0}, {-1, -1, 0}, {0, -1, 0}, {-1, 0, 0},
	} {
		require.Equal(t, tc.want, loop.Sooner(tc.a, tc.b), "%d and %d", tc.a, tc.b)
	}
}
