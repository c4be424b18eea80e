// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"context"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/wal"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// backlogs holds the last BacklogEvent, and the number of these events.
type backlogs struct {
	mu    sync.Mutex
	last  fanout.BacklogEvent
	count int
}

func (b *backlogs) observer() *fanout.Observer {
	return &fanout.Observer{Backlog: func(_ context.Context, e fanout.BacklogEvent) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.last = e
		b.count++
	}}
}

func (b *backlogs) get() (fanout.BacklogEvent, int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last, b.count
}

// While a removal waits for the finalizer of another controller, Start reports it as the oldest open operation. After the
// removal has ended, none is open.
func TestBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRing(t)
		var seen backlogs
		c := coordinator(t, r, waltest.NewMemory(), fanout.Options{SweepEvery: time.Minute, LeaseTimeout: 15 * time.Second, Observer: seen.observer()})
		acme := addAccount(t, c)
		_, err := c.Add(t.Context(), newServiceCluster(acme, "db"), fanout.AddOptions{Target: "us-east", Durable: true})
		require.NoError(t, err)

		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { require.NoError(t, c.Start(ctx)) })
		time.Sleep(time.Second)
		none, _ := seen.get()
		require.Equal(t, fanout.BacklogEvent{}, none)

		release := hold(t, clusters(t, r, "us-east", acme), "db")
		began := time.Now()
		op, err := c.Remove(within(t, 3*time.Second), serviceClusters, key(acme, "db"), fanout.RemoveOptions{})
		require.NoError(t, err)
		require.Equal(t, fanout.Committed, op.State)
		time.Sleep(20 * time.Minute)
		e, count := seen.get()
		require.Equal(t, 1, e.Open)
		require.Equal(t, op.ID, e.Operation)
		require.Equal(t, began.Unix(), e.Oldest.Unix())
		require.Greater(t, count, 10)

		release()
		time.Sleep(3 * time.Minute)
		none, _ = seen.get()
		require.Equal(t, fanout.BacklogEvent{}, none)
		stop()
		running.Wait()
	})
}

// unreadable is a log whose open entries cannot be read.
type unreadable struct{ wal.Log }

func (unreadable) Open(context.Context) iter.Seq2[wal.Entry, error] {
	return func(yield func(wal.Entry, error) bool) { yield(wal.Entry{}, wal.ErrClosed) }
}

// A log that cannot be read is not reported as a log without open operations.
func TestBacklogOfAnUnreadableLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen backlogs
		c := coordinator(t, newRing(t), unreadable{waltest.NewMemory()}, fanout.Options{SweepEvery: time.Minute, Observer: seen.observer()})
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { require.NoError(t, c.Start(ctx)) })
		time.Sleep(5 * time.Minute)
		stop()
		running.Wait()
		_, count := seen.get()
		require.Zero(t, count)
	})
}
