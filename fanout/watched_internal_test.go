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

// Entries that other coordinators have ended are dropped. An entry that does not change is
// watched for one lease, however rarely it is read.
func TestWatchedEntriesAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &Coordinator{
			opts: Options{LeaseTimeout: 15 * time.Second}, log: waltest.NewSharedMemory(), holder: "me",
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

// The stored start of another coordinator's entry is from that host's clock, so idle counts
// from the first read here.
func TestIdleEntriesOfOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &Coordinator{
			opts: Options{LeaseTimeout: 15 * time.Second, Identity: "me"}, log: waltest.NewSharedMemory(), holder: "me/1",
			nothing: map[string]watched{},
		}
		of := func(id, coordinator string, began time.Duration) wal.Entry {
			return wal.Entry{ID: id, Began: time.Now().Add(began), Data: []byte(`{"Operation":{"Coordinator":"` + coordinator + `"}}`)}
		}
		slow, fast, own := of("slow", "them", -time.Hour), of("fast", "them", time.Hour), of("own", "me", -time.Hour)
		require.Zero(t, c.idle(slow))
		require.Zero(t, c.idle(fast))
		require.Equal(t, time.Hour, c.idle(own))
		time.Sleep(time.Minute)
		require.Equal(t, time.Minute, c.idle(slow))
		require.Equal(t, time.Minute, c.idle(fast))
		c.unwatch()
		require.Len(t, c.nothing, 2)
		time.Sleep(time.Minute)
		c.unwatch()
		require.Empty(t, c.nothing, "others have ended it")
	})
}
