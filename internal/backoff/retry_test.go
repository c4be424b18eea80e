// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package backoff

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRetryEndsWithASuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, attempts, failures := time.Now(), 0, []time.Duration(nil)
		broken := errors.New("broken")
		ok := Retry(t.Context(), Doubling(time.Second, 3*time.Second), func(context.Context) error {
			attempts++
			if attempts < 5 {
				return broken
			}
			return nil
		}, func(err error, delay time.Duration) {
			require.Equal(t, broken, err)
			failures = append(failures, delay)
		})
		require.True(t, ok)
		require.Equal(t, []time.Duration{time.Second, 2 * time.Second, 3 * time.Second, 3 * time.Second}, failures)
		require.Equal(t, 9*time.Second, time.Since(begun))
	})
}

func TestRetryEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		begun, attempts := time.Now(), 0
		require.False(t, Retry(ctx, Doubling(2*time.Second, 2*time.Second), func(context.Context) error {
			attempts++
			return errors.New("broken")
		}, nil))
		require.Equal(t, 3, attempts)
		require.Equal(t, 5*time.Second, time.Since(begun))

		require.False(t, Retry(ctx, Doubling(time.Second, time.Second), func(context.Context) error { return errors.New("broken") },
			func(error, time.Duration) { t.Error("no attempt follows, so no delay is reported") }))
	})
}
