// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Each correction is followed by a pause, twice as long as the previous one, up to maxPause. After
// a longer time without corrections the pause is short again.
func TestCorrectionsPauseEverLonger(t *testing.T) {
	var told statementRecord
	now := noon
	var waits []time.Duration
	for range 11 {
		require.Zero(t, told.take(now))
		wait := told.take(now)
		waits = append(waits, wait)
		now = now.Add(wait)
	}
	want := []time.Duration{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300}
	for i := range want {
		require.Equal(t, want[i]*time.Second, waits[i], "%d", i)
	}
	now = now.Add(2 * maxPause)
	require.Zero(t, told.take(now))
	require.Equal(t, minPause, told.take(now))
}
