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
)

// list answers a list over the regions of q.
func (a *API) list(ctx context.Context, q query, opts metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	sources := a.sources(q, a.set.Members())
	l := &listing{api: a, q: q, sources: sources, room: math.MaxInt64}
	if opts.Limit > 0 {
		l.room = opts.Limit
	}
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

// listing is one page of a list. Sources come one after the other, each in its own order, so that all pages together are
// what one list would be.
type listing struct {
	api     *API
	q       query
	sources []source
	cursor  cursor
	stamps  []uint64                         // by source, of what was read in one piece
	ahead   []*unstructured.UnstructuredList // by source, what was read and not yet taken
	items   []unstructured.Unstructured
	head    *unstructured.UnstructuredList // any list that was read, for its kind
	room    int64
	missing []string // why regions do not contribute
}

var errAbsent = errors.New("the region had no part in the first page of this list")

// resume takes up a continue token.
func (l *listing) resume(ctx context.Context, opts metav1.ListOptions) error {
	if opts.ResourceVersion != "" && opts.ResourceVersion != "0" || opts.ResourceVersionMatch != "" {
		return apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
	}
	c, err := decodeCursor(l.api.sealer, opts.Continue)
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
	l.cursor, l.ahead = c, make([]*unstructured.UnstructuredList, len(c.sources))
	return nil
}

// begin asks all sources at once, which pins their versions. Each is asked for its share of a page.
func (l *listing) begin(ctx context.Context, opts metav1.ListOptions) error {
	versions, err := l.api.starts(opts.ResourceVersion)
	if err != nil {
		return err
	}
	share := opts.Limit
	if n := int64(len(l.sources)); share > 0 && n > 0 {
		share = (share + n - 1) / n
	}
	outcomes := l.ask(ctx, func(s *source) metav1.ListOptions {
		o := metav1.ListOptions{Limit: share}
		// A read of what is there now is not older than any version. A region that was restored from a backup would make
		// whoever asks for the version of before wait for ever.
		exact := opts.ResourceVersionMatch == metav1.ResourceVersionMatchExact
		if i, ok := find(versions.at, s.id); ok && exact && versions.at[i].rv != "" {
			o.ResourceVersion, o.ResourceVersionMatch = versions.at[i].rv, opts.ResourceVersionMatch
		} else if opts.ResourceVersion == "0" {
			o.ResourceVersion, o.ResourceVersionMatch = "0", opts.ResourceVersionMatch
		}
		return o
	})
	l.api.listed(ctx, outcomes)
	listed := slices.ContainsFunc(l.ahead, func(list *unstructured.UnstructuredList) bool { return list != nil })
	// An empty list says that there are no objects, so one region at least must have listed its own.
	if !l.api.opts.Policy.met(outcomes) || !listed {
		return &PartialError{Op: l.q.op("list"), Outcomes: outcomes, policy: l.api.opts.Policy}
	}
	l.cursor = cursor{query: l.q.hash(), sources: make([]pinned, len(l.sources))}
	for i, s := range l.sources {
		l.cursor.sources[i] = pinned{id: s.id, absent: l.ahead[i] == nil}
		if l.ahead[i] != nil {
			l.cursor.sources[i].rv, l.cursor.sources[i].stamp = l.ahead[i].GetResourceVersion(), l.stamps[i]
		}
	}
	l.missing = failuresOf(outcomes)
	return nil
}

// ask lists all sources in parallel, into ahead.
func (l *listing) ask(ctx context.Context, optionsFor func(*source) metav1.ListOptions) []Outcome {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	outcomes := make([]Outcome, len(l.sources))
	l.ahead = make([]*unstructured.UnstructuredList, len(l.sources))
	l.stamps = make([]uint64, len(l.sources))
	slots := make(chan struct{}, l.api.opts.Parallel)
	var wg sync.WaitGroup
	for i := range l.sources {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			s, began := &l.sources[i], time.Now()
			var list *unstructured.UnstructuredList
			err := s.unreachable()
			if err == nil {
				list, err = l.read(ctx, s, optionsFor(s), &l.stamps[i])
			}
			outcomes[i] = Outcome{Region: s.region, State: stateOf(err), Err: err, Elapsed: time.Since(began)}
			if err != nil {
				if l.api.opts.Policy.kind == kindFailFast && !outcomes[i].State.answered() {
					cancel(fmt.Errorf("%w: region %s failed first", errCanceled, s.region))
				}
				return
			}
			l.ahead[i], outcomes[i].Items = list, len(list.Items)
			if len(list.Items) == 0 && list.GetContinue() == "" {
				outcomes[i].State = Empty
			}
		})
	}
	wg.Wait()
	return outcomes
}

// read lists one source once, stamps it if it came in one piece, and turns its objects into those of the common API.
func (l *listing) read(ctx context.Context, s *source, opts metav1.ListOptions, whole *uint64) (*unstructured.UnstructuredList, error) {
	opts.LabelSelector, opts.FieldSelector = l.q.labels, l.q.fields
	list, err := l.api.listOnce(ctx, s, opts, l.api.opts.Answer, nil)
	if err != nil {
		return nil, err
	}
	if whole != nil && list.GetContinue() == "" {
		var sum uint64
		for i := range list.Items {
			sum += fingerprint(l.api.seed, list.Items[i].Object)
		}
		*whole = stamp(sum, len(list.Items))
	}
	for i := range list.Items {
		if err := l.api.single(s, &list.Items[i]); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// listOnce is one request to s.
func (a *API) listOnce(ctx context.Context, s *source, opts metav1.ListOptions, patience time.Duration, recovered <-chan struct{}) (*unstructured.UnstructuredList, error) {
	ctx, cancel := context.WithTimeout(ctx, a.opts.Timeout)
	defer cancel()
	attempt := newAttempt(ctx, patience, recovered)
	list, err := s.client.List(attempt.ctx, opts)
	return list, attempt.end(err)
}

// getOnce is one request to s.
func (a *API) getOnce(ctx context.Context, s *source, name string, opts metav1.GetOptions, sub []string) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, a.opts.Timeout)
	defer cancel()
	attempt := newAttempt(ctx, a.opts.Answer, nil)
	o, err := s.client.Get(attempt.ctx, name, opts, sub...)
	return o, attempt.end(err)
}

// fill takes from the sources in turn until the page is full or all are read.
func (l *listing) fill(ctx context.Context) error {
	c := &l.cursor
	for c.next < len(c.sources) {
		list := l.ahead[c.next]
		l.ahead[c.next] = nil
		switch {
		case c.sources[c.next].absent:
			c.next++
			continue
		case list != nil && int64(len(list.Items)) <= l.room:
			// What was read ahead fits.
		case l.room <= 0:
			return nil
		default:
			var err error
			if list, err = l.more(ctx); err != nil {
				return err
			}
		}
		l.head = list
		l.items = append(l.items, list.Items...)
		l.room -= int64(len(list.Items))
		if c.inner = list.GetContinue(); c.inner == "" {
			c.next++
		}
	}
	return nil
}

// more reads on in the present source, at the version that was pinned.
func (l *listing) more(ctx context.Context) (*unstructured.UnstructuredList, error) {
	s, c := &l.sources[l.cursor.next], &l.cursor
	opts := metav1.ListOptions{Continue: c.inner}
	if l.room != math.MaxInt64 {
		opts.Limit = l.room
	}
	if c.inner == "" {
		opts.ResourceVersion, opts.ResourceVersionMatch = c.sources[c.next].rv, metav1.ResourceVersionMatchExact
	}
	list, err := l.read(ctx, s, opts, nil)
	if err == nil {
		return list, nil
	}
	if expired(err) {
		return nil, apierrors.NewResourceExpired(fmt.Sprintf("region %s does not know the version of the first page any more; start the list anew", s.region))
	}
	return nil, wrap(s.region, err)
}

// answer makes the page.
func (l *listing) answer() (*unstructured.UnstructuredList, error) {
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List"}, Items: l.items}
	if l.items == nil {
		list.Items = []unstructured.Unstructured{}
	}
	if len(l.q.types) == 1 {
		list.SetAPIVersion(l.q.types[0].GroupVersion().String())
		if l.head != nil {
			list.SetKind(l.head.GetKind())
		}
	}
	v := version{origin: -1}
	for _, p := range l.cursor.sources {
		if !p.absent {
			v.at = set(v.at, position{p.id, p.rv, p.stamp})
		}
	}
	rv, err := v.encode(l.api.sealer)
	if err != nil {
		return nil, fmt.Errorf("aggregate: resourceVersion of a list: %w", err)
	}
	list.SetResourceVersion(rv)
	if l.cursor.next < len(l.cursor.sources) {
		token, err := l.cursor.encode(l.api.sealer)
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

// starts reads the resourceVersion of a list or watch. It names no source if there is none.
func (a *API) starts(rv string) (version, error) {
	if rv == "" || rv == "0" {
		return version{origin: -1}, nil
	}
	v, err := decodeVersion(a.sealer, rv)
	switch {
	case errors.Is(err, errForeign):
		// Whoever holds it lists anew, as it would after a compaction.
		return version{}, apierrors.NewResourceExpired(fmt.Sprintf("resourceVersion is not valid here: %v", err))
	case err != nil:
		return version{}, apierrors.NewBadRequest(fmt.Sprintf("resourceVersion is not valid: %v", err))
	}
	return v, nil
}
