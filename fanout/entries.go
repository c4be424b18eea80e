// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atoll-dev/atoll/wal"
)

// entries reads and writes the entries of the log. It records which operations this process
// works on, and which entries it watches or has postponed.
type entries struct {
	opts *Options
	log  wal.Log

	logged atomic.Int64 // duration of the last write to the log, in nanoseconds
	holder string       // this coordinator's name in a shared log; empty if the log is exclusive

	mu         sync.Mutex
	busy       map[string]bool      // operations that this process works on
	watched    map[string]watched   // entries of other coordinators
	effectless map[string]watched   // entries of a shared log whose operations had no effect
	retryAt    map[string]time.Time // when recoverFirst may retry an operation that could not be settled
}

func newEntries(opts *Options, log wal.Log) *entries {
	l := &entries{opts: opts, log: log, busy: map[string]bool{}, retryAt: map[string]time.Time{}}
	if log.Shared() {
		l.holder = opts.Identity + "/" + rand.Text()[:6]
		l.watched, l.effectless = map[string]watched{}, map[string]watched{}
	}
	return l
}

// begin marks an operation of the log as being worked on in this process. It returns false if the
// operation is marked already.
func (l *entries) begin(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy[id] {
		return false
	}
	l.busy[id] = true
	return true
}

func (l *entries) done(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.busy, id)
}

// reread returns the current state of an entry that was read before: conclusions from an older state
// would be wrong. It returns errOver if the operation has ended meanwhile.
func (l *entries) reread(ctx context.Context, entry wal.Entry) (wal.Entry, error) {
	if entry.Key == "" {
		return entry, nil // no Coordinator wrote it
	}
	now, err := l.log.Find(ctx, entry.Key)
	switch {
	case errors.Is(err, wal.ErrNotFound):
		return entry, errOver
	case err != nil:
		return entry, fmt.Errorf("operation %s: write-ahead log: %w", entry.ID, err)
	case now.ID != entry.ID || !now.Ended.IsZero():
		return entry, errOver
	}
	return now, nil
}

// postpone records that an operation could not be settled, so that recoverFirst skips it for a
// lease.
func (l *entries) postpone(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.retryAt[id] = time.Now().Add(l.opts.LeaseTimeout)
}

// forget drops the retry time that postpone set for an operation that has ended.
func (l *entries) forget(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.retryAt, id)
}

// journalled returns the log entry of an operation, open or ended.
func (l *entries) journalled(ctx context.Context, operation string) (wal.Entry, journal, error) {
	entry, err := wal.Entry{}, wal.ErrNotFound
	for e, failed := range l.log.Open(ctx) {
		if failed == nil && e.ID == operation {
			entry, err = e, nil
			break
		}
	}
	if err != nil {
		entry, err = l.log.Find(ctx, "operation/"+operation)
	}
	if err != nil {
		return wal.Entry{}, journal{}, err
	}
	j, err := decodeJournal(entry)
	return entry, j, err
}

// backlog returns how many entries are open, and which is the oldest. Damaged entries count too. It
// returns an error if it could not read to the end of the log.
func (l *entries) backlog(ctx context.Context) (BacklogEvent, error) {
	var e BacklogEvent
	for entry, err := range l.log.Open(ctx) {
		if _, corrupt := errors.AsType[*wal.CorruptError](err); err != nil && !corrupt {
			return BacklogEvent{}, fmt.Errorf("write-ahead log: %w", err)
		}
		e.Open++
		if e.Oldest.IsZero() || !entry.Began.IsZero() && entry.Began.Before(e.Oldest) {
			e.Oldest, e.Operation = entry.Began, entry.ID
		}
	}
	return e, nil
}

// openOperations returns, for each open entry of the log, the operation ID that the claims of the
// entry's objects carry. It skips changes of the membership and entries that cannot be read.
func (l *entries) openOperations(ctx context.Context) map[string]bool {
	open := map[string]bool{}
	for entry, err := range l.log.Open(ctx) {
		if err != nil {
			continue
		}
		if j, err := decodeJournal(entry); err == nil && j.Change == nil {
			open[j.Operation.ID] = true
		}
	}
	return open
}
