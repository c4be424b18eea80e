// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/wal"
)

// What others have ended is not remembered, and what stands still is watched for one lease, however rarely.
func TestWatchedEntriesAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &Coordinator{
			opts: Options{LeaseTimeout: 15 * time.Second}, decider: struct{ wal.Decider }{}, holder: "me",
			watched: map[string]watched{}, rest: map[string]time.Time{},
		}
		still := wal.Entry{ID: "still", Owner: "them", Version: "1"}
		for i := range 100 {
			require.False(t, c.lapsed(wal.Entry{ID: fmt.Sprint(i), Owner: "them", Version: "1"}))
			c.postpone(fmt.Sprint(i))
		}
		require.False(t, c.lapsed(still))
		time.Sleep(14 * time.Second)
		require.False(t, c.lapsed(still))
		c.unwatch()
		require.Len(t, c.watched, 101)
		require.Len(t, c.rest, 100)
		time.Sleep(time.Hour)
		require.True(t, c.lapsed(still))
		c.unwatch()
		require.Len(t, c.watched, 1)
		require.Empty(t, c.rest)
		still.Version = "2"
		require.False(t, c.lapsed(still))
	})
}
