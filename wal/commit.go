// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"context"
	"errors"
	"runtime"
	"time"
)

// maxBatch is the maximum number of calls that share a commit. Together with MaxData it bounds the size of a
// commit.
const maxBatch = 256

// request is one writing call, sent to the owner (the only goroutine that writes). After the owner has received the
// request, the result of the call depends only on the outcome of a commit, and no longer on the end of the call's
// context.
type request struct {
	id    string
	apply func(*state) (Entry, error)

	entry Entry
	err   error
	done  chan struct{}
}

// own runs the owner, the only goroutine that writes. It collects the waiting calls, commits them together and
// returns their results.
func (f *File) own() {
	defer close(f.stopped)
	var last group
	for {
		select {
		case r := <-f.requests:
			batch := gather(f.requests, r, last)
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

// turn makes the owner run the func do between two commits, and returns do's error. op names the operation in
// errors.
func (f *File) turn(ctx context.Context, op string, do func() error) error {
	if err := f.enter(ctx); err != nil {
		return f.wrap(op, "", err)
	}
	defer f.calls.Done()
	done := make(chan error, 1)
	select {
	case f.turns <- func() { done <- do() }:
		select {
		case err := <-done:
			return f.wrap(op, "", err)
		case <-f.abandoned:
			return f.wrap(op, "", f.latch.refusal())
		}
	case <-f.abandoned:
		return f.wrap(op, "", f.latch.refusal())
	case <-ctx.Done():
		return f.wrap(op, "", context.Cause(ctx))
	}
}

// group describes the callers at the end of a commit. A caller whose call has just ended is likely to call again soon.
// If the next commit starts before that, the new call waits until that commit has ended, too.
type group struct {
	callers  int           // callers whose call waits or has just been answered
	patience time.Duration // how long gather may wait: a small fraction of a commit's time
}

// maxYields limits the wait of gather if the clock does not advance.
const maxYields = 1 << 10

// gather collects the waiting calls. If fewer calls wait than there were callers after the last commit, gather yields
// to the other callers, for at most last.patience. It uses no timer, and does not delay the calls of a program that
// makes only one call at a time.
func gather(requests <-chan *request, first *request, last group) []*request {
	batch := []*request{first}
	start := time.Now()
	for yields := 0; len(batch) < maxBatch; {
		select {
		case r := <-requests:
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

// commit applies batch in one transaction and sets the results of its requests.
func (f *File) commit(batch []*request) {
	if err := f.latch.refusal(); err != nil {
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
		f.latch.set(err)
		for _, r := range batch {
			if r.err == nil {
				r.err = &InDoubtError{Path: f.path, ID: r.id, Err: err}
			} else {
				r.err = f.latch.refusal() // r may have read changes that are in doubt
			}
			r.entry = Entry{}
		}
	case f.latch.refusal() != nil:
		for _, r := range batch {
			r.entry, r.err = Entry{}, f.latch.refusal()
		}
		return
	case len(batch) > 1:
		// Nothing was written: retry the calls one by one, so that the error of one does not fail the others.
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

// transact applies batch. It returns the error, and whether it began to write. If it did not begin, nothing has
// changed.
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
		if after, err = s.prune(f.pruned, len(batch), f.opts.Retention); err != nil {
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
