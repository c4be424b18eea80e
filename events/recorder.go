// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
)

// Options configure a Recorder. The zero value works.
type Options struct {
	// Controller is the source component of the Events. Zero means "atoll".
	Controller string
	// Instance distinguishes replicas, such as the name of a Pod. It may be empty.
	Instance string
	// Burst is the number of different Events that may be written at once. After a burst the limit
	// is ten per second. Zero means 200.
	Burst int
	// Emit is called with each Event and the API server of its object. If it returns true it has taken the Event, and the
	// Recorder does not write it; the limits of the Recorder do not apply. It must return quickly, and may be called from
	// many goroutines. See controllerruntime.Emit. It may be nil.
	Emit func(api region.API, e Event) bool

	// Logger receives log lines. Zero: the logger of Start's context, else slog.Default. To log nothing, use
	// logr.FromSlogHandler(slog.DiscardHandler).
	Logger logr.Logger
}

// Recorder writes Events. Make one with New. Methods of a nil *Recorder may be called, and write
// nothing. A Recorder is safe for concurrent use.
type Recorder struct {
	opts    Options
	queue   *loop.Queue
	started atomic.Bool
	running atomic.Bool
	dropped atomic.Uint64

	mu     sync.Mutex
	series map[string]*series
	begun  int64     // number of series so far, which makes their names unique
	left   float64   // remaining burst
	filled time.Time // when left was last updated
	logged time.Time // when a dropped Event was last logged
}

// Type is Normal, or Warning for a problem.
type Type string

// These are the types of Kubernetes.
const (
	Normal  Type = "Normal"
	Warning Type = "Warning"
)

// Object is the object of an Event.
type Object struct {
	APIVersion, Kind, Namespace, Name string
	UID                               types.UID
}

// Event is an occurrence at an object.
type Event struct {
	About Object
	Type  Type
	// Reason is a word in UpperCamelCase. Events of one object with the same type and
	// reason are one series.
	Reason string
	// Message is a text for people.
	Message string
}

// series is one Event with its repetitions.
type series struct {
	api   region.API
	event Event
	name  string // of the Event object
	first time.Time
	last  time.Time
	count int64

	written int64     // part of count that was written
	at      time.Time // of the last write
}

const (
	// window is the time from the last repetition of an Event to the end of its series.
	window = 10 * time.Minute
	// interval is the minimum time between two writes of one series.
	interval = time.Minute
	// perSecond is the sustained rate of new series.
	perSecond = 10
)

// New returns a Recorder. It does no I/O; see Start.
func New(opts Options) *Recorder {
	opts.Controller = cmp.Or(opts.Controller, "atoll")
	if opts.Burst <= 0 {
		opts.Burst = 200
	}
	return &Recorder{
		opts: opts, queue: loop.NewQueue(loop.QueueOptions{}),
		series: map[string]*series{}, left: float64(opts.Burst),
	}
}

// Start writes the recorded Events until ctx ends, waits for its goroutines, then returns nil.
// Events that are recorded while it does not run are dropped. Call it once.
func (r *Recorder) Start(ctx context.Context) error {
	if r == nil {
		<-ctx.Done()
		return nil
	}
	if r.queue == nil {
		return errors.New("events: the Recorder was not made by New")
	}
	if r.started.Swap(true) {
		return errors.New("events: Start was called twice")
	}
	r.running.Store(true)
	defer r.running.Store(false)
	return r.queue.Start(logging.Into(ctx, r.opts.Logger, "events"), r.work)
}

// Dropped returns how many times an Event was not written, because the limits were exceeded, the
// peer was unknown or unhealthy, or the API server did not accept the Event.
func (r *Recorder) Dropped() uint64 {
	if r == nil {
		return 0
	}
	return r.dropped.Load()
}

// Record queues e to be written to api, the API server of its object. It does not block.
func (r *Recorder) Record(api region.API, e Event) {
	if r == nil || api == nil || !r.running.Load() || r.opts.Emit != nil && r.opts.Emit(api, e) {
		return
	}
	now := time.Now()
	key := strings.Join([]string{string(e.About.UID), e.About.Kind, e.About.Namespace, e.About.Name, string(e.Type), e.Reason}, "|")
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.series[key]
	if s == nil || now.Sub(s.last) > window {
		if !r.take(now) {
			r.dropped.Add(1)
			return
		}
		r.begun++
		s = &series{first: now, name: nameOf(e, now.UnixNano()+r.begun)}
		r.series[key] = s
	}
	s.api, s.event, s.last = api, e, now
	s.count++
	r.queue.Add(key)
}

// take reports whether the limits allow one more series now, and counts it.
func (r *Recorder) take(now time.Time) bool {
	if !r.filled.IsZero() {
		r.left = min(r.left+now.Sub(r.filled).Seconds()*perSecond, float64(r.opts.Burst))
	}
	r.filled = now
	if r.left < 1 {
		return false
	}
	r.left--
	return true
}

// work writes a series if a write is due, and deletes the series when it has ended.
func (r *Recorder) work(ctx context.Context, key string) (again time.Duration, _ error) {
	now := time.Now()
	r.mu.Lock()
	s := r.series[key]
	if s == nil {
		r.mu.Unlock()
		return 0, nil
	}
	seen := *s
	if seen.count == seen.written && now.Sub(seen.last) > window {
		delete(r.series, key)
	}
	r.mu.Unlock()
	switch {
	case seen.count == seen.written:
		return window, nil
	case seen.written > 0 && now.Sub(seen.at) < interval:
		return interval - now.Sub(seen.at), nil
	}
	err := r.write(ctx, &seen)
	if err != nil {
		r.dropped.Add(1)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.series[key] != s:
	case err != nil && seen.written == 0:
		delete(r.series, key) // the next Event begins a new series
		return 0, nil
	default:
		s.written, s.at = seen.count, now
	}
	return window, nil
}
