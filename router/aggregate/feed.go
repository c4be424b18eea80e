// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/atoll-dev/atoll/internal/backoff"
	"github.com/atoll-dev/atoll/region"
)

const (
	// watchTime is the requested duration of one watch of a region, plus or minus half of it. Each end of a watch
	// costs a list.
	watchTime = 30 * time.Minute
	// maxDelayFactor is the maximum delay between attempts, as a multiple of Options.Retry.
	maxDelayFactor = 50
)

// news is a message of a feed to its stream: an event, a bookmark or a state.
type news struct {
	feed   *feed
	kind   watch.EventType // Added, Modified, Deleted, Bookmark; empty: a state
	object *observed       // of an Added, Modified or Deleted event
	own    string          // the object's resourceVersion in its region
	at     string          // the source's position after this message; empty for an event within a repair
	stamp  uint64          // of the state at that position; without one, of the object, since its version may recur after a restore
	state  State           // OK once a list was delivered completely, or why a step failed
	err    error
	listed string // for a state, the kind of the objects
	lost   bool   // it is unknown which objects the consumer has: the consumer must list again
}

// feed delivers one source to a stream: the present state of the source, then its changes. It repairs
// interruptions, until its context ends. It runs in one goroutine.
//
// Each round begins a watch and lists the state at the version where that watch begins. It delivers the difference
// between this state and the one delivered before, and then the events of the watch. The watch must begin before
// the list, because a restore from a backup ends a region's watches. If the list came first and a restore followed,
// the watch would continue from the same number in another history, undetected.
type feed struct {
	api     *API
	q       query
	source  source
	encoder *encoder      // nil: decode the objects
	seed    uint64        // of the fingerprints
	ledger  *ledger       // used by the feed's goroutine only, until done is closed
	at      string        // the version to continue from; empty: the present version
	unknown bool          // the consumer holds the state at that version, and the ledger does not know it yet
	stamp   uint64        // of the state that the consumer's version covers; zero: unknown
	fresh   bool          // begin with the present state, and deliver only later changes
	kind    string        // of the objects, once known
	waits   time.Duration // limit for the start of an answer; doubled after each attempt without one
	out     chan<- news
	cancel  context.CancelFunc
	done    chan struct{}

	cache    *watchCache   // that the feed follows instead of the region; nil: none
	next     uint64        // the number of the cache's next message
	renewals chan struct{} // of the feed of a cache: requests to call behind; nil: not such a feed
	behind   func() bool   // reports whether the feed must begin anew at the present version

	// Only the stream's goroutine uses these fields.
	synced bool  // the initial state of the source was delivered
	noted  bool  // the stream's policy knows that the region has delivered
	state  State // of the last step
	err    error
}

// run runs rounds until ctx ends or a round returns errLost. The delay between rounds grows with each failure.
func (f *feed) run(ctx context.Context) {
	defer close(f.done)
	fresh := backoff.Doubling(f.api.opts.Retry, maxDelayFactor*f.api.opts.Retry)
	delays := fresh
	f.waits = f.api.opts.Answer
	for {
		recovered := f.source.recovered()
		lasted, err := f.step(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, errRecovered), errors.Is(err, errRenewed):
			delays = fresh
			continue
		case errors.Is(err, errLost):
			f.send(ctx, news{state: Expired, err: err, lost: true})
			return
		case err != nil:
			f.send(ctx, news{state: stateOf(err), err: err})
		}
		if lasted > f.api.opts.Retry {
			if delays = fresh; err == nil {
				continue
			}
		}
		wait := delays.Step()
		if back := pause(ctx, wait/2+rand.N(wait/2+1), recovered); back {
			delays = fresh
		}
	}
}

// end stops the feed and waits for it.
func (f *feed) end() {
	f.cancel()
	<-f.done
}

// errLost means that events cannot bring the consumer's state up to date.
var errLost = errors.New("the state delivered up to that resourceVersion is no longer known")

// step follows a cache or, without a cache, the region. It returns how long it did so.
func (f *feed) step(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	if shared, err := f.share(ctx); shared || err != nil {
		return time.Since(began), err
	}
	return f.round(ctx)
}

// round begins a watch, brings the consumer up to the version where the watch begins, and follows the watch until it
// ends. It returns how long the watch lasted.
func (f *feed) round(ctx context.Context) (time.Duration, error) {
	w, err := f.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer w.stop()
	f.waits = f.api.opts.Answer
	began := time.Now()
	renewed := f.renewing(ctx, w)
	err = f.follow(ctx, w)
	if renewed() {
		f.at = ""
		return time.Since(began), errRenewed
	}
	if expired(err) {
		f.at, err = "", nil
	}
	f.took(ctx, StepWatch, err)
	return time.Since(began), err
}

// begin begins a watch where the previous watch ended or, if that is impossible, at the present version. It brings
// the consumer up to that version.
func (f *feed) begin(ctx context.Context) (w events, err error) {
	step := StepList
	if f.at != "" {
		step = StepVerify
	}
	now, err := f.now(ctx)
	if err == nil && step == StepVerify {
		if older(now, f.at) {
			err = apierrors.NewResourceExpired("the region is behind that version")
		} else {
			w, err = f.from(ctx, f.at)
		}
		switch {
		case expired(err) && f.unknown:
			err = errLost
		case expired(err):
			f.took(ctx, step, err)
			step, err = StepList, nil
		}
	}
	if err == nil && step == StepList {
		w, err = f.from(ctx, now)
	}
	f.took(ctx, step, err)
	return w, err
}

// from begins a watch at the version at, and brings the consumer up to that version.
func (f *feed) from(ctx context.Context, at string) (events, error) {
	w, err := f.watch(ctx, at)
	if err != nil {
		return nil, err
	}
	if err := f.list(ctx, at); err != nil {
		w.stop()
		return nil, err
	}
	return w, nil
}

func expired(err error) bool { return stateOf(err) == Expired }

// older reports whether now, the present version of a source, is below the version at, as after a restore. It returns
// false for versions that are not numbers, since these cannot be compared.
func older(now, at string) bool {
	n, comparable := number(now)
	m, ok := number(at)
	return comparable && ok && n < m
}

// list delivers the difference between the ledger and the state at the version at. The difference is empty if the
// source's history up to at is the delivered one. If the ledger does not know the consumer's objects yet (f.unknown),
// list delivers nothing and fills the ledger with this state; it returns errLost if the stamp of this state is not the
// consumer's.
func (f *feed) list(ctx context.Context, at string) error {
	if f.unknown {
		was := newLedger()
		if err := f.pages(ctx, at, func(o *observed) bool { return was.hold(o) }); err != nil {
			return err
		}
		if f.stamp != 0 && f.stamp != was.stamp() {
			return errLost
		}
		f.ledger, f.unknown = was, false
	} else {
		f.at = at // if only a part of the difference is delivered, a retry continues from at and not from the earlier version
		f.ledger.begin()
		err := f.pages(ctx, at, func(o *observed) bool {
			if f.fresh {
				return f.ledger.hold(o)
			}
			return f.deliver(ctx, f.ledger.object(o), "")
		})
		if err != nil {
			return err
		}
		if !f.deliver(ctx, f.ledger.missing(), "") {
			return ctx.Err()
		}
		f.fresh = false
	}
	f.send(ctx, news{at: at, stamp: f.ledger.stamp(), state: OK, listed: f.kind})
	return nil
}

// now returns the present resourceVersion of the source.
func (f *feed) now(ctx context.Context) (string, error) {
	now, err := f.api.present(ctx, f.q, &f.source, f.encoder, f.waits)
	f.tried(err)
	return now, err
}

// present returns the present resourceVersion of a source.
func (a *API) present(ctx context.Context, q query, s *source, e *encoder, waits time.Duration) (string, error) {
	list, err := a.listOnce(ctx, s, e, metav1.ListOptions{LabelSelector: q.labels, FieldSelector: q.fields, Limit: 1}, waits, s.recovered(), nil)
	if err != nil {
		return "", err
	}
	list.release()
	return list.resourceVersion, nil
}

// read sends one list request to the source.
func (f *feed) read(ctx context.Context, opts metav1.ListOptions) (*page, error) {
	list, err := f.api.listOnce(ctx, &f.source, f.encoder, opts, f.waits, f.source.recovered(), nil)
	f.tried(err)
	return list, err
}

// tried doubles the time limit of the next attempt if the region did not answer in time.
func (f *feed) tried(err error) {
	if errors.Is(err, errNoAnswer) {
		f.waits = min(2*f.waits, f.api.opts.Timeout)
	}
}

// pages lists the state at the version at, page by page. It calls fn with each object, until fn returns false.
func (f *feed) pages(ctx context.Context, at string, fn func(*observed) bool) error {
	opts := metav1.ListOptions{
		LabelSelector: f.q.labels, FieldSelector: f.q.fields, Limit: f.source.limit(readPage),
		ResourceVersion: at, ResourceVersionMatch: metav1.ResourceVersionMatchExact,
	}
	for {
		list, err := f.read(ctx, opts)
		if err != nil {
			return err
		}
		f.kind = strings.TrimSuffix(list.kind, "List")
		if f.encoder != nil && f.encoder.columns == nil {
			_ = f.encoder.unite([]*page{list})
		}
		whole, next := list.observed(f.seed, fn), list.next
		list.keep() // the last object may still be on its way to the consumer
		list.release()
		if !whole {
			return ctx.Err()
		}
		opts.Limit = f.source.limit(readPage)
		if opts.Continue = next; opts.Continue == "" {
			return nil
		}
		opts.ResourceVersion, opts.ResourceVersionMatch = "", ""
	}
}

// watch begins a watch at the version at.
func (f *feed) watch(ctx context.Context, at string) (events, error) {
	tried, attempt := newAttempt(region.WithMeter(ctx, f.api.eventMeter), f.api.opts.Timeout, f.source.recovered())
	lasts := watchTime/2 + rand.N(watchTime)
	w, err := f.source.events(tried, f.encoder, f.seed, metav1.ListOptions{
		LabelSelector: f.q.labels, FieldSelector: f.q.fields, ResourceVersion: at, AllowWatchBookmarks: true,
		TimeoutSeconds: new(int64(lasts / time.Second)),
	})
	began := err == nil
	if err = attempt.accepted(err); err != nil {
		if began {
			w.stop()
		}
		attempt.cancel(nil)
		return nil, err
	}
	return watching{w, attempt}, nil
}

// watching is a watch together with its request.
type watching struct {
	events
	attempt *attempt
}

// stop ends the watch and its request.
func (w watching) stop() {
	w.events.stop()
	w.attempt.cancel(nil)
}

// follow delivers the events of the watch w until the watch ends.
func (f *feed) follow(ctx context.Context, w events) error {
	for {
		kind, o, err := w.next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case kind == watch.Bookmark:
			f.send(ctx, news{kind: watch.Bookmark, at: o.rv, stamp: f.ledger.stamp()})
		case !f.deliver(ctx, f.ledger.event(kind, o), o.rv):
			return ctx.Err()
		}
		if f.at = o.rv; kind == watch.Bookmark && f.shares() && f.api.opts.Sharing.has(f) {
			return nil // the next step follows the cache
		}
	}
}

// took reports a step of the feed to the observer.
func (f *feed) took(ctx context.Context, step Step, err error) {
	if ctx.Err() == nil {
		f.api.followed(ctx, FollowEvent{Region: f.source.region, Step: step, State: stateOf(err), Err: err})
	}
}

// deliver sends the changes and records each in the ledger. at is the position after the last change. It returns
// false if ctx ended.
func (f *feed) deliver(ctx context.Context, changes []change, at string) bool {
	for i, c := range changes {
		n := news{kind: c.kind, object: c.object}
		if n.object == nil {
			n.object = &observed{at: c.at, rv: c.entry.rv, decoded: c.last(f.source.regional.GroupVersion().String(), f.kind)}
		}
		n.own, n.stamp = n.object.rv, c.entry.print
		if i == len(changes)-1 && at != "" {
			n.at, n.stamp = at, f.ledger.after(c)
		}
		if n.object.decoded != nil {
			f.api.outward(&f.source, n.object.decoded)
		}
		if !f.send(ctx, n) {
			return false
		}
		f.ledger.commit(c)
	}
	return true
}

func (f *feed) send(ctx context.Context, n news) bool {
	n.feed = f
	select {
	case f.out <- n:
		return true
	case <-ctx.Done():
		return false
	}
}

// pause waits for d. It returns early, with true, if recovered is closed, and early with false if ctx ends. A nil
// recovered is never closed.
func pause(ctx context.Context, d time.Duration, recovered <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-recovered:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}
