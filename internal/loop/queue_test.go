// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/internal/loop"
)

// run lets q call work until the test calls stop.
func run(t *testing.T, q *loop.Queue, work func(ctx context.Context, key string) (time.Duration, error)) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- q.Start(ctx, work) }()
	return func() {
		cancel()
		require.NoError(t, <-done)
	}
}

func TestQueueWorksOnAKeyOnceAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := loop.NewQueue(loop.QueueOptions{})
		q.Add("a") // before the start
		q.Add("a")
		var busy, runs atomic.Int32
		stop := run(t, q, func(_ context.Context, _ string) (time.Duration, error) {
			require.EqualValues(t, 1, busy.Add(1))
			time.Sleep(time.Second)
			busy.Add(-1)
			runs.Add(1)
			return 0, nil
		})
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		q.Add("a") // while a worker has it
		q.Add("a")
		time.Sleep(time.Hour)
		synctest.Wait()
		require.EqualValues(t, 2, runs.Load())
		stop()
		q.Add("a")
		q.AddAfter("a", time.Second)
		time.Sleep(time.Hour)
		synctest.Wait()
		require.EqualValues(t, 2, runs.Load())
		require.ErrorContains(t, q.Start(t.Context(), nil), "twice")
	})
}

func TestQueueWorksOnManyKeysAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := loop.NewQueue(loop.QueueOptions{Workers: 5})
		var busy, most atomic.Int32
		var done sync.WaitGroup
		done.Add(20)
		stop := run(t, q, func(context.Context, string) (time.Duration, error) {
			defer done.Done()
			now := busy.Add(1)
			for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
			}
			time.Sleep(time.Second)
			busy.Add(-1)
			return 0, nil
		})
		begun := time.Now()
		for i := range 20 {
			q.Add(fmt.Sprint(i))
		}
		done.Wait()
		require.Equal(t, 4*time.Second, time.Since(begun))
		require.EqualValues(t, 5, most.Load())
		stop()
	})
}

func TestQueueBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := loop.NewQueue(loop.QueueOptions{MinBackoff: time.Second, MaxBackoff: 8 * time.Second})
		var waits []time.Duration
		last := time.Now()
		stop := run(t, q, func(context.Context, string) (time.Duration, error) {
			waits = append(waits, time.Since(last))
			last = time.Now()
			if len(waits) == 7 {
				return 0, nil
			}
			return time.Nanosecond, errors.New("no")
		})
		q.Add("a")
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		require.Len(t, waits, 7, "not again after success")
		for i, least := range []time.Duration{0, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 8 * time.Second, 8 * time.Second} {
			require.GreaterOrEqual(t, waits[i], least)
			require.LessOrEqual(t, waits[i], least+least/5)
		}
		waits = nil
		last = time.Now()
		q.Add("a")
		time.Sleep(1300 * time.Millisecond)
		synctest.Wait()
		require.Len(t, waits, 2, "success is a new beginning")
		stop()
	})
}

func TestQueueRunsAgainWhenAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := loop.NewQueue(loop.QueueOptions{})
		var at []time.Duration
		begun := time.Now()
		stop := run(t, q, func(_ context.Context, key string) (time.Duration, error) {
			at = append(at, time.Since(begun))
			if key == "a" && len(at) < 3 {
				return 10 * time.Second, nil
			}
			return 0, nil
		})
		q.Add("a")
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, []time.Duration{0, 10 * time.Second, 20 * time.Second}, at)

		at, begun = nil, time.Now()
		q.AddAfter("b", 30*time.Second)
		q.AddAfter("b", 10*time.Second)
		q.AddAfter("b", 20*time.Second)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, []time.Duration{10 * time.Second}, at, "the earliest counts")
		stop()
	})
}

func TestQueueDropsWhatWaitsInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := loop.NewQueue(loop.QueueOptions{Workers: 1})
		runs := 0
		stop := run(t, q, func(ctx context.Context, _ string) (time.Duration, error) {
			runs++
			<-ctx.Done()
			return 0, ctx.Err()
		})
		for i := range 10 {
			q.Add(fmt.Sprint(i))
		}
		q.AddAfter("later", time.Second)
		synctest.Wait()
		require.Equal(t, 9, q.Len())
		stop()
		require.Equal(t, 1, runs)
	})
}

// A key of AddBehind runs once, after all other keys. Add of the same key moves it before the keys
// of AddBehind.
func TestQueueWorksOnWhatIsBehindLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := loop.NewQueue(loop.QueueOptions{Workers: 1})
		for _, key := range []string{"a", "b", "c", "d"} {
			q.AddBehind(key)
		}
		q.Add("x")
		q.Add("c")
		q.AddBehind("x")
		require.Equal(t, 5, q.Len())
		var worked []string
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- q.Start(ctx, func(_ context.Context, key string) (time.Duration, error) {
				worked = append(worked, key)
				if len(worked) == 3 {
					q.AddBehind("a") // while a worker has it: it runs again
					q.Add("y")
				}
				return 0, nil
			})
		}()
		synctest.Wait()
		require.Equal(t, []string{"x", "c", "a", "y", "a", "b", "d"}, worked)
		require.Zero(t, q.Len())
		cancel()
		require.NoError(t, <-done)
	})
}

// While work returns ErrBehind, the Queue retries the key with backoff and logs nothing. If Add
// queues the key meanwhile, the Queue works on it at once.
func TestQueueBacksOffWhileACopyIsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := loop.NewQueue(loop.QueueOptions{})
		var lines, runs atomic.Int32
		ctx, cancel := context.WithCancel(logr.NewContext(t.Context(), funcr.New(func(string, string) { lines.Add(1) }, funcr.Options{})))
		done := make(chan error, 1)
		go func() {
			done <- q.Start(ctx, func(context.Context, string) (time.Duration, error) {
				runs.Add(1)
				return 0, fmt.Errorf("write: %w", loop.ErrBehind)
			})
		}()
		q.Add("a")
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		require.Greater(t, runs.Load(), int32(8))
		require.Less(t, runs.Load(), int32(20))
		q.Add("a") // its event arrives
		before := runs.Load()
		synctest.Wait()
		require.Equal(t, before+1, runs.Load(), "at once")
		require.Zero(t, lines.Load())
		cancel()
		require.NoError(t, <-done)
	})
}

func TestQueueCancels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := loop.NewQueue(loop.QueueOptions{})
		var runs atomic.Int32
		stop := run(t, q, func(context.Context, string) (time.Duration, error) {
			runs.Add(1)
			return 0, nil
		})
		q.AddAfter("a", time.Minute)
		q.AddAfter("b", time.Minute)
		q.Cancel("a")
		q.Cancel("c")
		time.Sleep(time.Hour)
		synctest.Wait()
		require.EqualValues(t, 1, runs.Load())
		q.AddAfter("a", time.Minute)
		time.Sleep(time.Hour)
		synctest.Wait()
		require.EqualValues(t, 2, runs.Load())
		stop()
	})
}
