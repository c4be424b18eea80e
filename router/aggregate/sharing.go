// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/atoll-dev/atoll/internal/logging"
)

// SharingOptions adjust a Sharing. The zero value works.
type SharingOptions struct {
	// Bytes limits the JSON that all caches together hold. A cache for which there is no room ends, and its watches
	// continue alone. Zero: 256 MiB.
	Bytes int64
	// Linger is how long a cache is kept without a watch, so that a watch that is resumed needs no list. Zero: 1 minute.
	Linger time.Duration
	// Recheck is the interval at which a region is asked whether an identity may still read the objects of a cache. After
	// a right was revoked, no event arrives later than this. Zero: 1 minute.
	Recheck time.Duration
	// Logger receives a line when a cache has no room. Zero: the logger of the context of Start, or slog.Default.
	Logger logr.Logger
}

// Sharing lets the watches of one identity follow one watch of each region and one cache of its objects. Watches of one
// resource share these if their APIs have the same Sharing, Options.Identity and Options.Qualify, and if the watches
// have the same namespace, selectors and Encoding. Watches of tables, and those of the Dynamic client, are not shared. A
// Sharing is safe for concurrent use.
type Sharing struct {
	opts    SharingOptions
	opened  chan *watchCache
	started chan struct{}
	ended   chan struct{}
	running atomic.Bool // for ever
	used    atomic.Int64

	mu     sync.Mutex
	caches map[cacheKey]*shared
}

// cacheKey is what the watches of a cache have in common.
type cacheKey struct {
	identity                  string
	source                    sourceID
	namespace, labels, fields string
	enc                       Encoding
	qualify                   bool
	seed                      uint64
}

// shared is a cache and its use.
type shared struct {
	*watchCache
	users int
	idle  time.Time // when the last user left
}

// NewSharing returns a Sharing. Watches are shared while its Start runs. A negative option is an error.
func NewSharing(opts SharingOptions) (*Sharing, error) {
	if opts.Bytes < 0 {
		return nil, fmt.Errorf("aggregate: SharingOptions.Bytes is %d; want a positive number, or zero for %d", opts.Bytes, defaultBudget)
	}
	if opts.Bytes == 0 {
		opts.Bytes = defaultBudget
	}
	for name, d := range map[string]*time.Duration{"Linger": &opts.Linger, "Recheck": &opts.Recheck} {
		if *d < 0 {
			return nil, fmt.Errorf("aggregate: SharingOptions.%s is %s; want a positive duration, or zero for 1 minute", name, *d)
		}
		if *d == 0 {
			*d = time.Minute
		}
	}
	return &Sharing{opts: opts, opened: make(chan *watchCache), started: make(chan struct{}), ended: make(chan struct{}), caches: map[cacheKey]*shared{}}, nil
}

// Start runs the caches until ctx ends, and returns nil. Watches continue alone afterwards. A second call returns an
// error at once.
func (s *Sharing) Start(ctx context.Context) error {
	if s.running.Swap(true) {
		return errors.New("aggregate: the Sharing was started before")
	}
	ctx = logging.Into(ctx, s.opts.Logger, "sharing")
	var running sync.WaitGroup
	defer running.Wait()
	defer close(s.ended)
	close(s.started)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ticker := time.NewTicker(s.opts.Linger)
	defer ticker.Stop()
	for {
		select {
		case c := <-s.opened:
			running.Go(func() { c.run(ctx, s.opts.Recheck) })
		case <-ticker.C:
			s.sweep()
		case <-ctx.Done():
			return nil
		}
	}
}

// Started returns a channel that is closed when Start runs. Watches that begin earlier are not shared, so a server waits
// for it before it serves.
func (s *Sharing) Started() <-chan struct{} { return s.started }

// sweep removes the caches that were not used for Linger.
func (s *Sharing) sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, c := range s.caches {
		if c.users == 0 && time.Since(c.idle) >= s.opts.Linger {
			close(c.quit)
			delete(s.caches, key)
		}
	}
}

// join returns the cache of the source of f, or nil while Start does not run. The caller must call leave.
func (s *Sharing) join(f *feed) (_ *watchCache, leave func()) {
	select {
	case <-s.ended:
		return nil, nil
	case <-s.started:
	default:
		return nil, nil
	}
	c, opened := s.use(f)
	leave = func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		c.users--
		c.idle = time.Now()
	}
	if opened {
		select {
		case s.opened <- c.watchCache:
		case <-s.ended:
			c.end()
		}
	}
	return c.watchCache, leave
}

// key returns the key of the cache that f may follow.
func (f *feed) key() cacheKey {
	o := &f.api.opts
	return cacheKey{o.Identity, f.source.id, f.q.namespace, f.q.labels, f.q.fields, f.encoder.enc, o.Qualify, f.seed}
}

// has reports whether there is a cache that f could follow at once.
func (s *Sharing) has(f *feed) bool {
	s.mu.Lock()
	c := s.caches[f.key()]
	s.mu.Unlock()
	if c == nil {
		return false
	}
	return c.has(f.stamped())
}

// use returns the cache that f may follow, and whether it is a new one.
func (s *Sharing) use(f *feed) (_ *shared, opened bool) {
	key := f.key()
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.caches[key]
	if c == nil {
		c, opened = &shared{watchCache: newWatchCache(f.forCache(), &s.used, s.opts.Bytes)}, true
		s.caches[key] = c
	}
	c.users++
	return c, opened
}
