// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/atoll-dev/atoll/region"
)

// stream is a merged watch. One goroutine owns it; one goroutine per source feeds it.
type stream struct {
	api             *API
	q               query
	policy          Policy
	encoding        *Encoding // of the objects; nil: they are decoded
	bookmarks       bool
	initial         bool // the bookmark that ends the initial events is not sent yet
	fresh           bool // deliver only changes from now on
	from            version
	seed            uint64 // of the fingerprints
	feeds           map[slot]*feed
	ended           map[slot]*feed // ended feeds of regions that moved or, with Options.Withhold, left
	at              []position
	positionChanged bool                    // at has changed since the last event or bookmark
	kind            schema.GroupVersionKind // of the first type's objects; until that is known, of the objects of another type
	in              chan news
	out             chan watch.Event
	cancel          context.CancelFunc
	running         sync.WaitGroup
}

// slot is the key of a source in a stream, independent of the cluster that serves it.
type slot struct {
	common schema.GroupVersionResource
	region region.Key
}

func (s *source) slot() slot { return slot{s.common, s.region} }

// watch begins a merged watch. Failures of single regions are not errors: the watch retries these regions.
func (a *API) watch(ctx context.Context, q query, enc *Encoding, opts metav1.ListOptions) (watch.Interface, error) {
	initial := opts.SendInitialEvents != nil && *opts.SendInitialEvents
	if opts.SendInitialEvents != nil && opts.ResourceVersionMatch != metav1.ResourceVersionMatchNotOlderThan {
		return nil, apierrors.NewBadRequest("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
	}
	from, err := a.starts(opts.ResourceVersion)
	if err != nil {
		return nil, err
	}
	s := &stream{
		api: a, q: q, policy: policyOf(ctx).of(q), encoding: enc, seed: cmp.Or(from.seed, a.opts.Keys.seed()), bookmarks: opts.AllowWatchBookmarks, initial: initial,
		fresh: opts.SendInitialEvents != nil && !initial && len(from.at) == 0,
		feeds: map[slot]*feed{}, ended: map[slot]*feed{}, in: make(chan news), out: make(chan watch.Event),
	}
	if !initial {
		s.from, s.at = from, slices.Clone(from.at)
	}
	sources := a.sources(q, a.set.Members())
	if len(sources) == 0 {
		return nil, &PartialError{Op: q.op("watch")} // a 410 would cause a list, which would fail too
	}
	for _, p := range s.at {
		if p.rv == "" || !slices.ContainsFunc(sources, func(o source) bool { return o.id == p.id }) {
			return nil, apierrors.NewResourceExpired("a region left, moved or was being repaired at this resourceVersion; list anew")
		}
	}
	var cancel context.CancelFunc
	if opts.TimeoutSeconds != nil && *opts.TimeoutSeconds > 0 {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(*opts.TimeoutSeconds)*time.Second)
	} else {
		ctx, cancel = context.WithCancel(ctx)
	}
	s.cancel = cancel
	go s.run(ctx)
	return s, nil
}

// ResultChan returns a channel that is closed when the watch and all its goroutines have ended.
func (s *stream) ResultChan() <-chan watch.Event { return s.out }

// Stop ends the watch. It does not wait.
func (s *stream) Stop() { s.cancel() }

func (s *stream) run(ctx context.Context) {
	defer close(s.out)
	defer s.running.Wait()
	defer s.cancel()
	members := s.members(ctx)
	ticker := time.NewTicker(s.api.opts.Bookmark)
	defer ticker.Stop()
	for {
		select {
		case m := <-members:
			if !s.regroup(ctx, m) {
				return
			}
		case n := <-s.in:
			if s.feeds[n.feed.source.slot()] == n.feed && !s.handle(ctx, n) {
				return
			}
		case <-ticker.C:
			if s.bookmarks && s.positionChanged && !s.initial && !s.kind.Empty() && !s.bookmark(ctx, nil) {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// members returns a channel that receives the members of the Set, at once and after each change.
func (s *stream) members(ctx context.Context) <-chan []Member {
	members := make(chan []Member)
	s.running.Go(func() {
		for m := range s.api.set.Watch(ctx) {
			select {
			case members <- m:
			case <-ctx.Done():
				return
			}
		}
	})
	return members
}

// regroup adapts the watch to the members of the Set. It returns false if the watch must end.
func (s *stream) regroup(ctx context.Context, members []Member) bool {
	sources := s.api.sources(s.q, members)
	if !s.follow(ctx, sources) || !s.progress(ctx) {
		return false
	}
	if s.policy.delivered != nil && !s.api.opts.Withhold {
		s.policy.delivered.keep(s.policy.query, sources)
	}
	s.fresh = false // a region that joins later delivers all its objects
	if len(s.from.at) > 0 {
		return s.fail(ctx, apierrors.NewResourceExpired("a region left or moved at this moment; list anew"))
	}
	return true
}

// follow starts and ends feeds to match sources. It returns false if the watch must end.
func (s *stream) follow(ctx context.Context, sources []source) bool {
	listed := make(map[slot]bool, len(sources))
	for _, src := range sources {
		listed[src.slot()] = true
	}
	for at, f := range s.feeds {
		if !listed[at] && !s.leave(ctx, f) {
			return false
		}
	}
	for _, src := range sources {
		f := s.feeds[src.slot()]
		if f != nil && f.source.id == src.id {
			continue
		}
		if f != nil && !s.moved(ctx, f) {
			return false
		}
		s.join(ctx, src)
	}
	return true
}

// join starts the feed of a source. If s.from has a version for the source, the feed begins at that version. If an
// earlier feed of the same slot has ended, the new feed begins with that feed's ledger.
func (s *stream) join(ctx context.Context, src source) {
	f := &feed{api: s.api, q: s.q, source: src, seed: s.seed, ledger: newLedger(), fresh: s.fresh, out: s.in, done: make(chan struct{})}
	if s.encoding != nil {
		f.encoder = s.api.eventEncoder(s.q, *s.encoding, f.seed)
	}
	if i, ok := find(s.from.at, src.id); ok {
		f.unknown, f.at, f.stamp, f.synced = true, s.from.at[i].rv, s.from.at[i].stamp, true
		s.from.at = unset(slices.Clone(s.from.at), src.id)
	}
	if before := s.ended[src.slot()]; before != nil {
		f.ledger, f.kind = before.ledger, before.kind
		s.at = unset(s.at, before.source.id)
		s.at = set(s.at, position{id: src.id})
		delete(s.ended, src.slot())
	}
	s.feeds[src.slot()] = f
	ctx, cancel := context.WithCancel(ctx)
	f.cancel = cancel
	s.running.Go(func() {
		defer cancel()
		f.run(ctx)
	})
}

// moved ends a feed whose region left the Set or is now served by another cluster. It keeps the feed in s.ended, so
// that the next feed of the region can compute the difference. If the feed's ledger does not know the consumer's
// objects yet, moved fails the watch and returns false.
func (s *stream) moved(ctx context.Context, f *feed) bool {
	f.end()
	f.settle()
	delete(s.feeds, f.source.slot())
	if f.unknown {
		return s.fail(ctx, expiry(f.source, errLost))
	}
	s.ended[f.source.slot()] = f
	return true
}

// leave ends a feed whose region has left the Set and, unless Options.Withhold is set, delivers the deletion of the
// region's objects.
func (s *stream) leave(ctx context.Context, f *feed) bool {
	if !s.moved(ctx, f) {
		return false
	}
	s.api.followed(ctx, FollowEvent{Region: f.source.region, Step: StepLeave, State: OK})
	if s.api.opts.Withhold {
		s.at = set(s.at, position{id: f.source.id})
		return true
	}
	delete(s.ended, f.source.slot())
	for _, c := range f.ledger.all() {
		o := c.last(f.source.common.GroupVersion().String(), f.kind)
		s.api.outward(&f.source, o)
		if !s.handle(ctx, news{feed: f, kind: watch.Deleted, object: &observed{decoded: o}, own: c.entry.rv}) {
			return false
		}
	}
	s.at, s.positionChanged = unset(s.at, f.source.id), true
	return true
}

// handle processes a message from a feed. It returns false if the watch must end.
func (s *stream) handle(ctx context.Context, n news) bool {
	f := n.feed
	switch n.kind {
	case watch.Added, watch.Modified, watch.Deleted:
		if !f.noted {
			f.noted = true
			s.policy.note(Outcome{Region: f.source.region, State: OK})
		}
		s.at = set(s.at, position{f.source.id, n.at, n.stamp})
		i, _ := find(s.at, f.source.id)
		rv, err := version{at: s.at, origin: i, own: n.own, seed: s.seed}.encode(s.api.opts.Keys)
		if err != nil {
			return s.fail(ctx, apierrors.NewInternalError(fmt.Errorf("aggregate: resourceVersion: %w", err)))
		}
		o, err := s.object(n, rv)
		if err != nil {
			return s.fail(ctx, apierrors.NewInternalError(fmt.Errorf("aggregate: %w", err)))
		}
		s.positionChanged = false
		return s.deliver(ctx, watch.Event{Type: n.kind, Object: o})
	case watch.Bookmark:
		s.at, s.positionChanged = set(s.at, position{f.source.id, n.at, n.stamp}), true
		return true
	}
	if n.lost {
		return s.fail(ctx, expiry(f.source, n.err))
	}
	s.policy.note(Outcome{Region: f.source.region, State: n.state})
	if f.state, f.err = n.state, n.err; n.state == OK {
		f.synced = true
		s.at, s.positionChanged = set(s.at, position{f.source.id, n.at, n.stamp}), true
		if n.listed != "" && (s.kind.Empty() || f.source.common == s.q.types[0]) {
			s.kind = f.source.common.GroupVersion().WithKind(n.listed)
		}
	}
	return s.progress(ctx)
}

// object returns the object of an event with the resourceVersion rv.
func (s *stream) object(n news, rv string) (runtime.Object, error) {
	if s.encoding != nil {
		return n.feed.encoder.event(&n.feed.source, n.object, rv)
	}
	n.object.decoded.SetResourceVersion(rv)
	return n.object.decoded, nil
}

func expiry(src source, err error) error {
	return apierrors.NewResourceExpired(fmt.Sprintf("region %s: %v; list anew", src.region, err))
}

// progress sends the bookmark that ends the initial events, once the regions that the policy requires have delivered their
// objects: an informer takes the objects that it has not received by then for deleted. It fails the watch if all regions refuse it.
func (s *stream) progress(ctx context.Context) bool {
	outcomes, began := s.outcomes()
	refused := len(outcomes) > 0 && !slices.ContainsFunc(outcomes, func(o Outcome) bool { return !o.State.refused() })
	if refused {
		return s.fail(ctx, &PartialError{Op: s.q.op("watch"), Outcomes: outcomes})
	}
	if !s.initial || !began || s.bookmarks && s.kind.Empty() || !s.policy.initial().met(outcomes) {
		return true
	}
	s.initial = false
	return !s.bookmarks || s.bookmark(ctx, map[string]string{metav1.InitialEventsAnnotationKey: "true"})
}

// outcomes returns the state of each feed, by region. began is true if each feed has synced or failed at least once.
func (s *stream) outcomes() (outcomes []Outcome, began bool) {
	outcomes, began = make([]Outcome, 0, len(s.feeds)), true
	for _, f := range s.feeds {
		o := Outcome{Region: f.source.region, State: OK}
		if !f.synced {
			began = began && f.state != ""
			o.State, o.Err = f.state, f.err
		}
		outcomes = append(outcomes, o)
	}
	slices.SortFunc(outcomes, func(a, b Outcome) int { return compareRegions(a.Region, b.Region) })
	return outcomes, began
}

// bookmark sends the position of the watch. The kind must be known: informers refuse a bookmark without a kind.
func (s *stream) bookmark(ctx context.Context, annotations map[string]string) bool {
	rv, err := version{at: s.at, origin: -1, seed: s.seed}.encode(s.api.opts.Keys)
	if err != nil {
		return s.fail(ctx, apierrors.NewInternalError(fmt.Errorf("aggregate: resourceVersion: %w", err)))
	}
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(s.kind)
	o.SetResourceVersion(rv)
	if annotations != nil {
		o.SetAnnotations(annotations)
	}
	var object runtime.Object = o
	if s.encoding != nil {
		e := s.api.encoder(s.q, *s.encoding, nil)
		if object, err = e.event(nil, &observed{decoded: o}, rv); err != nil {
			return s.fail(ctx, apierrors.NewInternalError(fmt.Errorf("aggregate: %w", err)))
		}
	}
	s.positionChanged = false
	return s.deliver(ctx, watch.Event{Type: watch.Bookmark, Object: object})
}

// fail ends the watch with an error.
func (s *stream) fail(ctx context.Context, err error) bool {
	status := apierrors.NewInternalError(err).Status()
	var known apierrors.APIStatus
	if errors.As(err, &known) {
		status = known.Status()
	}
	if status.Code == 0 {
		status.Code = http.StatusInternalServerError
	}
	status.APIVersion, status.Kind = "v1", "Status"
	s.deliver(ctx, watch.Event{Type: watch.Error, Object: &status})
	return false
}

// deliver sends an event. If the consumer does not receive the event within Options.Patience, the watch ends; the
// consumer can resume from the last event that it received.
func (s *stream) deliver(ctx context.Context, e watch.Event) bool {
	select {
	case s.out <- e:
		return true
	case <-ctx.Done():
		return false
	default:
	}
	timer := time.NewTimer(s.api.opts.Patience)
	defer timer.Stop()
	select {
	case s.out <- e:
		return true
	case <-timer.C:
		return false
	case <-ctx.Done():
		return false
	}
}
