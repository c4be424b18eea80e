// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"context"
	"errors"
	"runtime"
	"time"
)

// maxBatch bounds how many calls share a commit, and with MaxData its size.
const maxBatch = 256

// request is one writing call on its way to the owner. From the moment that the owner receives it, it is answered by the
// outcome of a commit and no longer by its context.
type request struct {
	id    string
	apply func(*state) (Entry, error)

	entry Entry
	err   error
	done  chan struct{}
}

// own is the only goroutine that writes. It takes whatever waits, commits once and answers all: no timer, so that a
// lone call is never delayed.
func (f *File) own() {
	defer close(f.stopped)
	var last group
	for {
		select {
		case r := <-f.requests:
			batch := f.gather(r, last)
			start := time.Now()
			f.commit(batch)
			last = group{callers: int(f.writers.Load()), patience: time.Since(start) / 8}
			for _, r := range batch {
				close(r.done)
			}
		case turn := <-f.turns:
			turn()
		case <-f.stop:
			return
		}
	}
}

// turn lets the owner run do between two commits, and returns its error. op names it in errors.
func (f *File) turn(ctx context.Context, op string, do func() error) error {
	if err := f.enter(ctx); err != nil {
		return f.wrap(op, "", err)
	}
	defer f.leave()
	done := make(chan error, 1)
	select {
	case f.turns <- func() { done <- do() }:
		select {
		case err := <-done:
			return f.wrap(op, "", err)
		case <-f.abandoned:
			return f.wrap(op, "", f.refusal())
		}
	case <-f.abandoned:
		return f.wrap(op, "", f.refusal())
	case <-ctx.Done():
		return f.wrap(op, "", context.Cause(ctx))
	}
}

// group is what the owner knows of the callers when it answers some of them: those are about to call again, and a commit
// that leaves without them makes them all wait for it.
type group struct {
	callers  int           // in a call, answered or waiting
	patience time.Duration // a small part of a commit
}

// maxYields bounds the wait for callers where the clock does not move.
const maxYields = 1 << 10

// gather takes what waits. If there were more callers when the last commit was answered, it lets them run for a moment. It
// waits for no timer, and a lone call for nobody.
func (f *File) gather(first *request, last group) []*request {
	batch := []*request{first}
	start := time.Now()
	for yields := 0; len(batch) < maxBatch; {
		select {
		case r := <-f.requests:
			batch = append(batch, r)
		default:
			if yields++; len(batch) >= last.callers || yields > maxYields || time.Since(start) >= last.patience {
				return batch
			}
			runtime.Gosched()
		}
	}
	return batch
}

// commit applies batch in one transaction and fills in the answers.
func (f *File) commit(batch []*request) {
	if err := f.refusal(); err != nil {
		for _, r := range batch {
			r.entry, r.err = Entry{}, err
		}
		return
	}
	start := time.Now()
	wrote, err := f.transact(batch)
	switch {
	case err == nil && !wrote:
		return
	case err == nil:
	case wrote:
		err = explain(f.path, "commit", err)
		f.latch(err)
		for _, r := range batch {
			if r.err == nil {
				r.err = &InDoubtError{Path: f.path, ID: r.id, Err: err}
			} else {
				r.err = f.refusal() // what it was told may rest on what is in doubt
			}
			r.entry = Entry{}
		}
	case f.refusal() != nil:
		for _, r := range batch {
			r.entry, r.err = Entry{}, f.refusal()
		}
		return
	case len(batch) > 1:
		// Nothing was written, and one call's trouble stays its own.
		for _, r := range batch {
			f.commit([]*request{r})
		}
		return
	default:
		batch[0].entry, batch[0].err = Entry{}, explain(f.path, "write", err)
		return
	}
	if o := f.opts.Observer; o != nil && o.Committed != nil {
		o.Committed(CommitEvent{Calls: len(batch), Elapsed: time.Since(start), Err: err})
	}
}

// transact returns whether it began to write, and what failed. If it did not, nothing has changed.
func (f *File) transact(batch []*request) (wrote bool, err error) {
	tx, err := f.store.begin(true)
	if err != nil {
		f.settle(err)
		return false, err
	}
	var id int
	after := f.pruned
	err = guard(func() (err error) {
		s := newState(f, tx)
		for _, r := range batch {
			r.entry, r.err = r.apply(s)
			if e, ok := errors.AsType[*storageError](r.err); ok {
				return e.err
			}
		}
		if !s.changed {
			return nil
		}
		if after, err = s.prune(f.pruned, f.opts.Retention); err != nil {
			return err
		}
		if err := s.finish(); err != nil {
			return err
		}
		wrote, id = true, tx.ID()
		return f.commitTx(tx)
	})
	if wrote && err == nil {
		f.pruned = after
		f.store.last.Store(uint64(id))
		return wrote, nil
	}
	if rollback := f.store.end(tx); errors.Is(rollback, errDamaged) {
		f.settle(rollback)
		err = errors.Join(err, rollback)
	}
	return wrote, err
}
