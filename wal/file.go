// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"

	"go.etcd.io/bbolt"
)

// File is a Log in one bbolt file, owned by one process. Concurrent calls share commits: the calls that wait during
// one commit are written by the next commit. So many concurrent calls cost little more than one call. A program that
// makes only one call at a time is not delayed by this.
type File struct {
	path   string
	opts   Options
	lock   *lock
	damage []*CorruptError // that Open found

	requests  chan *request
	writers   atomic.Int64  // number of writing calls in progress
	turns     chan func()   // funcs that the owner runs between commits
	stop      chan struct{} // closed to end the owner, once no call is in progress
	stopped   chan struct{} // closed when the owner has returned
	released  chan struct{} // closed when Close is done
	abandon   sync.Once
	abandoned chan struct{} // closed if the owner may wait for ever for a lock of bbolt

	// Only the owner uses these fields.
	pruned   []byte
	commitTx func(*bbolt.Tx) error

	latch latch

	mu       sync.Mutex
	store    *store         // Compact replaces it
	retired  sync.WaitGroup // waits for the end of the stores that Compact replaced
	closed   bool
	calls    sync.WaitGroup
	closeErr error
}

var _ Log = (*File)(nil)

// Begin implements [Log].
func (f *File) Begin(ctx context.Context, e Entry) (Entry, error) {
	if err := e.validate(); err != nil {
		return Entry{}, f.wrap("begin", e.ID, err)
	}
	return f.write(ctx, "begin", e.ID, func(s *state) (Entry, error) { return s.begin(e) })
}

// Advance implements [Log].
func (f *File) Advance(ctx context.Context, e Entry) (Entry, error) {
	if err := e.validate(); err != nil {
		return Entry{}, f.wrap("advance", e.ID, err)
	}
	return f.write(ctx, "advance", e.ID, func(s *state) (Entry, error) { return s.advance(e) })
}

// End implements [Log].
func (f *File) End(ctx context.Context, e Entry, outcome []byte) error {
	if len(outcome) > MaxOutcome {
		return f.wrap("end", e.ID, tooLong("outcome", len(outcome), MaxOutcome))
	}
	_, err := f.write(ctx, "end", e.ID, func(s *state) (Entry, error) { return Entry{}, s.end(e, outcome) })
	return err
}

// Open implements [Log].
func (f *File) Open(ctx context.Context) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if !f.opened() {
			yield(Entry{}, f.wrap("list", "", errNotOpened))
			return
		}
		for _, c := range f.damage {
			if c.ID == "" && c.Key == "" && !yield(Entry{}, c) {
				return
			}
		}
		var after []byte
		for {
			// Read in short transactions: an open transaction would block the growth of the file.
			var page []listed
			err := f.read(ctx, func(s *state) error {
				page, after = s.openAfter(after)
				return nil
			})
			if err != nil {
				yield(Entry{}, f.wrap("list", "", err))
				return
			}
			for _, o := range page {
				if !yield(o.entry, o.err) {
					return
				}
			}
			if after == nil {
				return
			}
		}
	}
}

// Find implements [Log].
func (f *File) Find(ctx context.Context, key string) (Entry, error) {
	if !f.opened() {
		return Entry{}, f.wrap("find", "", errNotOpened)
	}
	var e Entry
	err := f.read(ctx, func(s *state) (err error) {
		if key == "" {
			return ErrNotFound
		}
		e, err = s.byKey(key)
		return err
	})
	if err != nil {
		return e, fmt.Errorf("wal %s: find key %q: %w", f.path, key, err)
	}
	return e, nil
}

// Shared implements [Log]. It returns false: a File is exclusive to the process that has it open.
func (f *File) Shared() bool { return false }

// Decision implements [Log]. It returns ErrNoDecisions: a File never held records with a decision.
func (f *File) Decision(context.Context, string) (Decision, error) {
	return Decision{}, ErrNoDecisions
}

// Close waits for calls in progress, then releases the file. It is idempotent.
func (f *File) Close() error {
	if !f.opened() {
		return fmt.Errorf("wal: close: %w", errNotOpened)
	}
	f.mu.Lock()
	first := !f.closed
	f.closed = true
	f.mu.Unlock()
	if !first {
		<-f.released
		return f.closeErr
	}
	defer close(f.released)
	f.calls.Wait()
	close(f.stop)
	select {
	case <-f.stopped:
	case <-f.abandoned: // the owner may never return
	}
	err := f.store.close()
	f.retired.Wait()
	if err = errors.Join(err, f.lock.release()); err != nil {
		f.closeErr = explain(f.path, "close", err)
	}
	return f.closeErr
}

var errNotOpened = errors.New("the File was not made by wal.Open")

// opened reports whether the File was made by Open. The channels of a nil or zero File would block for ever.
func (f *File) opened() bool { return f != nil && f.requests != nil }

// enter registers a call in calls, so that Close waits for the call to end.
func (f *File) enter(ctx context.Context) error {
	if !f.opened() {
		return errNotOpened
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return ErrClosed
	}
	if err := f.latch.refusal(); err != nil {
		return err
	}
	f.calls.Add(1)
	return nil
}

func (f *File) write(ctx context.Context, op, id string, apply func(*state) (Entry, error)) (Entry, error) {
	if err := f.enter(ctx); err != nil {
		return Entry{}, f.wrap(op, id, err)
	}
	defer f.calls.Done()
	f.writers.Add(1)
	defer f.writers.Add(-1)
	r := &request{id: id, apply: apply, done: make(chan struct{})}
	select {
	case f.requests <- r:
		select {
		case <-r.done:
			return r.entry, f.wrap(op, id, r.err)
		case <-f.abandoned:
			return Entry{}, f.wrap(op, id, &InDoubtError{Path: f.path, ID: id, Err: f.latch.refusal()})
		}
	case <-f.abandoned:
		return Entry{}, f.wrap(op, id, f.latch.refusal())
	case <-ctx.Done():
		return Entry{}, f.wrap(op, id, context.Cause(ctx))
	}
}

func (f *File) read(ctx context.Context, fn func(*state) error) error {
	if err := f.enter(ctx); err != nil {
		return err
	}
	defer f.calls.Done()
	return f.view(func(_ *store, tx *bbolt.Tx) error { return fn(newState(f, tx)) })
}

// view runs fn in a read transaction of the present store.
func (f *File) view(fn func(*store, *bbolt.Tx) error) error {
	f.mu.Lock()
	s := f.store
	s.readers.Add(1)
	f.mu.Unlock()
	defer s.readers.Done()
	tx, err := s.begin(false)
	if err != nil {
		f.settle(err)
		return f.latch.refusal()
	}
	err = guard(func() error { return fn(s, tx) })
	if ended := s.end(tx); ended != nil {
		f.settle(ended)
		err = errors.Join(err, ended)
	}
	return err
}

// settle makes all later calls fail, after a failure. If bbolt panicked with locks held, the owner may be blocked by
// one of these locks: settle then releases the calls that wait for the owner.
func (f *File) settle(err error) {
	f.latch.set(err)
	f.mu.Lock()
	s := f.store
	f.mu.Unlock()
	if s.isWedged() {
		f.abandon.Do(func() { close(f.abandoned) })
	}
}

func (f *File) wrap(op, id string, err error) error {
	if err == nil {
		return nil
	}
	if !f.opened() {
		return fmt.Errorf("wal: %s: %w", op, err)
	}
	if id == "" {
		return fmt.Errorf("wal %s: %s: %w", f.path, op, err)
	}
	return fmt.Errorf("wal %s: %s %q: %w", f.path, op, id, err)
}
