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
	"time"

	"github.com/go-logr/logr"

	"github.com/atoll-dev/atoll/internal/argument"
	"github.com/atoll-dev/atoll/region"
)

// Router finds the peer that serves a region, and provides clients that send a given caller's requests directly to
// that peer. A look-up of a known region reads a table without a lock, an allocation or I/O, except in two cases. The
// first look-up after a change of the Directory builds the table. The first look-up of a route that is older than
// Options.Fresh asks the Resolver in the background. A Router is safe for concurrent use.
type Router struct {
	directory region.Directory
	opts      Options
	guards    guards
	asker     *asker
	table     atomic.Pointer[table]
	started   atomic.Bool

	mu      sync.Mutex // serializes the writers of table, learned and moves
	learned map[region.Key]CachedRoute
	moves   map[region.Key][]Move

	following sync.Mutex // guards followers and unfollow, for the goroutine that follows the Directory while a Watch runs
	followers int
	unfollow  func()
}

// Options adjust a Router. The zero value works.
type Options struct {
	Cache    Cache         // routes that survive a restart (OpenCache); nil: none. It needs Start
	Resolver Resolver      // asked about regions that the Directory does not list; nil: those are unknown
	Timeout  time.Duration // of one question to the Resolver; zero: 5 s
	Fresh    time.Duration // the Router asks the Resolver again, in the background, about a route from the Resolver or the Cache that is older; zero: 1 minute
	Negative time.Duration // how long the Resolver's "unknown" is remembered, unless the Directory changes; zero: 5 s
	Budget   Budget        // of each region
	Users    UserFilter    // users that may be impersonated; nil: all but those that begin with "system:"
	Groups   GroupFilter   // groups that may be impersonated; nil: all but those that begin with "system:"
	Map      Mapping       // returns the user as whom a caller acts in a region; nil: the same user in every region
	Observer *Observer     // may be nil

	// Logger receives log lines. Zero: the logger of Start's context, else slog.Default. To log nothing, use
	// logr.FromSlogHandler(slog.DiscardHandler).
	Logger logr.Logger
}

// UserFilter reports whether a user may be impersonated.
type UserFilter func(name string) bool

// GroupFilter reports whether a group may be impersonated.
type GroupFilter func(group string) bool

// Mapping returns the user as whom u acts in region k. It is called once for each Client that impersonates; the
// result must pass Options.Users and Options.Groups. It must not modify u's slices and maps. See PrefixSystem.
type Mapping func(k region.Key, u User) (User, error)

func (o *Options) complete() error {
	for _, d := range []struct {
		name  string
		value *time.Duration
		zero  time.Duration
	}{{"Timeout", &o.Timeout, 5 * time.Second}, {"Fresh", &o.Fresh, time.Minute}, {"Negative", &o.Negative, 5 * time.Second}} {
		switch {
		case *d.value < 0:
			return fmt.Errorf("router: Options.%s is negative (%s)", d.name, *d.value)
		case *d.value == 0:
			*d.value = d.zero
		}
	}
	ordinary := func(name string) bool { return !strings.HasPrefix(name, systemPrefix) }
	if o.Users == nil {
		o.Users = ordinary
	}
	if o.Groups == nil {
		o.Groups = ordinary
	}
	return o.Budget.complete()
}

// New returns a Router for the peers in d. It reads Options.Cache; otherwise it does no I/O, and it starts no
// goroutine. Errors: an invalid option, or a Cache that cannot be read.
func New(d region.Directory, opts Options) (*Router, error) {
	if argument.Missing(d) {
		return nil, errors.New("router: the directory is nil; give a *region.Ring or region.Fixed")
	}
	switch {
	case opts.Cache != nil && argument.Missing(opts.Cache):
		return nil, fmt.Errorf("router: Options.Cache is a nil %T; give what OpenCache returns, or nil itself for none", opts.Cache)
	case opts.Resolver != nil && argument.Missing(opts.Resolver):
		return nil, fmt.Errorf("router: Options.Resolver is a nil %T; give nil itself for none", opts.Resolver)
	}
	if err := opts.complete(); err != nil {
		return nil, err
	}
	r := &Router{directory: d, opts: opts, guards: intact(), learned: make(map[region.Key]CachedRoute), moves: make(map[region.Key][]Move)}
	r.asker = newAsker(opts, r.learn, r.forget)
	if opts.Cache != nil {
		cached, err := opts.Cache.Load()
		if err != nil {
			return nil, fmt.Errorf("router: cache: %w", err)
		}
		for _, c := range cached {
			r.learned[c.Region] = c
		}
	}
	r.table.Store(&table{next: make(chan struct{})})
	return r, nil
}

// Lookup returns the peer that serves k and the origin of the answer. It uses the first of these that knows k: the
// Directory's present Snapshot; an earlier answer of the Resolver, or a route from the Cache, of any age; a new
// question to the Resolver. Only the question blocks: until the Resolver answers, Options.Timeout passes, or ctx ends.
// Concurrent callers for one region share one question. Errors are *region.Error values. If ctx ends, they wrap its
// cause; otherwise they distinguish three cases:
//   - region.ErrUnknownRegion: no peer serves k;
//   - region.ErrUnavailable: the peer cannot be learned now, because the Resolver does not answer, or the Directory
//     has no Snapshot yet;
//   - apierrors.IsForbidden or apierrors.IsUnauthorized: the Resolver denies the answer to this process.
func (r *Router) Lookup(ctx context.Context, k region.Key) (Route, error) {
	e, err := r.lookup(ctx, k)
	if err != nil {
		return Route{}, err
	}
	return e.Route, nil
}

// Refresh asks the Resolver about k, even if a route is known. It does not ask if the Directory lists k, or while the
// Router remembers that the Resolver did not know k or did not answer. It returns the same errors as Lookup. If the
// Resolver does not answer, the known route stays and Lookup still returns it.
func (r *Router) Refresh(ctx context.Context, k region.Key) (Route, error) {
	if r.directory == nil {
		return Route{}, errNotMade
	}
	t := r.present()
	if e, ok := t.routes[k]; ok && e.From != FromSource && r.opts.Resolver != nil {
		if err := r.asker.ask(ctx, t.generation(), k); err != nil && !errors.Is(err, region.ErrUnknownRegion) {
			return Route{}, &region.Error{Region: k, Op: "refresh", Err: err}
		}
	}
	return r.Lookup(ctx, k)
}

func (r *Router) lookup(ctx context.Context, k region.Key) (*entry, error) {
	if r.directory == nil {
		return nil, errNotMade
	}
	t := r.present()
	e, ok := t.routes[k]
	if !ok {
		return r.miss(ctx, t, k)
	}
	if e.stale.Load() {
		r.asker.refresh(ctx, t, e)
	}
	return e, nil
}

// miss handles a look-up of a region k that is not in t: it asks the Resolver, if the Router has one and k is valid.
func (r *Router) miss(ctx context.Context, t *table, k region.Key) (*entry, error) {
	if err := k.Validate(); err != nil {
		return nil, unknown(t, k)
	}
	if r.opts.Resolver == nil {
		return nil, absent(t, k)
	}
	err := r.asker.ask(ctx, t.generation(), k)
	t = r.present()
	if e, ok := t.routes[k]; ok {
		return e, nil
	}
	if err == nil || errors.Is(err, region.ErrUnknownRegion) {
		return nil, absent(t, k)
	}
	return nil, &region.Error{Region: k, Op: "lookup", Err: err}
}

// absent returns the error for a region that is not in the table: ErrUnknownRegion, or ErrUnavailable before the
// Directory's first Snapshot.
func absent(t *table, k region.Key) error {
	if t.generation() == 0 {
		return &region.Error{Region: k, Op: "lookup", Err: fmt.Errorf("%w: the directory has listed no peers yet; has the ring been started?", region.ErrUnavailable)}
	}
	return unknown(t, k)
}

// known returns the connection to the peer that serves k according to the table, or nil.
func (r *Router) known(k region.Key) *region.Conn {
	e, ok := r.present().routes[k]
	if !ok {
		return nil
	}
	conn, err := r.directory.Conn(e.Peer)
	if err != nil {
		return nil
	}
	return conn
}

// conn returns the connection to the peer that serves k now, and the budget for requests to k.
func (r *Router) conn(ctx context.Context, k region.Key) (*region.Conn, *budget, error) {
	e, err := r.lookup(ctx, k)
	if err != nil {
		return nil, nil, err
	}
	conn, err := r.directory.Conn(e.Peer)
	if err != nil {
		if errors.Is(err, region.ErrUnknownPeer) && e.From != FromSource {
			// The region is known. Its peer may still join, so the error is temporary.
			err = fmt.Errorf("%w: %w (of a route from the %s, %s old)", region.ErrUnavailable, region.ErrUnknownPeer, e.From, e.Age().Round(time.Second))
		}
		return nil, nil, &region.Error{Peer: e.Peer, Region: k, Op: "connect", Err: err}
	}
	return conn, e.budget, nil
}

// Health returns the results of the last probes of the peer that serves k, without I/O. Health.State is Unknown if
// no peer is known, or if the peer is not connected or not probed.
func (r *Router) Health(k region.Key) region.Health {
	if conn := r.known(k); conn != nil {
		return conn.Health()
	}
	return region.Health{}
}

var errNotMade = errors.New("router: the Router was not made by New")

// shown is the maximum number of regions that an error lists.
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
	hint := "none is known; does the ring's source list regions?"
	if total > 0 {
		hint = fmt.Sprintf("%d known: %s; to add it, list it under the regions of the peer that serves it", total, strings.Join(known, ", "))
	}
	return &region.Error{Region: k, Op: "lookup", Err: fmt.Errorf("%w (%s)", region.ErrUnknownRegion, hint)}
}
