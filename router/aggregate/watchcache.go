// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/atoll-dev/atoll/internal/logging"
)

// settling is how long the feed of a cache waits for events that are under way, before it begins anew at a later version.
const settling = 100 * time.Millisecond

// watchCache is the present objects and the latest events of one source, which several watches of one identity follow.
// One feed fills it.
type watchCache struct {
	feed  *feed
	in    chan news     // from the feed
	quit  chan struct{} // closed to end the cache
	used  *atomic.Int64 // the bytes of all caches of the Sharing
	limit int64
	sets  labelSets
	asked presence

	mu      sync.Mutex
	objects map[objectKey]*observed
	sorted  []*observed // the objects in order; nil: not computed since the last change
	history history
	bytes   int64  // that count in used
	at      string // the version of the objects; empty: they are between two versions
	stamp   uint64
	kind    string
	wanted  []string      // the versions for which watches wait
	refused bool          // the region no longer lets the identity read
	ended   bool          // the feed has ended
	changed chan struct{} // closed and replaced after each message
}

func newWatchCache(f *feed, used *atomic.Int64, limit int64) *watchCache {
	in := make(chan news)
	f.out, f.renewals = in, make(chan struct{}, 1)
	c := &watchCache{feed: f, in: in, quit: make(chan struct{}), sets: labelSets{}, used: used, limit: limit, objects: map[objectKey]*observed{}, changed: make(chan struct{})}
	f.behind = c.behind
	return c
}

// run fills the cache until ctx ends or the cache has no room. Every interval it asks the region whether the identity
// may still read.
func (c *watchCache) run(ctx context.Context, recheck time.Duration) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	defer c.end()
	running.Go(func() { c.feed.run(ctx) })
	running.Go(func() { c.recheck(ctx, recheck) })
	for {
		select {
		case n := <-c.in:
			if !c.apply(n) {
				logging.From(ctx).Info("the objects of a watch are no longer shared, because SharingOptions.Bytes has no room for them",
					"region", c.feed.source.region.String(), "resource", c.feed.source.common.String(), "bytes", c.limit)
				return
			}
		case <-c.quit:
			return
		case <-ctx.Done():
			return
		}
	}
}

// recheck asks the region every interval for one object, as the identity. If the region refuses, the watch ends, and the
// next one is refused too.
func (c *watchCache) recheck(ctx context.Context, interval time.Duration) {
	f := c.feed
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if _, err := f.api.present(ctx, f.q, &f.source, f.api.encoder(f.q, f.encoder.enc, nil), f.api.opts.Answer); stateOf(err).refused() {
			c.mu.Lock()
			c.refused = true
			c.mu.Unlock()
			c.renew()
		}
	}
}

// want makes the feed begin anew if it does not reach a version soon.
func (c *watchCache) want(rv string) {
	c.mu.Lock()
	c.wanted = append(c.wanted, rv)
	c.mu.Unlock()
	c.renew()
}

// behind reports whether the feed must begin anew.
func (c *watchCache) behind() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wanted = slices.DeleteFunc(c.wanted, c.reached)
	must := len(c.wanted) > 0 || c.refused
	c.wanted, c.refused = nil, false // the next round serves them
	return must
}

// reached reports whether the objects are those of version rv or later. c.mu must be locked.
func (c *watchCache) reached(rv string) bool { return c.at != "" && notAfter(rv, c.at) }

// renew makes the feed ask whether it is behind.
func (c *watchCache) renew() {
	select {
	case c.feed.renewals <- struct{}{}:
	default:
	}
}

// apply records a message of the feed. It returns false if the cache has no room for it.
func (c *watchCache) apply(n news) bool {
	n = n.compact(c.sets) // c.sets belongs to this goroutine
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.bytes
	c.bytes -= c.history.bytes
	if n.object != nil {
		c.sorted = nil
		c.bytes -= c.objects[n.object.at].size()
		if n.kind == watch.Deleted {
			delete(c.objects, n.object.at)
		} else {
			c.objects[n.object.at] = n.object
			c.bytes += n.object.size()
		}
	}
	if n.at != "" || n.object != nil {
		c.at, c.stamp = n.at, n.stamp
	}
	if n.listed != "" {
		c.kind = n.listed
	}
	c.history.add(n)
	c.bytes += c.history.bytes
	c.wake()
	return c.used.Add(c.bytes-before) <= c.limit
}

func (c *watchCache) wake() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// end forgets everything.
func (c *watchCache) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used.Add(-c.bytes)
	c.objects, c.sorted, c.history, c.bytes, c.ended = nil, nil, history{}, 0, true
	c.wake()
}

// start has the objects that a watch delivers before it follows a cache, and the number of the next message.
type start struct {
	objects []*observed
	at      string
	stamp   uint64
	kind    string
	next    uint64
}

// enter waits until a consumer can follow the cache. A consumer with the state at version rv needs the messages after
// it. A consumer without a state (rv is empty) needs the objects at version now or later. enter returns false if the
// consumer cannot follow the cache, or the limit has passed.
func (c *watchCache) enter(ctx context.Context, rv string, stamp uint64, now string, limit time.Duration) (start, bool) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for wanted := false; ; wanted = true {
		e, ok, final, changed := c.locate(rv, stamp, now)
		if final {
			return e, ok
		}
		if !wanted {
			c.want(now)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return start{}, false
		}
	}
}

// locate returns the start of a consumer, as enter does. final is false if the cache is behind version now.
func (c *watchCache) locate(rv string, stamp uint64, now string) (e start, ok, final bool, changed <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return start{}, false, true, nil
	}
	current := c.reached(now)
	if rv != "" {
		next, found := c.history.find(rv, stamp)
		return start{at: rv, stamp: stamp, kind: c.kind, next: next}, found, found || current, c.changed
	}
	if !current {
		return start{}, false, false, c.changed
	}
	if c.sorted == nil {
		c.sorted = make([]*observed, 0, len(c.objects))
		for _, o := range c.objects {
			c.sorted = append(c.sorted, o)
		}
		slices.SortFunc(c.sorted, func(a, b *observed) int { return comparePlaces(a.at, b.at) })
	}
	return start{objects: c.sorted, at: c.at, stamp: c.stamp, kind: c.kind, next: c.history.next()}, true, true, nil
}

// after returns the messages from a number on, and a channel that is closed after the next message. It returns false if
// the cache does not have these messages.
func (c *watchCache) after(number uint64) ([]news, <-chan struct{}, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return nil, nil, false
	}
	messages, ok := c.history.after(number)
	return messages, c.changed, ok
}

// ledger returns the ledger of a consumer that has received all messages up to a number. It returns nil if there are
// later ones.
func (c *watchCache) ledger(number uint64) *ledger {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended || number != c.history.next() {
		return nil
	}
	l := newLedger()
	for _, o := range c.objects {
		l.hold(o)
	}
	return l
}

// has reports whether a consumer with the state at version rv can follow the cache at once.
func (c *watchCache) has(rv string, stamp uint64) bool {
	_, ok, _, _ := c.locate(rv, stamp, rv)
	return ok
}
