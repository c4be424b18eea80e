// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"github.com/atoll-dev/atoll/region"
)

// table is all that is known at one time. It is immutable; readers take it whole, without a lock.
type table struct {
	snapshot *region.Snapshot // what it was made of
	routes   map[region.Key]*entry
	sorted   []Route       // by provider, then name
	next     chan struct{} // closed when there is a newer table
}

// entry is one route.
type entry struct{ Route }

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
	t := &table{snapshot: snapshot, routes: make(map[region.Key]*entry), next: make(chan struct{})}
	for k, p := range snapshot.Regions() {
		t.routes[k] = &entry{Route{Region: k, Peer: p.Name}}
	}
	t.sorted = make([]Route, 0, len(t.routes))
	for _, e := range t.routes {
		t.sorted = append(t.sorted, e.Route)
	}
	slices.SortFunc(t.sorted, func(a, b Route) int {
		return cmp.Or(cmp.Compare(a.Region.Provider, b.Region.Provider), cmp.Compare(a.Region.Name, b.Region.Name))
	})
	old := r.table.Swap(t)
	close(old.next)
	return t
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
