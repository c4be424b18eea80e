// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/loop"
)

// Change is what a Syncer would do about one object, or why it would not.
type Change struct {
	Resource schema.GroupResource
	Object   types.NamespacedName // where it is upstream; of a namespace, its name downstream
	// Write is what would be written. It is empty if nothing is, and then Reason and Message say why not.
	Write   Write
	Reason  Reason
	Message string
	// Overruled are the fields that others have changed and would get changed back, as the server names them, with the
	// manager of each.
	Overruled []string
}

// Diff yields what the next pass over each object would write on either side, and what it could not, type by type, without
// writing anything: each request is made as a dry run, so that servers say what they would refuse. What follows from the
// writes is not known: an object that would be created has no status yet, and in a namespace that would be made too nothing
// is refused.
//
// It lists all that is synced of each type, one type after the other. A type whose lists fail for 30 seconds, and an object
// whose requests fail, is yielded with an error, and the next one goes on. So is a type of which something was still to be
// asked when a list ceased to be up to date: the rest of it is not told. It may be called with or without Start, also at the
// same time; it needs the same rights.
func (s *Syncer) Diff(ctx context.Context) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		if s.up == nil {
			yield(Change{}, errNotMade)
			return
		}
		plan := &plan{}
		shadow, err := newSyncer(s.up, s.down, s.given)
		if err != nil {
			yield(Change{}, err)
			return
		}
		shadow.dry, shadow.opts.Observer, shadow.lease = true, plan.observer(), newLease(0)
		shadow.add, shadow.addBehind = plan.queue, plan.queue
		if err := shadow.identifyOnce(ctx); err != nil {
			yield(Change{}, wrap("syncer: diff", err))
			return
		}
		wanted, _, err := shadow.compareTypes()
		if err != nil {
			yield(Change{}, wrap("syncer: diff", err))
			return
		}
		for _, name := range slices.Sorted(maps.Keys(wanted)) {
			if !shadow.diffType(ctx, plan, name, wanted[name], yield) {
				return
			}
		}
	}
}

// diffType yields the changes of one type. It returns false if no more are wanted.
func (s *Syncer) diffType(ctx context.Context, plan *plan, name string, k kind, yield func(Change, error) bool) bool {
	l := newLane(s, name, k)
	if k.Refused != "" && apierrors.IsForbidden(l.probe(ctx, l.one)) {
		return true // nothing would be written, and a syncer need not have rights on types that it refuses
	}
	s.lanes = map[string]*lane{name: l}
	ctx, cancel := context.WithCancel(ctx)
	var copies sync.WaitGroup
	defer copies.Wait()
	defer cancel()
	for _, o := range l.copiesOf() {
		copies.Go(func() { _ = o.Start(ctx) })
	}
	if err := l.listAll(ctx); err != nil {
		return yield(Change{Resource: k.GVR.GroupResource()}, wrap("syncer: diff "+name, err)) && ctx.Err() == nil
	}
	for _, queued := range plan.takeQueue() {
		_, err := s.work(ctx, queued)
		for _, c := range plan.takeChanges() {
			if !yield(c, nil) {
				return false
			}
		}
		if errors.Is(err, errNotFresh) {
			return yield(Change{Resource: k.GVR.GroupResource()}, wrap("syncer: diff "+name, err)) && ctx.Err() == nil
		}
		if err != nil {
			_, text, _ := strings.Cut(queued, "|")
			if !yield(Change{Resource: k.GVR.GroupResource(), Object: shown(loop.ParseKey(strings.TrimPrefix(text, strayMark)))}, fmt.Errorf("syncer: diff: %w", err)) {
				return false
			}
		}
	}
	return true
}

// listAll waits until all copies of the lane are there, and looks for objects that have left.
func (l *lane) listAll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	for _, o := range l.copiesOf() {
		select {
		case <-o.Synced():
		case <-ctx.Done():
			return errors.Join(l.fresh(), wrap("list", ctx.Err()))
		}
	}
	// All is there, even if a copy has ceased to be fresh meanwhile, so that flows has asked for nothing.
	l.askForAll()
	if l.born != nil {
		l.askForBorn()
	}
	return l.sweepPages(ctx)
}

// plan collects what a dry run does. A type is worked on by one goroutine, but copies come from others.
type plan struct {
	changes   []Change
	overruled []string

	mu     sync.Mutex
	queued map[string]bool
}

func (p *plan) queue(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queued == nil {
		p.queued = map[string]bool{}
	}
	p.queued[key] = true
}

func (p *plan) takeQueue() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	keys := slices.Sorted(maps.Keys(p.queued))
	p.queued = nil
	return keys
}

func (p *plan) takeChanges() []Change {
	changes := p.changes
	p.changes, p.overruled = nil, nil
	return changes
}

func (p *plan) observer() *Observer {
	return &Observer{
		Wrote: func(_ context.Context, e WriteEvent) {
			p.changes = append(p.changes, Change{Resource: e.Resource, Object: e.Object, Write: e.Write, Overruled: p.overruled})
			p.overruled = nil
		},
		Problem: func(_ context.Context, e ProblemEvent) {
			if e.Reason != "" {
				p.changes = append(p.changes, Change{Resource: e.Resource, Object: e.Object, Reason: e.Reason, Message: e.Message})
			}
		},
		Overruled: func(_ context.Context, e OverruledEvent) { p.overruled = e.Fields },
	}
}
