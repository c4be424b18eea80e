// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/router/aggregate/internal/splice"
)

// list lists the regions of q and returns all items at once.
func (a *API) list(ctx context.Context, q query, opts metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	var items []unstructured.Unstructured
	list, err := a.listing(q, opts).run(ctx, opts, func(p *page) error {
		items = append(items, p.objects...)
		return nil
	})
	if err == nil && items != nil {
		list.Items = items
	}
	return list, err
}

func (a *API) listing(q query, opts metav1.ListOptions) *listing {
	l := &listing{api: a, q: q, sources: a.sources(q, a.set.Members()), room: math.MaxInt64, readAhead: true, wholeList: opts.Limit <= 0 && opts.Continue == ""}
	if opts.Limit > 0 {
		l.room, l.wanted = opts.Limit, true
	}
	return l
}

// run lists the regions and calls emit with the objects, in order. The returned list has no items.
func (l *listing) run(ctx context.Context, opts metav1.ListOptions, emit func(*page) error) (*unstructured.UnstructuredList, error) {
	defer l.release()
	l.emit = emit
	var err error
	if opts.Continue != "" {
		err = l.resume(ctx, opts)
	} else {
		err = l.begin(ctx, opts)
	}
	if err == nil {
		err = l.fill(ctx)
	}
	if err != nil {
		return nil, err
	}
	return l.answer()
}

// listing is one page of a list. It emits the sources one after the other, each in its own order, so that all pages
// together equal one list.
type listing struct {
	api       *API
	q         query
	sources   []source
	cursor    cursor
	first     []*page           // by source: objects that were read and not yet emitted
	stamps    []uint64          // by source: stamp of a source that was read to its end
	readAhead bool              // without a limit, read each region completely and in parallel before the first emit
	emit      func(*page) error // receives decoded pages; nil if there is an encoder
	encoder   *encoder          // nil: decode the objects
	kind      string            // of the list
	room      int64
	wanted    bool     // the caller set a limit: emit at most room objects
	wholeList bool     // this page is the whole list
	missing   []string // texts about the regions that do not contribute
}

// release releases the pages that were not emitted.
func (l *listing) release() {
	for _, p := range l.first {
		p.release()
	}
}

var errAbsent = errors.New("the region had no part in the first page of this list")

// resume prepares the listing to continue after the page that the continue token in opts names. It returns a
// BadRequest for the token of another list, and an Expired error if a region has left or moved since the first page.
func (l *listing) resume(ctx context.Context, opts metav1.ListOptions) error {
	if opts.ResourceVersion != "" && opts.ResourceVersion != "0" || opts.ResourceVersionMatch != "" {
		return apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
	}
	c, err := decodeCursor(l.api.opts.Keys, opts.Continue)
	if err == nil && c.query != l.q.hash() {
		err = errors.New("it is of another list")
	}
	if err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("continue token is not valid: %v", err))
	}
	now := make(map[sourceID]source, len(l.sources))
	for _, s := range l.sources {
		now[s.id] = s
	}
	l.sources = make([]source, len(c.sources))
	var absent []Outcome
	for i, p := range c.sources {
		s, ok := now[p.id]
		if !ok && !p.absent {
			return apierrors.NewResourceExpired("a region left or moved since the first page; start the list anew")
		}
		if l.sources[i] = s; ok && p.absent {
			absent = append(absent, Outcome{Region: s.region, State: Absent, Err: errAbsent})
		}
	}
	l.api.report(ctx, absent)
	l.missing = failuresOf(absent)
	l.cursor, l.first = c, make([]*page, len(c.sources))
	if l.encoder != nil {
		return l.encoder.resume(c)
	}
	return nil
}

// begin reads the first page of all sources in parallel, which pins their versions. If the list is read in pages,
// begin asks each source for an equal share of a page.
func (l *listing) begin(ctx context.Context, opts metav1.ListOptions) error {
	versions, err := l.api.starts(opts.ResourceVersion)
	if err != nil {
		return err
	}
	share := l.room
	if !l.wanted && !l.readAhead {
		share = readPage // bounds memory: all shares are held until they are emitted
	}
	if n := int64(len(l.sources)); share != math.MaxInt64 && n > 0 {
		share = (share + n - 1) / n
	}
	l.cursor.seed = l.api.opts.Keys.seed()
	if l.encoder != nil {
		l.encoder.reader.Seed = l.cursor.seed
	}
	outcomes := l.ask(ctx, func(s *source) metav1.ListOptions {
		o := metav1.ListOptions{Limit: s.limit(share)}
		// A read of the present state satisfies "not older than". After a restore from a backup, a region might never
		// reach the version in opts, and never answer a request for it.
		exact := opts.ResourceVersionMatch == metav1.ResourceVersionMatchExact
		if i, ok := find(versions.at, s.id); ok && exact && versions.at[i].rv != "" {
			o.ResourceVersion, o.ResourceVersionMatch = versions.at[i].rv, opts.ResourceVersionMatch
		}
		// Version 0 allows any state, so the newest state is valid too. Do not pass 0 on: an API server would then
		// ignore the limit.
		return o
	})
	l.api.listed(ctx, outcomes)
	listed := slices.ContainsFunc(l.first, func(p *page) bool { return p != nil })
	// Without this condition, a list would be empty if no region listed its objects, as if there were no objects.
	policy := policyOf(ctx).of(l.q)
	if !policy.met(outcomes) || !listed {
		return &PartialError{Op: l.q.op("list"), Outcomes: outcomes, policy: policy}
	}
	policy.note(outcomes...)
	l.cursor = cursor{query: l.q.hash(), seed: l.cursor.seed, sources: make([]pinned, len(l.sources))}
	for i, s := range l.sources {
		l.cursor.sources[i] = pinned{id: s.id, absent: l.first[i] == nil}
		if l.first[i] != nil {
			l.cursor.sources[i].rv, l.cursor.sources[i].stamp = l.first[i].resourceVersion, l.stamps[i]
		}
	}
	l.missing = failuresOf(outcomes)
	if l.encoder != nil {
		l.cursor.columns = l.encoder.unite(l.first)
	}
	return nil
}

// ask requests one page of each source, in parallel, with the options that optionsFor returns. It stores the pages in
// l.first, nil for a source that failed, and returns how each region answered.
func (l *listing) ask(ctx context.Context, optionsFor func(*source) metav1.ListOptions) []Outcome {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	outcomes := make([]Outcome, len(l.sources))
	l.first = make([]*page, len(l.sources))
	l.stamps = make([]uint64, len(l.sources))
	slots := make(chan struct{}, l.api.opts.Parallel)
	var wg sync.WaitGroup
	for i := range l.sources {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			s, began := &l.sources[i], time.Now()
			var list *page
			err := s.unreachable()
			if err == nil {
				list, err = l.begun(ctx, s, optionsFor(s), &l.stamps[i])
			}
			outcomes[i] = Outcome{Region: s.region, State: stateOf(err), Err: err, Elapsed: time.Since(began)}
			if err != nil {
				if policyOf(ctx).kind == kindFailFast && !outcomes[i].State.answered() {
					cancel(fmt.Errorf("%w: region %s failed first", errCanceled, s.region))
				}
				return
			}
			l.first[i], outcomes[i].Items = list, list.count
			if list.count == 0 && list.next == "" {
				outcomes[i].State = Empty
			}
		})
	}
	wg.Wait()
	return outcomes
}

// begun reads the first page of s. If readAhead is set and the caller set no limit, it reads all of s. If it has read
// s to the end, it stores the stamp of s in whole.
func (l *listing) begun(ctx context.Context, s *source, opts metav1.ListOptions, whole *uint64) (*page, error) {
	list, err := l.read(ctx, s, opts, true, nil)
	for err == nil && l.readAhead && !l.wanted && list.next != "" {
		list.held.release() // from here on the objects count as the caller's
		var next *page
		if next, err = l.read(ctx, s, metav1.ListOptions{Continue: list.next, Limit: s.limit(l.room)}, true, nil); err == nil {
			list.append(next)
			list.held = next.held
		}
	}
	if err == nil && l.readAhead {
		list.held.release()
	}
	if err == nil && list.next == "" {
		*whole = splice.Stamp(list.sum, list.count)
	}
	return list, err
}

// read lists a page of s and converts decoded objects to objects of the common API. If stamped is true, it also adds up
// the objects' fingerprints. held is the part of the budget to use; nil: wait for one.
func (l *listing) read(ctx context.Context, s *source, opts metav1.ListOptions, stamped bool, held *hold) (*page, error) {
	opts.LabelSelector, opts.FieldSelector = l.q.labels, l.q.fields
	list, err := l.api.listOnce(ctx, s, l.encoder, opts, l.api.opts.Answer, nil, held)
	if err != nil {
		return nil, err
	}
	for i := range list.objects {
		if stamped {
			list.sum += splice.Fingerprint(l.cursor.seed, list.objects[i].Object)
		}
		if err := l.api.outwardWithVersion(s, &list.objects[i]); err != nil {
			list.release()
			return nil, err
		}
	}
	return list, nil
}

// listOnce lists one page of s. If the answer is too large, it repeats the request for fewer objects, and remembers
// their number in s.page.
func (a *API) listOnce(ctx context.Context, s *source, e *encoder, opts metav1.ListOptions, patience time.Duration, recovered <-chan struct{}, held *hold) (*page, error) {
	for {
		list, err := a.listPage(ctx, s, e, opts, patience, recovered, held)
		held = nil
		if !tooLarge(err) || opts.Limit <= 1 {
			return list, err
		}
		opts.Limit = max(1, opts.Limit/8)
		s.page = opts.Limit
	}
}

// listPage sends one list request to s. A nil encoder decodes the answer.
func (a *API) listPage(ctx context.Context, s *source, e *encoder, opts metav1.ListOptions, patience time.Duration, recovered <-chan struct{}, held *hold) (p *page, err error) {
	if held == nil {
		if held, err = a.hold(ctx); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, a.opts.Timeout)
	defer cancel()
	tried, attempt := newAttempt(held.metered(ctx), patience, recovered)
	switch {
	case e != nil && s.raw != nil:
		p, err = a.readJSON(tried, s, e, "", opts, held)
	case e != nil && e.enc.Form.table():
		err = notAcceptable(s)
	default:
		var list *unstructured.UnstructuredList
		if list, err = s.client.List(tried, opts); err == nil {
			p = decodedPage(list, held)
		}
	}
	if err = held.failed(attempt.end(err)); err != nil {
		p.release()
		held.release()
		return nil, err
	}
	held.releaseUnused()
	return p, nil
}

// getOnce sends one get request to s.
func (a *API) getOnce(ctx context.Context, s *source, name string, opts metav1.GetOptions, sub []string) (*unstructured.Unstructured, error) {
	held, err := a.hold(ctx)
	if err != nil {
		return nil, err
	}
	defer held.release()
	ctx, cancel := context.WithTimeout(ctx, a.opts.Timeout)
	defer cancel()
	tried, attempt := newAttempt(held.metered(ctx), a.opts.Answer, nil)
	o, err := s.client.Get(tried, name, opts, sub...)
	return o, held.failed(attempt.end(err))
}

// fill emits objects from the sources in turn until the page is full or all sources are read. If l has an encoder,
// fill reads the next page of a source while it emits the present one as JSON.
func (l *listing) fill(ctx context.Context) error {
	c := &l.cursor
	var ahead *reading
	defer func() { ahead.drop() }()
	var sum uint64 // the fingerprints of the current source, if it was read from its beginning
	var count int
	whole := c.inner == ""
	for c.next < len(c.sources) {
		list := l.first[c.next]
		switch {
		case c.sources[c.next].absent:
			c.next++
			continue
		case list != nil && int64(list.count) <= l.room:
			// The part of the source that begin has read fits into the page.
		case l.room <= 0:
			return nil
		default:
			list.release()
			l.first[c.next] = nil
			var err error
			if list, err = l.more(ctx, ahead); err != nil {
				return err
			}
			ahead, l.first[c.next] = nil, list
		}
		l.kind = list.kind
		l.room -= int64(list.count)
		sum, count = sum+list.sum, count+list.count
		if c.inner = list.next; c.inner != "" && l.room > 0 && l.encoder != nil {
			ahead = l.readAheadOf(ctx)
		}
		err := l.pass(list)
		l.first[c.next] = nil
		if err != nil {
			return err
		}
		if c.inner == "" {
			if whole && l.wholeList {
				c.sources[c.next].stamp = splice.Stamp(sum, count)
			}
			sum, count, whole = 0, 0, true
			c.next++
		}
	}
	return nil
}

// pass emits a page and releases it.
func (l *listing) pass(p *page) error {
	defer p.release()
	if l.encoder != nil {
		return l.encoder.page(&l.sources[l.cursor.next], p)
	}
	return l.emit(p)
}

// more returns the next objects of the current source, at the pinned version. ahead is the request for them, or nil
// if it was not sent yet.
func (l *listing) more(ctx context.Context, ahead *reading) (*page, error) {
	s := &l.sources[l.cursor.next]
	var list *page
	var err error
	if ahead != nil {
		<-ahead.done
		list, err = ahead.page, ahead.err
	} else {
		list, err = l.next(ctx, nil)
	}
	if err == nil {
		return list, nil
	}
	if expired(err) {
		return nil, apierrors.NewResourceExpired(fmt.Sprintf("region %s no longer has the version of the first page; start the list anew", s.region))
	}
	return nil, wrap(s.region, err)
}

// next reads the next objects of the current source.
func (l *listing) next(ctx context.Context, held *hold) (*page, error) {
	s, c := &l.sources[l.cursor.next], &l.cursor
	opts := metav1.ListOptions{Continue: c.inner, Limit: s.limit(l.room)}
	if c.inner == "" {
		opts.ResourceVersion, opts.ResourceVersionMatch = c.sources[c.next].rv, metav1.ResourceVersionMatchExact
	}
	if many := min(s.many, l.room); s.page == 0 && many > opts.Limit {
		if held == nil {
			held = l.api.tryHold()
		}
		if held != nil && held.reserve(l.api.largest()) {
			opts.Limit = many
		}
	}
	return l.read(ctx, s, opts, l.wholeList, held)
}

// reading is a page that is being read. The listing must not change the current source meanwhile.
type reading struct {
	cancel context.CancelFunc
	done   chan struct{}
	page   *page // once done is closed
	err    error
}

// readAheadOf begins to read the next page of the current source. It returns nil if the budget has no room for a page
// now.
func (l *listing) readAheadOf(ctx context.Context) *reading {
	held := l.api.tryHold()
	if held == nil {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	r := &reading{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		defer cancel()
		r.page, r.err = l.next(ctx, held)
	}()
	return r
}

// drop ends a reading whose page is not needed.
func (r *reading) drop() {
	if r == nil {
		return
	}
	r.cancel()
	<-r.done
	r.page.release()
}

// answer returns the list without its items.
func (l *listing) answer() (*unstructured.UnstructuredList, error) {
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List"}, Items: []unstructured.Unstructured{}}
	if len(l.q.types) == 1 {
		list.SetAPIVersion(l.q.types[0].GroupVersion().String())
		if l.kind != "" {
			list.SetKind(l.kind)
		}
	}
	if l.encoder != nil {
		l.encoder.head(list)
	}
	v := version{origin: -1, seed: l.cursor.seed}
	for _, p := range l.cursor.sources {
		if !p.absent {
			v.at = set(v.at, position{p.id, p.rv, p.stamp})
		}
	}
	rv, err := v.encode(l.api.opts.Keys)
	if err != nil {
		return nil, fmt.Errorf("aggregate: resourceVersion of a list: %w", err)
	}
	list.SetResourceVersion(rv)
	if l.cursor.next < len(l.cursor.sources) {
		token, err := l.cursor.encode(l.api.opts.Keys)
		if err != nil {
			return nil, fmt.Errorf("aggregate: continue token: %w", err)
		}
		list.SetContinue(token)
	}
	if len(l.missing) > 0 {
		metadata, ok := list.Object["metadata"].(map[string]any)
		if ok {
			metadata["annotations"] = map[string]any{IncompleteAnnotation: strings.Join(shorten(l.missing), "; ")}
		}
	}
	return list, nil
}

// starts decodes the resourceVersion of a list or watch. If rv is empty or 0, the result names no source.
func (a *API) starts(rv string) (version, error) {
	if rv == "" || rv == "0" {
		return version{origin: -1}, nil
	}
	v, err := decodeVersion(a.opts.Keys, rv)
	switch {
	case errors.Is(err, errForeign):
		// 410 makes the client list again, as after a compaction.
		return version{}, apierrors.NewResourceExpired(fmt.Sprintf("resourceVersion is not valid here: %v", err))
	case err != nil:
		return version{}, apierrors.NewBadRequest(fmt.Sprintf("resourceVersion is not valid: %v", err))
	}
	return v, nil
}
