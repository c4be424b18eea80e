// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package backoff_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/backoff"
)

func TestDelaysDoubleUpToTheLimit(t *testing.T) {
	for _, tc := range []struct {
		first, limit time.Duration
		want         []time.Duration
	}{
		{1, 10, []time.Duration{1, 2, 4, 8, 10, 10}},
		{3, 12, []time.Duration{3, 6, 12, 12}},
		{5, 5, []time.Duration{5, 5}},
		{7, 5, []time.Duration{5, 5}},
		{0, 5, []time.Duration{0, 0}},
	} {
		delays := backoff.Doubling(tc.first, tc.limit)
		for i, want := range tc.want {
			require.Equal(t, want, delays.Step(), "delay %d from %d to %d", i, tc.first, tc.limit)
			require.Equal(t, want, backoff.After(i+1, tc.first, tc.limit), "after %d failures", i+1)
		}
	}
	require.Equal(t, time.Minute, backoff.After(math.MaxInt, time.Nanosecond, time.Minute))
	require.Equal(t, 100*365*24*time.Hour, backoff.After(math.MaxInt, time.Nanosecond, 100*365*24*time.Hour))
}

func TestACopyContinuesOnItsOwn(t *testing.T) {
	fresh := backoff.Doubling(1, 100)
	used := fresh
	used.Step()
	require.Equal(t, time.Duration(2), used.Step())
	require.Equal(t, time.Duration(1), fresh.Step())
}
