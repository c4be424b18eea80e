// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Callers share requests, and each gets the answer of a request that began after it had asked.
func TestPresenceIsAskedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, requests := &presence{}, 0
		began := time.Now()
		do := func(context.Context) (string, error) {
			requests++
			at := time.Since(began)
			time.Sleep(time.Second)
			return strconv.FormatInt(int64(at), 10), nil
		}
		var callers sync.WaitGroup
		for i := range 100 {
			callers.Go(func() {
				time.Sleep(time.Duration(i) * 50 * time.Millisecond)
				asked := time.Since(began)
				now, err := p.ask(t.Context(), do)
				require.NoError(t, err)
				at, err := strconv.ParseInt(now, 10, 64)
				require.NoError(t, err)
				require.GreaterOrEqual(t, at, int64(asked))
				require.LessOrEqual(t, time.Since(began)-asked, 2*time.Second)
			})
		}
		callers.Wait()
		require.LessOrEqual(t, requests, 7)
	})
}

// A caller that gives up does not fail the others.
func TestPresenceSurvivesACallerThatGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &presence{}
		do := func(ctx context.Context) (string, error) {
			select {
			case <-time.After(time.Second):
				return "7", nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		}
		var callers sync.WaitGroup
		defer callers.Wait()
		for range 3 {
			impatient, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			callers.Go(func() {
				defer cancel()
				_, err := p.ask(impatient, do)
				require.ErrorIs(t, err, context.DeadlineExceeded)
			})
			synctest.Wait()
		}
		now, err := p.ask(t.Context(), do)
		require.NoError(t, err)
		require.Equal(t, "7", now)
	})
}
