// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/atoll-dev/atoll/wal"
)

// Of a log that several coordinators share, each leaves the operations of the
// others alone until they show no sign of life for one lease, on its own clock.
// Then it takes them over by compare-and-swap of the entry's owner. The log
// decides nothing else: operations are decided at their primaries, so a former
// owner that goes on meets its successor there.

// watched is another coordinator's entry as it was last seen.
type watched struct {
	version string
	since   time.Time // when it was first seen so, on this coordinator's clock
	seen    time.Time // when it was last seen
}

// see is what is known of an entry that is seen in a version now.
func (w watched) see(version string, now time.Time) watched {
	if w.version != version || w.since.IsZero() {
		w = watched{version: version, since: now}
	}
	w.seen = now
	return w
}

// still is for how long the entry has been seen in one version.
func (w watched) still() time.Duration { return w.seen.Sub(w.since) }

// lapsed says whether the lease of an entry's holder has run out, as far as has
// been seen here. It has for one's own.
func (c *Coordinator) lapsed(e wal.Entry) bool {
	if !c.log.Shared() || e.Owner == c.holder {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.watched[e.ID].see(e.Version, time.Now())
	c.watched[e.ID] = w
	return w.still() >= c.opts.LeaseTimeout
}

// idle is how long ago an entry that came to nothing was begun: by the clock of
// who began it if that is this coordinator's identity, else as far as has been
// seen here.
func (c *Coordinator) idle(e wal.Entry) time.Duration {
	now := time.Now()
	if !c.log.Shared() {
		return now.Sub(e.Began)
	}
	if j, err := decodeJournal(e); err == nil && j.Operation.Coordinator == c.opts.Identity {
		return now.Sub(e.Began)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.nothing[e.ID].see("", now) // whatever its version: its end is proved
	c.nothing[e.ID] = w
	return w.still()
}

// unwatch forgets the entries that are no longer seen: others have ended them.
func (c *Coordinator) unwatch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(c.watched, func(_ string, w watched) bool { return now.Sub(w.seen) > 2*c.opts.LeaseTimeout })
	maps.DeleteFunc(c.nothing, func(_ string, w watched) bool { return now.Sub(w.seen) > 2*c.opts.LeaseTimeout })
	maps.DeleteFunc(c.rest, func(_ string, until time.Time) bool { return now.After(until) })
}

// adopt makes an open entry of a shared log this coordinator's. It watches the
// entry for one lease if it must, and returns errAtWork if its holder is alive.
func (c *Coordinator) adopt(ctx context.Context, e wal.Entry) (wal.Entry, error) {
	if !c.log.Shared() || e.Owner == c.holder {
		return e, nil
	}
	was := e.Version
	for !c.lapsed(e) {
		select {
		case <-time.After(c.opts.LeaseTimeout / 4):
		case <-ctx.Done():
			return e, errAtWork
		}
		now, err := c.reread(ctx, e)
		if err != nil {
			return e, err
		}
		if now.Version != was {
			return e, errAtWork
		}
	}
	return c.seize(ctx, e)
}

// foreign says whether another coordinator works on an entry of a shared log, or
// did, and how it is named: by its identity, as in claims.
func (c *Coordinator) foreign(e wal.Entry) (identity string, ok bool) {
	if !c.log.Shared() || e.Owner == c.holder {
		return "", false
	}
	identity = identityOf(e.Owner)
	return identity, identity != c.opts.Identity
}

// identityOf is the identity of the holder of an entry, of which a shared log
// holds one for each process.
func identityOf(holder string) string {
	if at := strings.LastIndex(holder, "/"); at >= 0 {
		return holder[:at]
	}
	return holder
}

// takeOver makes an open entry of a shared log this coordinator's at once, be
// its holder alive or not: every write of the holder's to the log fails then.
func (c *Coordinator) takeOver(ctx context.Context, e wal.Entry) error {
	for range takeovers {
		now, err := c.reread(ctx, e)
		if err != nil {
			return err
		}
		if _, err = c.seize(ctx, now); !errors.Is(err, errAtWork) {
			return err
		}
	}
	return errAtWork
}

// takeovers is how often an entry is taken that goes on meanwhile.
const takeovers = 5

// seize writes this coordinator into an entry that is as it was read, or returns
// errAtWork.
func (c *Coordinator) seize(ctx context.Context, e wal.Entry) (wal.Entry, error) {
	c.mu.Lock()
	delete(c.watched, e.ID)
	c.mu.Unlock()
	e.Owner = c.holder
	adopted, err := c.log.Advance(ctx, e)
	switch {
	case errors.Is(err, wal.ErrStale):
		return e, errAtWork
	case err != nil:
		return e, fmt.Errorf("operation %s: write-ahead log: %w", e.ID, err)
	}
	return adopted, nil
}
