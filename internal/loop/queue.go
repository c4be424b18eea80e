// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/atoll-dev/atoll/internal/logging"
)

// QueueOptions configure a Queue. The zero value has useful defaults.
type QueueOptions struct {
	// Workers is the number of concurrent workers; zero means 8.
	Workers int
	// MinBackoff is the retry delay after a key's first failure. The delay doubles with each further
	// failure, up to MaxBackoff, plus up to a fifth at random. Zero means 500 ms and 1 minute.
	MinBackoff, MaxBackoff time.Duration
}

// ErrBehind is returned by work if a write showed that the cache is stale. It is not logged as a
// failure: the event that updates the cache will add the key. Until then the key is retried with
// backoff, since a watch may be late for minutes.
var ErrBehind = errors.New("the cache is stale")

// Queue runs work for keys: one worker per key at a time. A key that is added while it is worked on
// runs again, and failures are retried with backoff. It is safe for concurrent use.
type Queue struct {
	opts     QueueOptions
	order    *order
	keys     workqueue.TypedInterface[string]
	failures workqueue.TypedRateLimiter[string]
	started  atomic.Bool

	mu    sync.Mutex
	over  bool
	later map[string]*alarm
}

// alarm adds a key at a later time.
type alarm struct {
	at    time.Time
	timer *time.Timer
}

// NewQueue returns an empty queue. It starts no goroutine; see Start.
func NewQueue(opts QueueOptions) *Queue {
	if opts.Workers <= 0 {
		opts.Workers = 8
	}
	if opts.MinBackoff <= 0 {
		opts.MinBackoff = 500 * time.Millisecond
	}
	if opts.MaxBackoff <= 0 {
		opts.MaxBackoff = time.Minute
	}
	o := newOrder()
	return &Queue{
		opts: opts, order: o,
		// client-go's delaying and rate-limiting queue does not fit: a caller cannot wait for the
		// end of its goroutines.
		keys:     workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[string]{Queue: o}),
		failures: workqueue.NewTypedItemExponentialFailureRateLimiter[string](opts.MinBackoff, opts.MaxBackoff),
		later:    map[string]*alarm{},
	}
}

// Add queues key. It does not block. A key that is already in the queue runs once.
func (q *Queue) Add(key string) { q.keys.Add(key) }

// AddBehind queues key after all keys of Add. So a resync of all keys does not delay keys that have
// just changed. It does not block.
func (q *Queue) AddBehind(key string) { q.order.put(key, q.keys.Add) }

// AddAfter queues key after d. Of several calls, the earliest time counts. It does not block.
func (q *Queue) AddAfter(key string, d time.Duration) {
	if d <= 0 {
		q.Add(key)
		return
	}
	at := time.Now().Add(d)
	q.mu.Lock()
	defer q.mu.Unlock()
	before := q.later[key]
	if q.over || before != nil && !before.at.After(at) {
		return
	}
	if before != nil {
		before.timer.Stop()
	}
	a := &alarm{at: at}
	a.timer = time.AfterFunc(d, func() {
		q.mu.Lock()
		due := q.later[key] == a
		if due {
			delete(q.later, key)
		}
		q.mu.Unlock()
		if due {
			q.Add(key)
		}
	})
	q.later[key] = a
}

// Cancel drops a pending AddAfter of key. It does not block.
func (q *Queue) Cancel(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if a := q.later[key]; a != nil {
		a.timer.Stop()
		delete(q.later, key)
	}
}

// Len returns the number of keys that wait for a worker. It does not count keys that AddAfter will
// add later.
func (q *Queue) Len() int { return q.keys.Len() }

// Start works on keys until ctx ends, waits for its workers, and returns nil. It drops the keys
// that are still queued. If work returns an error, the key is retried with backoff, and the error
// is logged unless it is ErrBehind. Otherwise, if again is not zero, the key runs again after that
// time. Call it once.
func (q *Queue) Start(ctx context.Context, work func(ctx context.Context, key string) (again time.Duration, err error)) error {
	if q.started.Swap(true) {
		return errors.New("queue: Start was called twice")
	}
	var workers sync.WaitGroup
	for range q.opts.Workers {
		workers.Go(func() {
			for {
				key, over := q.keys.Get()
				if over {
					return
				}
				q.run(ctx, key, work)
			}
		})
	}
	<-ctx.Done()
	q.mu.Lock()
	q.over = true
	for _, a := range q.later {
		a.timer.Stop()
	}
	clear(q.later)
	q.mu.Unlock()
	q.keys.ShutDown()
	workers.Wait()
	return nil
}

func (q *Queue) run(ctx context.Context, key string, work func(ctx context.Context, key string) (time.Duration, error)) {
	defer q.keys.Done(key)
	if ctx.Err() != nil {
		return
	}
	again, err := work(ctx, key)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		wait := q.failures.When(key)
		wait += rand.N(wait/5 + 1)
		if !errors.Is(err, ErrBehind) {
			logging.From(ctx).Error(err, "Failed, will retry", "key", key, "after", wait.Round(time.Millisecond).String())
		}
		q.AddAfter(key, wait)
	default:
		q.failures.Forget(key)
		if again > 0 {
			q.AddAfter(key, again)
		}
	}
}
