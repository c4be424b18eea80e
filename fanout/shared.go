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

// A coordinator that shares its log leaves the operations of other coordinators alone until
// they show no sign of life for one lease, on its own clock. Then it takes them over by
// compare-and-swap of the entry's owner. The log decides nothing else. Operations are decided at
// their primaries, so a former owner that continues cannot contradict the new owner.

// watched is another coordinator's entry as last read.
type watched struct {
	version string
	since   time.Time // when this version was first read, on this coordinator's clock
	seen    time.Time // when it was last read
}

// see returns w, updated for a read of the entry in the given version at the time now.
func (w watched) see(version string, now time.Time) watched {
	if w.version != version || w.since.IsZero() {
		w = watched{version: version, since: now}
	}
	w.seen = now
	return w
}

// still returns how long the entry has kept its version.
func (w watched) still() time.Duration { return w.seen.Sub(w.since) }

// lapsed reports whether this coordinator may work on an entry: it owns the entry, or has seen
// the owner show no sign of life for a lease.
func (l *entries) lapsed(e wal.Entry) bool {
	if !l.log.Shared() || e.Owner == l.holder {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.watched[e.ID].see(e.Version, time.Now())
	l.watched[e.ID] = w
	return w.still() >= l.opts.LeaseTimeout
}

// idle returns the age of an entry whose operation had no effect. The age counts from the stored
// start if the log is exclusive, or if the operation's coordinator has the same identity as this
// one. Otherwise the age counts from this coordinator's first read of the entry.
func (l *entries) idle(e wal.Entry) time.Duration {
	now := time.Now()
	if !l.log.Shared() {
		return now.Sub(e.Began)
	}
	if j, err := decodeJournal(e); err == nil && j.Operation.Coordinator == l.opts.Identity {
		return now.Sub(e.Began)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.effectless[e.ID].see("", now) // the version does not matter: the operation's end is proved
	l.effectless[e.ID] = w
	return w.still()
}

// unwatch forgets the entries that were not read for two leases, because other coordinators have
// ended them. It also drops retry times that have passed.
func (l *entries) unwatch() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(l.watched, func(_ string, w watched) bool { return now.Sub(w.seen) > 2*l.opts.LeaseTimeout })
	maps.DeleteFunc(l.effectless, func(_ string, w watched) bool { return now.Sub(w.seen) > 2*l.opts.LeaseTimeout })
	maps.DeleteFunc(l.retryAt, func(_ string, until time.Time) bool { return now.After(until) })
}

// adopt takes over an open entry of a shared log. It watches the entry for one lease if
// necessary, and returns errAtWork if its owner is alive.
func (l *entries) adopt(ctx context.Context, e wal.Entry) (wal.Entry, error) {
	if !l.log.Shared() || e.Owner == l.holder {
		return e, nil
	}
	was := e.Version
	for !l.lapsed(e) {
		select {
		case <-time.After(l.opts.LeaseTimeout / 4):
		case <-ctx.Done():
			return e, errAtWork
		}
		now, err := l.reread(ctx, e)
		if err != nil {
			return e, err
		}
		if now.Version != was {
			return e, errAtWork
		}
	}
	return l.seize(ctx, e)
}

// foreign returns the identity of the coordinator that owns an entry of a shared log. ok is false
// if this coordinator or a process with the same identity owns the entry.
func (l *entries) foreign(e wal.Entry) (identity string, ok bool) {
	if !l.log.Shared() || e.Owner == l.holder {
		return "", false
	}
	identity = identityOf(e.Owner)
	return identity, identity != l.opts.Identity
}

// identityOf returns the identity in the name of an entry's owner. The name is unique per process,
// and the identity need not be.
func identityOf(holder string) string {
	if at := strings.LastIndex(holder, "/"); at >= 0 {
		return holder[:at]
	}
	return holder
}

// takeOver takes over an open entry of a shared log at once, whether its owner is alive or not:
// every later write of the entry by that owner fails.
func (l *entries) takeOver(ctx context.Context, e wal.Entry) error {
	for range takeovers {
		now, err := l.reread(ctx, e)
		if err != nil {
			return err
		}
		if _, err = l.seize(ctx, now); !errors.Is(err, errAtWork) {
			return err
		}
	}
	return errAtWork
}

// takeovers bounds how often takeOver tries while the entry changes.
const takeovers = 5

// seize writes this coordinator as the owner of an entry. It returns errAtWork if the entry has
// changed since it was read.
func (l *entries) seize(ctx context.Context, e wal.Entry) (wal.Entry, error) {
	l.mu.Lock()
	delete(l.watched, e.ID)
	l.mu.Unlock()
	e.Owner = l.holder
	adopted, err := l.log.Advance(ctx, e)
	switch {
	case errors.Is(err, wal.ErrStale):
		return e, errAtWork
	case err != nil:
		return e, fmt.Errorf("operation %s: write-ahead log: %w", e.ID, err)
	}
	return adopted, nil
}
