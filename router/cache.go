// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/backoff"
	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/region"
)

// Cache keeps routes across restarts. OpenCache returns a Cache that keeps them in a file. The Router calls Load once,
// and Save from one goroutine.
type Cache interface {
	// Load returns the routes that the last Save stored. It returns no routes if Save was never called.
	Load() ([]CachedRoute, error)
	// Save replaces the saved routes. If the process crashes during Save, a later Load returns either all routes of
	// the previous Save or all routes of this one.
	Save(routes []CachedRoute) error
}

// CachedRoute is the last known route to a region, in the form in which a Cache saves it. It holds no address and no
// credentials: the Directory has those.
type CachedRoute struct {
	Region region.Key
	Peer   region.PeerName
	UID    types.UID // of the peer's cluster, if known: the route is void if another cluster gets the peer's name
	Source bool      // true: the Directory listed the route, which is valid only until the Directory has its first Snapshot
	At     time.Time // when the route was last confirmed

	fromResolver bool // true: the Resolver gave the route to this process; false: an earlier process saved it
}

func (c CachedRoute) route() Route {
	route := Route{Region: c.Region, Peer: c.Peer, From: FromCache, At: c.At}
	if c.fromResolver {
		route.From = FromResolver
	}
	return route
}

const (
	saveEvery = 10 * time.Minute // save even without a change, so that the saved At stays recent
	settling  = time.Second      // pause after a save, so that the next save covers all changes made in this time
)

// Start keeps Options.Cache up to date and blocks until ctx ends. Then it saves the routes once more, cancels the open
// questions to the Resolver, and returns nil. A Router without Cache and Resolver need not be started. A failed save
// is logged and reported to the Observer; until ctx ends it is also retried. Call Start once: a second call returns an
// error.
func (r *Router) Start(ctx context.Context) error {
	if r.directory == nil {
		return errNotMade
	}
	ctx = logging.Into(ctx, r.opts.Logger, "router")
	if r.started.Swap(true) {
		return errors.New("router: Start was called twice")
	}
	defer r.asker.end()
	if r.opts.Cache == nil {
		<-ctx.Done()
		return nil
	}
	changed := make(chan struct{}, 1)
	var wg sync.WaitGroup
	wg.Go(func() {
		for range r.tables(ctx) {
			select {
			case changed <- struct{}{}:
			default:
			}
		}
	})
	every := time.NewTicker(saveEvery)
	defer every.Stop()
	for ctx.Err() == nil {
		select {
		case <-changed:
		case <-every.C:
		case <-ctx.Done():
			continue
		}
		if r.save(ctx) != nil {
			every.Reset(settling * 10)
		} else {
			every.Reset(saveEvery)
		}
		backoff.Sleep(ctx, settling)
	}
	wg.Wait()
	_ = r.save(ctx) // save has already logged and reported an error
	return nil
}

func (r *Router) save(ctx context.Context) error {
	routes := r.cached()
	err := r.opts.Cache.Save(routes)
	if err != nil {
		logging.From(ctx).Error(err, "Routes were not saved", "routes", len(routes))
	}
	r.opts.Observer.saved(ctx, SaveEvent{Routes: len(routes), Err: err})
	return err
}

// cached returns the present routes in the form in which the Cache saves them.
func (r *Router) cached() []CachedRoute {
	r.mu.Lock()
	defer r.mu.Unlock()
	t, now := r.table.Load(), time.Now()
	routes := make([]CachedRoute, 0, len(t.sorted))
	for _, route := range t.sorted {
		if c, ok := r.learned[route.Region]; ok {
			routes = append(routes, c)
			continue
		}
		c := CachedRoute{Region: route.Region, Peer: route.Peer, Source: true, At: now}
		if p, ok := t.snapshot.Peer(route.Peer); ok {
			c.UID = p.UID
		}
		routes = append(routes, c)
	}
	return routes
}
