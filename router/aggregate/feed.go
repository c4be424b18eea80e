// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/atoll-dev/atoll/region"
)

const (
	// watchTime is how long one watch of a region is asked to last, give or take half of it. Each end costs a list.
	watchTime = 30 * time.Minute
	// maxDoublings bounds the wait between attempts.
	maxDoublings = 50
)

// news is what a feed tells the stream.
type news struct {
	feed   *feed
	kind   watch.EventType            // Added, Modified, Deleted, Bookmark; empty: only a state
	object *unstructured.Unstructured // of an event
	own    string                     // the object's own version
	at     string                     // the source's position after this; empty for an event in the middle of a repair
	stamp  uint64                     // of the state at that position
	state  State                      // of what is no event: OK once the source is delivered to the end of a list, or why a step failed
	err    error
	listed string // the kind of the objects, of a state
	lost   bool   // what was delivered before cannot be established, so only a new list helps
}

// feed delivers one source to a stream: its state as the ledger sees it, then its changes, for ever, repairing what was
// interrupted. It is one goroutine.
//
// It goes round and round: it begins a watch, lists what there was at the version where that watch begins, delivers how
// this differs from what was delivered before, and then what the watch brings. The watch comes first because a region that
// is restored from a backup ends its watches: had it been listed before, and restored after that, then the watch would go
// on from the same number in another history, and nobody would notice.
type feed struct {
	api     *API
	q       query
	source  source
	ledger  *ledger       // of the feed's goroutine until done is closed
	at      string        // where to go on; empty: where the source is now
	unknown bool          // the consumer holds what there was at that version, and the ledger does not know what that is
	stamp   uint64        // of what the consumer says that it was delivered; zero: it does not say
	fresh   bool          // begin with what is there now and deliver none of it
	kind    string        // of the objects, once known
	waits   time.Duration // for an answer to begin; doubled by each attempt that got none
	out     chan<- news
	cancel  context.CancelFunc
	done    chan struct{}

	// Of the stream's goroutine.
	synced bool  // its initial state was delivered
	state  State // of its last step
	err    error
}

// run goes round until ctx ends.
func (f *feed) run(ctx context.Context) {
	defer close(f.done)
	wait := f.api.opts.Retry
	f.waits = f.api.opts.Answer
	for {
		recovered := f.source.recovered()
		lasted, err := f.round(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, errRecovered):
			wait = f.api.opts.Retry
			continue
		case errors.Is(err, errLost):
			f.send(ctx, news{state: Expired, err: err, lost: true})
			return
		case err != nil:
			f.send(ctx, news{state: stateOf(err), err: err})
		}
		if lasted > f.api.opts.Retry {
			if wait = f.api.opts.Retry; err == nil {
				continue
			}
		}
		back := pause(ctx, wait/2+rand.N(wait/2+1), recovered)
		if wait = min(2*wait, maxDoublings*f.api.opts.Retry); back {
			wait = f.api.opts.Retry
		}
	}
}

// end stops the feed and waits for it.
func (f *feed) end() {
	f.cancel()
	<-f.done
}

// errLost says that the consumer's state cannot be brought up to date by events.
var errLost = errors.New("what was delivered up to that resourceVersion is not known any more")

// round brings the consumer up to date and keeps it so until the watch ends, and says how long that lasted.
func (f *feed) round(ctx context.Context) (time.Duration, error) {
	w, err := f.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer w.Stop()
	f.waits = f.api.opts.Answer
	began := time.Now()
	err = f.follow(ctx, w)
	if expired(err) {
		f.at, err = "", nil
	}
	f.took(ctx, StepWatch, err)
	return time.Since(began), err
}

// begin begins a watch where the last one ended or, if that is not possible, where the source is now, and brings the
// consumer there.
func (f *feed) begin(ctx context.Context) (w watch.Interface, err error) {
	step := StepList
	if f.at != "" {
		step = StepVerify
	}
	now, err := f.now(ctx)
	if err == nil && step == StepVerify {
		if older(now, f.at) {
			err = apierrors.NewResourceExpired("the region is not as far any more")
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

// from begins a watch at that version and brings the consumer there.
func (f *feed) from(ctx context.Context, at string) (watch.Interface, error) {
	w, err := f.watch(ctx, at)
	if err != nil {
		return nil, err
	}
	if err := f.list(ctx, at); err != nil {
		w.Stop()
		return nil, err
	}
	return w, nil
}

func expired(err error) bool { return stateOf(err) == Expired }

// older says that a source has not come to a version yet, or not again. Versions that are no numbers cannot be compared.
func older(now, at string) bool {
	n, comparable := number(now)
	m, ok := number(at)
	return comparable && ok && n < m
}

// list delivers the difference between the ledger and what there was at that version, which is none if the history up to it
// is the one that was delivered. If the ledger does not know that yet, it learns it.
func (f *feed) list(ctx context.Context, at string) error {
	if f.unknown {
		was := newLedger(f.api.seed)
		if err := f.pages(ctx, at, func(o *unstructured.Unstructured) bool { return was.hold(o) }); err != nil {
			return err
		}
		if f.stamp != 0 && f.stamp != was.stamp() {
			return errLost
		}
		f.ledger, f.unknown = was, false
	} else {
		f.at = at // whatever of the difference is delivered, the way leads there and not back
		f.ledger.begin()
		err := f.pages(ctx, at, func(o *unstructured.Unstructured) bool {
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

// now returns the present version of the source.
func (f *feed) now(ctx context.Context) (string, error) {
	list, err := f.read(ctx, metav1.ListOptions{LabelSelector: f.q.labels, FieldSelector: f.q.fields, Limit: 1})
	if err != nil {
		return "", err
	}
	list.held.release()
	return list.GetResourceVersion(), nil
}

// read is one list of the source.
func (f *feed) read(ctx context.Context, opts metav1.ListOptions) (*page, error) {
	list, err := f.api.listOnce(ctx, &f.source, opts, f.waits, f.source.recovered())
	f.tried(err)
	return list, err
}

// tried gives a region that is slow to answer more time at the next attempt.
func (f *feed) tried(err error) {
	if errors.Is(err, errNoAnswer) {
		f.waits = min(2*f.waits, f.api.opts.Timeout)
	}
}

// pages calls fn with each object that there was at that version, page by page, until it returns false.
func (f *feed) pages(ctx context.Context, at string, fn func(*unstructured.Unstructured) bool) error {
	opts := metav1.ListOptions{
		LabelSelector: f.q.labels, FieldSelector: f.q.fields, Limit: f.source.limit(readPage),
		ResourceVersion: at, ResourceVersionMatch: metav1.ResourceVersionMatchExact,
	}
	for {
		list, err := f.read(ctx, opts)
		if err != nil {
			return err
		}
		f.kind = strings.TrimSuffix(list.GetKind(), "List")
		whole := true
		for i := 0; i < len(list.Items) && whole; i++ {
			whole = fn(&list.Items[i])
		}
		list.held.release()
		if !whole {
			return ctx.Err()
		}
		opts.Limit = f.source.limit(readPage)
		if opts.Continue = list.GetContinue(); opts.Continue == "" {
			return nil
		}
		opts.ResourceVersion, opts.ResourceVersionMatch = "", ""
	}
}

// watch begins a watch at that version.
func (f *feed) watch(ctx context.Context, at string) (watch.Interface, error) {
	tried, attempt := newAttempt(region.WithMeter(ctx, f.api.eventMeter), f.api.opts.Timeout, f.source.recovered())
	lasts := watchTime/2 + rand.N(watchTime)
	w, err := f.source.client.Watch(tried, metav1.ListOptions{
		LabelSelector: f.q.labels, FieldSelector: f.q.fields, ResourceVersion: at, AllowWatchBookmarks: true,
		TimeoutSeconds: new(int64(lasts / time.Second)),
	})
	began := err == nil
	if err = attempt.accepted(err); err != nil {
		if began {
			w.Stop()
		}
		attempt.cancel(nil)
		return nil, err
	}
	return watching{w, attempt}, nil
}

// watching is a watch with its request.
type watching struct {
	watch.Interface
	attempt *attempt
}

// Stop ends the watch and its request.
func (w watching) Stop() {
	w.Interface.Stop()
	w.attempt.cancel(nil)
}

// follow delivers what w brings, until it ends.
func (f *feed) follow(ctx context.Context, w watch.Interface) error {
	for e := range w.ResultChan() {
		if e.Type == watch.Error {
			return apierrors.FromObject(e.Object)
		}
		o, ok := e.Object.(*unstructured.Unstructured)
		if !ok {
			return fmt.Errorf("watch sent a %T", e.Object)
		}
		rv := o.GetResourceVersion()
		if e.Type == watch.Bookmark {
			f.at = rv
			f.send(ctx, news{kind: watch.Bookmark, at: rv, stamp: f.ledger.stamp()})
			continue
		}
		if !f.deliver(ctx, f.ledger.event(e.Type, o), rv) {
			return ctx.Err()
		}
		f.at = rv
	}
	return nil
}

// took tells the observer of a step.
func (f *feed) took(ctx context.Context, step Step, err error) {
	if ctx.Err() == nil {
		f.api.followed(ctx, FollowEvent{Region: f.source.region, Step: step, State: stateOf(err), Err: err})
	}
}

// deliver sends changes and notes each that was taken. at is the position after the last.
func (f *feed) deliver(ctx context.Context, changes []change, at string) bool {
	for i, c := range changes {
		o := c.last(f.source.regional.GroupVersion().String(), f.kind)
		n := news{kind: c.kind, object: o, own: o.GetResourceVersion()}
		if n.own == "" {
			n.own = c.entry.rv
		}
		if i == len(changes)-1 {
			n.at, n.stamp = at, f.ledger.after(c)
			if at == "" {
				n.stamp = 0
			}
		}
		f.api.outward(&f.source, o)
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

// pause waits for d, and reports whether recovered ended that before. A nil recovered does not.
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
