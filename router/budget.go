// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/atoll-dev/atoll/region"
)

// ErrBusy means that a request was not sent because its region's Budget is used up: Budget.Waiting requests already
// wait or, for a stream, Budget.Streams streams are already open. Retry with backoff, close streams, or raise the
// Budget.
var ErrBusy = errors.New("the budget of the region is used up")

// Budget limits the requests of all Clients of one region together, so that a flood or outage of one region does not
// slow the others. The zero value of a field means its default. A negative number means no limit; Burst may be
// negative only if QPS is negative.
type Budget struct {
	QPS      float32 // sustained requests per second; zero: 50
	Burst    int     // requests that may start at once after a pause; zero: 100
	InFlight int     // concurrent requests, until their response is read; zero: 100
	Waiting  int     // requests that wait for QPS or InFlight; zero: 1,000. More are refused with ErrBusy
	Streams  int     // open long-running requests: watches, logs, upgraded streams, requests through a proxy subresource; zero: 1,000. More are refused with ErrBusy
}

func (b *Budget) complete() error {
	if b.QPS == 0 {
		b.QPS = 50
	}
	for field, zero := range map[*int]int{&b.Burst: 100, &b.InFlight: 100, &b.Waiting: 1000, &b.Streams: 1000} {
		if *field == 0 {
			*field = zero
		}
	}
	if b.QPS > 0 && b.Burst < 0 {
		return errors.New("router: Options.Budget.Burst is negative; for no limit, set QPS to a negative number")
	}
	return nil
}

// budget holds the Budget of one region and counts the requests and streams that use it at present.
type budget struct {
	key      region.Key
	limits   Budget
	observer *Observer
	rate     flowcontrol.RateLimiter // nil: no limit
	places   *semaphore.Weighted     // nil: no limit
	inFlight atomic.Int64
	waiting  atomic.Int64
	streams  atomic.Int64
}

func newBudget(k region.Key, opts Options) *budget {
	b := &budget{key: k, limits: opts.Budget, observer: opts.Observer}
	if b.limits.QPS > 0 {
		b.rate = flowcontrol.NewTokenBucketRateLimiter(b.limits.QPS, b.limits.Burst)
	}
	if b.limits.InFlight > 0 {
		b.places = semaphore.NewWeighted(int64(b.limits.InFlight))
	}
	return b
}

// take waits for one of the Budget.InFlight places, then for the rate limit Budget.QPS. The caller must call give
// after the request has ended, so that the place is free for another request. Further calls of give do nothing.
func (b *budget) take(ctx context.Context) (give func(), err error) {
	if !b.tryTake() {
		if err := b.wait(ctx); err != nil {
			return nil, err
		}
	}
	b.inFlight.Add(1)
	return sync.OnceFunc(func() {
		b.inFlight.Add(-1)
		if b.places != nil {
			b.places.Release(1)
		}
	}), nil
}

// tryTake takes a place and a token of the rate limiter without waiting, and reports whether it got them. It returns
// false while other requests wait, so that a new request does not overtake them.
func (b *budget) tryTake() bool {
	if b.waiting.Load() > 0 || b.places != nil && !b.places.TryAcquire(1) {
		return false
	}
	if b.rate == nil || b.rate.TryAccept() {
		return true
	}
	if b.places != nil {
		b.places.Release(1)
	}
	return false
}

func (b *budget) wait(ctx context.Context) (err error) {
	start := time.Now()
	defer func() { b.observer.waited(ctx, WaitEvent{Region: b.key, Elapsed: time.Since(start), Err: err}) }()
	if n := b.waiting.Add(1); b.limits.Waiting >= 0 && n > int64(b.limits.Waiting) {
		b.waiting.Add(-1)
		return fmt.Errorf("%w: %d requests wait, %d are under way", ErrBusy, n-1, b.inFlight.Load())
	}
	defer b.waiting.Add(-1)
	if b.places != nil {
		if err := b.places.Acquire(ctx, 1); err != nil {
			return fmt.Errorf("waiting for the region's budget: %w", err)
		}
	}
	if b.rate == nil {
		return nil
	}
	if err := b.rate.Wait(ctx); err != nil {
		if b.places != nil {
			b.places.Release(1)
		}
		if ctx.Err() == nil {
			err = fmt.Errorf("%w: %w", context.DeadlineExceeded, err) // ctx would end before the rate limit allows the request
		}
		return fmt.Errorf("waiting for the region's budget: %w", err)
	}
	return nil
}

// open counts a stream as open, or returns ErrBusy if Budget.Streams streams are open already. The caller must call
// end after the stream has ended; further calls of end do nothing.
func (b *budget) open(ctx context.Context) (end func(), err error) {
	if n := b.streams.Add(1); b.limits.Streams >= 0 && n > int64(b.limits.Streams) {
		b.streams.Add(-1)
		err := fmt.Errorf("%w: %d streams are open", ErrBusy, n-1)
		b.observer.waited(ctx, WaitEvent{Region: b.key, Err: err})
		return nil, err
	}
	return sync.OnceFunc(func() { b.streams.Add(-1) }), nil
}

// countedBody is the body of a response. It calls give when a Read returns an error, io.EOF included, and when the
// body is closed. give frees the place that the request takes in its region's Budget, in flight or among the streams.
type countedBody struct {
	io.ReadCloser
	give func()
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.give()
	}
	return n, err
}

func (b *countedBody) Close() error {
	defer b.give()
	return b.ReadCloser.Close()
}
