// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"context"
	"iter"
	"slices"
	"sync/atomic"
	"time"

	"github.com/atoll-dev/atoll/region"
)

// table is all that is known at one time. It is immutable; readers take it whole, without a lock.
type table struct {
	snapshot *region.Snapshot // what it was made of
	routes   map[region.Key]*entry
	sorted   []Route       // by provider, then name
	next     chan struct{} // closed when there is a newer table
}

// generation is that of the Directory's Snapshot.
func (t *table) generation() uint64 {
	if t.snapshot == nil {
		return 0
	}
	return t.snapshot.Generation()
}

// entry is one route. It stays the same one as long as the Route does.
type entry struct {
	Route
	budget *budget
	stale  atomic.Bool // it is to be asked for anew
}

// after lets e be stale after d. A timer keeps the clock out of look-ups.
func (e *entry) after(d time.Duration) {
	if d <= 0 {
		e.stale.Store(true)
		return
	}
	time.AfterFunc(d, func() { e.stale.Store(true) })
}

// present is the newest table. It is made anew when the Directory has another Snapshot, by whoever notices first.
func (r *Router) present() *table {
	if t := r.table.Load(); t.snapshot == r.directory.Snapshot() {
		return t
	}
	return r.sync()
}

// sync brings the table in line with the Directory.
func (r *Router) sync() *table {
	r.mu.Lock()
	defer r.mu.Unlock()
	snapshot := r.directory.Snapshot() // read under the lock: what is published last was read last
	if t := r.table.Load(); t.snapshot == snapshot {
		return t // somebody was faster
	}
	return r.publish(snapshot)
}

// publish makes a new table the present one. r.mu is held.
func (r *Router) publish(snapshot *region.Snapshot) *table {
	old := r.table.Load()
	t := &table{snapshot: snapshot, routes: make(map[region.Key]*entry, len(old.routes)), next: make(chan struct{})}
	for k, p := range snapshot.Regions() {
		r.enter(t, old, Route{Region: k, Peer: p.Name})
		delete(r.learned, k)
	}
	for k, c := range r.learned {
		if obsolete(c, snapshot) {
			delete(r.learned, k)
			continue
		}
		r.enter(t, old, c.route())
	}
	t.sorted = make([]Route, 0, len(t.routes))
	for _, e := range t.routes {
		t.sorted = append(t.sorted, e.Route)
	}
	slices.SortFunc(t.sorted, func(a, b Route) int { return a.Region.Compare(b.Region) })
	changed := r.compare(old, t)
	if !changed {
		t.next = old.next
	}
	r.table.Store(t)
	if changed {
		close(old.next)
	}
	return t
}

// enter puts a route into t: old's own entry if it is the same.
func (r *Router) enter(t, old *table, route Route) {
	before := old.routes[route.Region]
	if before != nil && before.Route == route {
		t.routes[route.Region] = before
		return
	}
	e := &entry{Route: route}
	if before != nil {
		e.budget = before.budget
	} else {
		e.budget = newBudget(route.Region, r.opts)
	}
	if route.From != FromSource && r.opts.Resolver != nil {
		e.after(r.opts.Fresh - route.Age())
	}
	t.routes[route.Region] = e
}

// compare says whether t leads anywhere else than old, and notes what moved. r.mu is held.
func (r *Router) compare(old, t *table) (changed bool) {
	changed = len(old.routes) != len(t.routes)
	for k := range r.moves {
		if t.routes[k] == nil {
			delete(r.moves, k)
		}
	}
	for k, e := range t.routes {
		before, ok := old.routes[k]
		if ok && before.Peer == e.Peer {
			continue
		}
		changed = true
		if ok {
			r.moves[k] = append(r.moves[k], Move{At: time.Now(), From: before.Peer, To: e.Peer, By: e.From})
			if more := len(r.moves[k]) - maxMoves; more > 0 {
				r.moves[k] = slices.Delete(r.moves[k], 0, more)
			}
		}
	}
	return changed
}

// obsolete says that what was learned does not hold beside snapshot.
func obsolete(c CachedRoute, snapshot *region.Snapshot) bool {
	if c.Source && snapshot.Generation() > 0 {
		return true // the Directory listed it once and does not now
	}
	p, ok := snapshot.Peer(c.Peer)
	return ok && c.UID != "" && p.UID != "" && c.UID != p.UID // the name is another cluster's now
}

// learn notes the Resolver's answer.
func (r *Router) learn(k region.Key, peer region.PeerName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	snapshot := r.directory.Snapshot()
	c := CachedRoute{Region: k, Peer: peer, At: time.Now(), here: true}
	if p, ok := snapshot.Peer(peer); ok {
		c.UID = p.UID
	}
	r.learned[k] = c
	r.publish(snapshot)
}

// forget notes that the Resolver knows no such region.
func (r *Router) forget(k region.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.learned[k]; ok {
		delete(r.learned, k)
		r.publish(r.directory.Snapshot())
	}
}

// Routes returns all routes that are known now, by provider, then name. It does no I/O and asks no Resolver. The slice
// is shared: it must not be modified.
func (r *Router) Routes() []Route { return r.present().sorted }

// Watch yields the routes that are known, as Routes returns them, now and after each change until ctx ends: how to learn
// of regions that join, leave and move. Changes that come together may be yielded once.
func (r *Router) Watch(ctx context.Context) iter.Seq[[]Route] {
	return func(yield func([]Route) bool) {
		for t := range r.tables(ctx) {
			if !yield(t.sorted) {
				return
			}
		}
	}
}

// tables yields the present table and each newer one until ctx ends.
func (r *Router) tables(ctx context.Context) iter.Seq[*table] {
	return func(yield func(*table) bool) {
		defer r.follow()()
		for ctx.Err() == nil {
			t := r.present()
			if !yield(t) {
				return
			}
			select {
			case <-t.next:
			case <-ctx.Done():
			}
		}
	}
}

// follow keeps the table in step with the Directory, also when nobody looks anything up, until the func that it returns
// is called. One goroutine does so for all who ask; the last to leave waits for it.
func (r *Router) follow() (leave func()) {
	r.following.Lock()
	defer r.following.Unlock()
	if r.followers++; r.followers == 1 {
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		r.unfollow = func() {
			cancel()
			<-ended
		}
		go func() {
			defer close(ended)
			for range r.directory.Watch(ctx) {
				r.present()
			}
		}()
	}
	return func() {
		r.following.Lock()
		defer r.following.Unlock()
		if r.followers--; r.followers == 0 {
			r.unfollow()
		}
	}
}
