// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/atoll-dev/atoll/region"
)

// Router answers which peer serves a region and gives clients that go straight to it as a given caller. Look-ups are one
// atomic load and one map access: no lock, no allocation, no I/O. It is safe for concurrent use and starts nothing.
type Router struct {
	directory region.Directory
	opts      Options
	table     atomic.Pointer[table]

	mu sync.Mutex // of whoever makes a new table

	following sync.Mutex // guards what keeps the table in step while somebody watches
	followers int
	unfollow  func()
}

// Options adjust a Router. The zero value works.
type Options struct {
	Groups   GroupFilter // groups that may be impersonated; nil: all but those that begin with "system:"
	Observer *Observer   // may be nil
}

// GroupFilter says whether a group may be impersonated.
type GroupFilter func(group string) bool

// Observer receives what happens. nil, and any nil field, is fine. Hooks are called synchronously without a lock held,
// possibly from many goroutines, and must return quickly.
type Observer struct {
	// Routed is called for each request of a Client once its peer is found, or is not.
	Routed func(ctx context.Context, e RouteEvent)
}

// RouteEvent is one request on its way to a region.
type RouteEvent struct {
	Region region.Key
	Peer   region.PeerName // empty if Err is set
	Err    error
}

func (o *Observer) routed(ctx context.Context, e RouteEvent) {
	if o != nil && o.Routed != nil {
		o.Routed(ctx, e)
	}
}

// New makes a Router of the peers in d. It does no I/O.
func New(d region.Directory, opts Options) (*Router, error) {
	if d == nil {
		return nil, errors.New("router: the directory is nil; give a *region.Ring or region.Fixed")
	}
	if opts.Groups == nil {
		opts.Groups = func(group string) bool { return !strings.HasPrefix(group, "system:") }
	}
	r := &Router{directory: d, opts: opts}
	r.table.Store(&table{next: make(chan struct{})})
	return r, nil
}

// Lookup says who serves k. It does not block. The error is a *region.Error with region.ErrUnknownRegion; it says which
// regions are known.
func (r *Router) Lookup(_ context.Context, k region.Key) (Route, error) {
	t := r.present()
	if e, ok := t.routes[k]; ok {
		return e.Route, nil
	}
	return Route{}, unknown(t, k)
}

// conn is the connection to the peer that serves k now.
func (r *Router) conn(ctx context.Context, k region.Key) (*region.Conn, error) {
	route, err := r.Lookup(ctx, k)
	if err != nil {
		return nil, err
	}
	conn, err := r.directory.Conn(route.Peer)
	if err != nil {
		return nil, &region.Error{Peer: route.Peer, Region: k, Op: "connect", Err: err}
	}
	return conn, nil
}

// shown is how many regions an error lists.
const shown = 10

func unknown(t *table, k region.Key) error {
	var known []string
	total := len(t.sorted)
	for _, other := range t.sorted[:min(shown, total)] {
		known = append(known, other.Region.String())
	}
	if total > shown {
		known = append(known, fmt.Sprintf("and %d more", total-shown))
	}
	hint := "none is known; has the ring been started, and does its source list regions?"
	if total > 0 {
		hint = fmt.Sprintf("%d known: %s; to add it, list it under the regions of the peer that serves it", total, strings.Join(known, ", "))
	}
	return &region.Error{Region: k, Op: "lookup", Err: fmt.Errorf("%w (%s)", region.ErrUnknownRegion, hint)}
}
