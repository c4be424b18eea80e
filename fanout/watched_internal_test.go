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
	"github.com/atoll-dev/atoll/wal/waltest"
)

// A coordinator stops watching the entries that other coordinators have ended. An entry that does
// not change lapses after one lease, however rarely the coordinator reads the entry.
func TestWatchedEntriesAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newEntries(&Options{LeaseTimeout: 15 * time.Second, Identity: "me"}, waltest.NewSharedMemory())
		still := wal.Entry{ID: "still", Owner: "them", Version: "1"}
		for i := range 100 {
			require.False(t, l.lapsed(wal.Entry{ID: fmt.Sprint(i), Owner: "them", Version: "1"}))
			l.postpone(fmt.Sprint(i))
		}
		require.False(t, l.lapsed(still))
		time.Sleep(14 * time.Second)
		require.False(t, l.lapsed(still))
		l.unwatch()
		require.Len(t, l.watched, 101)
		require.Len(t, l.retryAt, 100)
		time.Sleep(time.Hour)
		require.True(t, l.lapsed(still))
		l.unwatch()
		require.Len(t, l.watched, 1)
		require.Empty(t, l.retryAt)
		still.Version = "2"
		require.False(t, l.lapsed(still))
	})
}

// The stored start of another coordinator's entry comes from another host's clock. So idle counts
// from this coordinator's first read of the entry.
func TestIdleEntriesOfOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newEntries(&Options{LeaseTimeout: 15 * time.Second, Identity: "me"}, waltest.NewSharedMemory())
		of := func(id, coordinator string, began time.Duration) wal.Entry {
			return wal.Entry{ID: id, Began: time.Now().Add(began), Data: []byte(`{"Operation":{"Coordinator":"` + coordinator + `"}}`)}
		}
		slow, fast, own := of("slow", "them", -time.Hour), of("fast", "them", time.Hour), of("own", "me", -time.Hour)
		require.Zero(t, l.idle(slow))
		require.Zero(t, l.idle(fast))
		require.Equal(t, time.Hour, l.idle(own))
		time.Sleep(time.Minute)
		require.Equal(t, time.Minute, l.idle(slow))
		require.Equal(t, time.Minute, l.idle(fast))
		l.unwatch()
		require.Len(t, l.effectless, 2)
		time.Sleep(time.Minute)
		l.unwatch()
		require.Empty(t, l.effectless, "others have ended it")
	})
}
