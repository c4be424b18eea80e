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

// QueueOptions adjust a Queue. The zero value works.
type QueueOptions struct {
	// Workers is how many keys are worked on at once; zero: 8.
	Workers int
	// MinBackoff is waited after a key's first failure, twice as long after each further one, up to MaxBackoff, each time
	// up to a fifth longer at random; zero: 500 ms and 1 minute.
	MinBackoff, MaxBackoff time.Duration
}

// ErrBehind is the error of work that a write has shown to be based on an old copy. It is no failure and not logged: the
// event that ends it is on the way. Until then the key runs again after a back-off, since a watch may be late for minutes.
var ErrBehind = errors.New("the copy is behind")

// Queue runs work for keys: one worker per key at a time; a key that was added while it was worked on runs again;
// failures back off. It is safe for concurrent use.
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

// alarm adds a key at its time.
type alarm struct {
	at    time.Time
	timer *time.Timer
}

// NewQueue makes an empty queue. It starts nothing; see Start.
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
		// The queue of client-go that delays and counts has goroutines of its own, which nobody can wait for.
		keys:     workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[string]{Queue: o}),
		failures: workqueue.NewTypedItemExponentialFailureRateLimiter[string](opts.MinBackoff, opts.MaxBackoff),
		later:    map[string]*alarm{},
	}
}

// Add asks for work on key, at once. It does not block. A key that is waiting already is worked on once.
func (q *Queue) Add(key string) { q.keys.Add(key) }

// AddBehind asks for work on key when there are no keys that were asked for otherwise: when everything is looked at again,
// what has just changed need not wait for it. It does not block.
func (q *Queue) AddBehind(key string) { q.order.put(key, q.keys.Add) }

// AddAfter asks for work on key after d. Of several, the earliest counts. It does not block.
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

// Cancel drops what AddAfter has asked for and is not due yet. It does not block.
func (q *Queue) Cancel(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if a := q.later[key]; a != nil {
		a.timer.Stop()
		delete(q.later, key)
	}
}

// Len is how many keys wait for a worker, those that were asked for later not included.
func (q *Queue) Len() int { return q.keys.Len() }

// Start works on keys until ctx ends, waits for its workers, then returns nil. An error of work is logged, unless it is
// ErrBehind, and the key runs again after a back-off; without one it runs again after the returned time, if that is not
// zero. Keys that still wait in the end are dropped. Call it once.
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
			logging.From(ctx).Error(err, "Failed, tries again", "key", key, "after", wait.Round(time.Millisecond).String())
		}
		q.AddAfter(key, wait)
	default:
		q.failures.Forget(key)
		if again > 0 {
			q.AddAfter(key, again)
		}
	}
}
