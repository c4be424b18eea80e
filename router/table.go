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

// table holds all routes at one point in time. Only the stale marks and the budgets of its entries change, by atomic
// operations, so readers need no lock.
type table struct {
	snapshot *region.Snapshot // the Snapshot that the table was built from
	routes   map[region.Key]*entry
	sorted   []Route       // by provider, then name
	next     chan struct{} // closed when a region joins, leaves or moves
}

// generation returns the generation of the Directory's Snapshot, or 0 without one.
func (t *table) generation() uint64 {
	if t.snapshot == nil {
		return 0
	}
	return t.snapshot.Generation()
}

// entry is one route in a table. Successive tables share an entry for as long as its Route is unchanged.
type entry struct {
	Route
	budget *budget
	stale  atomic.Bool // ask the Resolver again at the next look-up
}

// after marks e as stale when d has passed. It uses a timer, so that look-ups need not read the clock.
func (e *entry) after(d time.Duration) {
	if d <= 0 {
		e.stale.Store(true)
		return
	}
	time.AfterFunc(d, func() { e.stale.Store(true) })
}

// present returns the table. It rebuilds the table first if the Directory's Snapshot is not the one that the table was
// built from.
func (r *Router) present() *table {
	if t := r.table.Load(); t.snapshot == r.directory.Snapshot() {
		return t
	}
	return r.sync()
}

// sync rebuilds the table from the Directory's Snapshot.
func (r *Router) sync() *table {
	r.mu.Lock()
	defer r.mu.Unlock()
	snapshot := r.directory.Snapshot() // read under the lock, so that a later table never has an earlier Snapshot
	if t := r.table.Load(); t.snapshot == snapshot {
		return t // another goroutine has rebuilt it
	}
	return r.publish(snapshot)
}

// publish builds a new table from the snapshot and from the routes that the Cache and the Resolver gave, and stores
// it. If the routes differ, it closes the channel next of the old table. The caller holds r.mu.
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

// enter adds a route to t. It reuses the entry in old if the route is the same.
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

// compare reports whether a region joined, left or moved from old to t, and records the moves. The caller holds
// r.mu.
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

// obsolete reports whether snapshot contradicts the learned route c.
func obsolete(c CachedRoute, snapshot *region.Snapshot) bool {
	if c.Source && snapshot.Generation() > 0 {
		return true // an earlier Snapshot listed the route, and this one does not
	}
	p, ok := snapshot.Peer(c.Peer)
	return ok && c.UID != "" && p.UID != "" && c.UID != p.UID // another cluster now has the peer's name
}

// learn records that the Resolver named peer for k.
func (r *Router) learn(k region.Key, peer region.PeerName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	snapshot := r.directory.Snapshot()
	c := CachedRoute{Region: k, Peer: peer, At: time.Now(), fromResolver: true}
	if p, ok := snapshot.Peer(peer); ok {
		c.UID = p.UID
	}
	r.learned[k] = c
	r.publish(snapshot)
}

// forget drops the learned route to k, because the Resolver does not know the region.
func (r *Router) forget(k region.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.learned[k]; ok {
		delete(r.learned, k)
		r.publish(r.directory.Snapshot())
	}
}

// Routes returns all known routes, sorted by provider, then name. It does no I/O and does not ask the Resolver. The
// slice is shared and must not be modified.
func (r *Router) Routes() []Route { return r.present().sorted }

// Watch yields the known routes, as Routes returns them: at once, and after each change until ctx ends. A change is
// a region that joins, leaves or moves. Several changes may be yielded together.
func (r *Router) Watch(ctx context.Context) iter.Seq[[]Route] {
	return func(yield func([]Route) bool) {
		for t := range r.tables(ctx) {
			if !yield(t.sorted) {
				return
			}
		}
	}
}

// tables yields the present table at once. Until ctx ends, it then yields the newest table each time that a region has
// joined, left or moved. It may skip tables that are replaced in between.
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

// follow keeps the table up to date with the Directory, without any look-ups, until the caller calls leave. All
// callers share one goroutine; the last call of leave waits for that goroutine to end.
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
