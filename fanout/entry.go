// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/atoll-dev/atoll/wal"
)

// logEntry is the log entry of the operation that this coordinator works on, as last written. Only
// one write of it runs at a time: a write of the operation or, in a shared log, a sign of life.
type logEntry struct {
	entries *entries
	turn    chan struct{} // holds one element during a write

	guard  sync.Mutex
	stored wal.Entry // zero without an entry
}

func newLogEntry(c *entries) *logEntry {
	return &logEntry{entries: c, turn: make(chan struct{}, 1)}
}

func (l *logEntry) present() wal.Entry {
	l.guard.Lock()
	defer l.guard.Unlock()
	return l.stored
}

func (l *logEntry) took(e wal.Entry) {
	l.guard.Lock()
	defer l.guard.Unlock()
	l.stored = e
}

// showLife writes signs of life for the other coordinators of a shared log, until the caller
// calls stop. stop waits for the last write.
func (l *logEntry) showLife(ctx context.Context) (stop func()) {
	if !l.entries.log.Shared() || l.present().ID == "" {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	wg.Go(func() { l.keepAlive(ctx) })
	return func() {
		cancel()
		wg.Wait()
	}
}

// keepAlive writes a sign of life every quarter of a lease, until ctx ends.
func (l *logEntry) keepAlive(ctx context.Context) {
	for {
		select {
		case <-time.After(l.entries.opts.LeaseTimeout / 4):
		case <-ctx.Done():
			return
		}
		if err := l.beat(ctx); errors.Is(err, wal.ErrStale) || errors.Is(err, wal.ErrNotFound) {
			return // another coordinator has the entry, or the entry has ended
		}
	}
}

// beat writes the entry without a change, as a sign of life. It does nothing before the entry is
// in the log.
func (l *logEntry) beat(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-l.turn }()
	e := l.present()
	if e.Version == "" {
		return nil
	}
	now, err := l.entries.log.Advance(ctx, e)
	if l.ownStale(e, now, err) {
		now, err = l.entries.log.Advance(ctx, now)
	}
	if err == nil {
		l.took(now)
	}
	return err
}

// advance writes e and returns the stored entry.
func (l *logEntry) advance(ctx context.Context, e wal.Entry) (wal.Entry, error) {
	now, err := l.entries.log.Advance(ctx, e)
	if l.ownStale(e, now, err) {
		e.Version = now.Version
		now, err = l.entries.log.Advance(ctx, e)
	}
	if errors.Is(err, wal.ErrStale) && now.Owner != e.Owner {
		err = fmt.Errorf("coordinator %s has taken the operation over, because it saw no sign of life for one lease, or a caller asked for it: %w", identityOf(now.Owner), err)
	}
	return now, err
}

// ownStale reports whether e is stale only because an earlier write of this coordinator was
// applied and its answer was lost. Then the stored entry still belongs to this coordinator: only
// this operation writes the entry, one write at a time.
func (l *logEntry) ownStale(e, now wal.Entry, err error) bool {
	return l.entries.log.Shared() && errors.Is(err, wal.ErrStale) &&
		now.ID == e.ID && now.Owner == e.Owner && now.Ended.IsZero() && now.Version != e.Version
}

// end ends e in the log. The log does not change an entry that has ended already. So for an
// operation without effect in a shared log, end reads the stored outcome, and returns
// wal.ErrStale if it differs: another coordinator took the entry over and may have committed the
// operation.
func (l *logEntry) end(ctx context.Context, e wal.Entry, outcome []byte, committed bool) error {
	log := l.entries.log
	err := log.End(ctx, e, outcome)
	if err != nil || committed || !log.Shared() {
		return err
	}
	ended, err := log.Find(ctx, e.Key)
	switch {
	case err != nil:
		return err
	case ended.ID != e.ID || !bytes.Equal(ended.Outcome, outcome):
		return wal.ErrStale
	}
	return nil
}
