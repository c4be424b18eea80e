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
)

const (
	// repairPage is how many objects a repair holds at a time.
	repairPage = 500
	// watchTime is how long one watch of a region is asked to last, give or take half of it.
	watchTime = 8 * time.Minute
	// early is how much sooner than asked for a watch may end and still have ended as it should.
	early = time.Second
	// maxDoublings bounds the wait between attempts.
	maxDoublings = 150
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
type feed struct {
	api    *API
	q      query
	source source
	ledger *ledger // of the feed's goroutine until done is closed
	step   Step
	at     string // up to here everything was delivered
	stamp  uint64 // of what the consumer says that it was delivered; zero: it does not say
	based  bool   // the ledger is what was delivered
	fresh  bool   // begin with what is there now and deliver none of it
	kind   string // of the objects, once known
	out    chan<- news
	cancel context.CancelFunc
	done   chan struct{}

	// Of the stream's goroutine.
	synced bool  // its initial state was delivered
	state  State // of its last step
	err    error
}

// run takes step after step until ctx ends.
func (f *feed) run(ctx context.Context) {
	defer close(f.done)
	wait := f.api.opts.Retry
	for ctx.Err() == nil {
		step, began := f.step, time.Now()
		err := f.take(ctx)
		if ctx.Err() != nil {
			return
		}
		state := stateOf(err)
		f.api.followed(ctx, FollowEvent{Region: f.source.region, Step: step, State: state, Err: err})
		switch {
		case errors.Is(err, errLost):
			f.send(ctx, news{state: Expired, err: err, lost: true})
			return
		case err == nil && step != StepWatch:
			continue
		case err == nil && time.Since(began) > f.api.opts.Retry:
			wait = f.api.opts.Retry
			continue
		case err != nil:
			f.send(ctx, news{state: state, err: err})
		}
		pause(ctx, wait/2+rand.N(wait/2+1))
		wait = min(2*wait, maxDoublings*f.api.opts.Retry)
	}
}

// end stops the feed and waits for it.
func (f *feed) end() {
	f.cancel()
	<-f.done
}

// unknown says that the consumer holds something of this source that the ledger does not know.
func (f *feed) unknown() bool { return !f.based && f.at != "" }

// errLost says that the consumer's state cannot be brought up to date by events.
var errLost = errors.New("what was delivered up to that resourceVersion is not known any more")

// take takes the next step and says what comes after it.
func (f *feed) take(ctx context.Context) error {
	switch f.step {
	case StepWatch:
		orderly, err := f.watch(ctx)
		if expired(err) {
			f.step = StepList
			return nil
		}
		if !orderly {
			f.step = StepVerify
		}
		return err
	case StepVerify:
		same, err := f.verify(ctx)
		if err != nil {
			return err
		}
		switch {
		case same:
			f.step, f.based = StepWatch, true
			f.send(ctx, news{at: f.at, stamp: f.ledger.stamp(), state: OK, listed: f.kind})
		case f.based:
			f.step = StepList
		default:
			return errLost
		}
		return nil
	default:
		if err := f.list(ctx); err != nil {
			return err
		}
		f.step, f.based = StepWatch, true
		return nil
	}
}

func expired(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
}

// list delivers the difference between the ledger and what there is. For a fresh feed there is none.
func (f *feed) list(ctx context.Context) error {
	f.ledger.begin()
	rv, err := f.pages(ctx, metav1.ListOptions{}, func(o *unstructured.Unstructured) bool {
		changes := f.ledger.object(o)
		if f.fresh {
			for _, c := range changes {
				f.ledger.commit(c)
			}
			return true
		}
		return f.deliver(ctx, changes, "")
	})
	if err != nil {
		if expired(err) {
			err = fmt.Errorf("the region forgot the version of the list meanwhile: %w", err)
		}
		return err
	}
	if !f.deliver(ctx, f.ledger.missing(), "") {
		return ctx.Err()
	}
	f.at, f.fresh = rv, false
	f.send(ctx, news{at: rv, stamp: f.ledger.stamp(), state: OK, listed: f.kind})
	return nil
}

// verify says whether the source's history up to f.at is the one that was delivered. If it is not known what was, it
// becomes known. After a restore from a backup a source may have come to the same version by another way.
func (f *feed) verify(ctx context.Context) (bool, error) {
	now, err := f.one(ctx)
	if err != nil {
		return false, err
	}
	if at, ok := number(f.at); ok {
		if n, ok := number(now); ok && n < at {
			return false, nil
		}
	}
	exact := metav1.ListOptions{ResourceVersion: f.at, ResourceVersionMatch: metav1.ResourceVersionMatchExact}
	was := newLedger(f.api.seed)
	_, err = f.pages(ctx, exact, func(o *unstructured.Unstructured) bool {
		for _, c := range was.object(o) {
			was.commit(c)
		}
		return true
	})
	switch {
	case expired(err):
		return false, nil
	case err != nil:
		return false, err
	case !f.based:
		f.ledger = was
		return f.stamp == 0 || f.stamp == was.stamp(), nil
	}
	return was.sum == f.ledger.sum && len(was.known) == len(f.ledger.known), nil
}

// one returns the present version of the source.
func (f *feed) one(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, f.api.opts.Timeout)
	defer cancel()
	list, err := f.source.client.List(ctx, metav1.ListOptions{LabelSelector: f.q.labels, FieldSelector: f.q.fields, Limit: 1})
	if err != nil {
		return "", err
	}
	return list.GetResourceVersion(), nil
}

// pages calls fn with each object of a list, which is read page by page, until it returns false.
func (f *feed) pages(ctx context.Context, opts metav1.ListOptions, fn func(*unstructured.Unstructured) bool) (string, error) {
	opts.LabelSelector, opts.FieldSelector, opts.Limit = f.q.labels, f.q.fields, repairPage
	for {
		limited, cancel := context.WithTimeout(ctx, f.api.opts.Timeout)
		list, err := f.source.client.List(limited, opts)
		cancel()
		if err != nil {
			return "", err
		}
		f.kind = strings.TrimSuffix(list.GetKind(), "List")
		for i := range list.Items {
			if !fn(&list.Items[i]) {
				return "", ctx.Err()
			}
		}
		if opts.Continue = list.GetContinue(); opts.Continue == "" {
			return list.GetResourceVersion(), nil
		}
		opts.ResourceVersion, opts.ResourceVersionMatch = "", ""
	}
}

// watch follows the source from f.at. orderly says that the watch ended when it was to end.
func (f *feed) watch(ctx context.Context) (orderly bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lasts := watchTime/2 + rand.N(watchTime)
	seconds := int64(lasts / time.Second)
	accepted := time.AfterFunc(f.api.opts.Timeout, cancel)
	w, err := f.source.client.Watch(ctx, metav1.ListOptions{
		LabelSelector: f.q.labels, FieldSelector: f.q.fields, ResourceVersion: f.at, AllowWatchBookmarks: true, TimeoutSeconds: &seconds,
	})
	if !accepted.Stop() {
		if err == nil {
			w.Stop()
		}
		return false, fmt.Errorf("watch was not accepted: %w", context.DeadlineExceeded)
	}
	if err != nil {
		return false, err
	}
	defer w.Stop()
	began := time.Now()
	for e := range w.ResultChan() {
		if e.Type == watch.Error {
			return false, apierrors.FromObject(e.Object)
		}
		o, ok := e.Object.(*unstructured.Unstructured)
		if !ok {
			return false, fmt.Errorf("watch sent a %T", e.Object)
		}
		rv := o.GetResourceVersion()
		if e.Type == watch.Bookmark {
			f.at = rv
			f.send(ctx, news{kind: watch.Bookmark, at: rv, stamp: f.ledger.stamp()})
			continue
		}
		if !f.deliver(ctx, f.ledger.event(e.Type, o), rv) {
			return false, ctx.Err()
		}
		f.at = rv
	}
	return time.Since(began) >= lasts-early, nil
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

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
