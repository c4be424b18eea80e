// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/loop"
)

func TestBudget(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	b := loop.NewBudget(2, 5*time.Second)
	at := func(after time.Duration) time.Duration { return b.Take(now.Add(after)) }
	require.Zero(t, at(0))
	require.Zero(t, at(time.Second))
	require.Equal(t, 3*time.Second, at(2*time.Second), "what comes again comes 5 s after the first was taken")
	require.Equal(t, time.Second, at(4*time.Second), "to ask costs nothing")
	require.Zero(t, at(5*time.Second))
	require.Equal(t, 5*time.Second, at(5*time.Second))
	require.Zero(t, at(time.Hour))
	require.Zero(t, at(time.Hour))
	require.Equal(t, 5*time.Second, at(time.Hour), "at most the initial number is saved")
}
