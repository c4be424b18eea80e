// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/wal"
)

// recoveries bounds the number of concurrent recoveries.
const recoveries = 16

// Recover settles every open operation of the log once: it deletes the reservations of an operation
// that is not committed, and rolls a committed one forward. It also continues each change of the
// membership, of any coordinator, that shows no sign of life for a lease. It returns the
// operations, oldest first. The error joins one error for each operation that could not be settled,
// such as an *InDoubtError while a peer does not answer, a *wal.CorruptError for an entry that
// cannot be read, or an error that wraps ErrOtherLog for a log of another ring.
//
// A removal that waits for finalizers of other controllers stays open and Committed. An operation
// without effect stays in the log for Options.MaxInFlight if one of its requests may still be
// applied, and is returned once; a peer that could not be asked for its reservation is PeerPending.
// Recover blocks until it has tried all open operations, is idempotent, and skips operations that
// this Coordinator works on, or in a shared log another one.
func (c *Coordinator) Recover(ctx context.Context) ([]*Operation, error) {
	var (
		settled []*Operation
		errs    []error
	)
	c.recovery.recoverOpen(ctx, func(wal.Entry) bool { return true }, func(operation *Operation, err error) {
		if operation != nil {
			settled = append(settled, operation)
		}
		if unsettled(err) {
			errs = append(errs, err)
		}
	})
	errs = append(errs, c.changes.finishChanges(ctx))
	slices.SortFunc(settled, func(a, b *Operation) int { return strings.Compare(a.ID, b.ID) })
	return settled, errors.Join(errs...)
}

// recovery settles the open entries of the log.
type recovery struct {
	opts     *Options
	clusters *clusters
	entries  *entries
	kinds    *kinds
	identity *Identity
	changes  *changes
	executor *executor
}

// recoverFirst settles open operations before a new one begins. After it could not settle an
// operation, it skips that operation for a lease, so that an unreachable peer does not delay
// every new operation. The error is why the first unsettled operation stays open.
func (re *recovery) recoverFirst(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, re.opts.Cleanup)
	defer cancel()
	due := func(e wal.Entry) bool {
		o := openEntry{nothing: cameToNothing(e), lapsed: re.entries.lapsed(e)}
		if o.nothing {
			o.idle = re.entries.idle(e)
		}
		re.entries.mu.Lock()
		o.rest = re.entries.retryAt[e.ID]
		re.entries.mu.Unlock()
		return o.due(time.Now(), re.opts.MaxInFlight)
	}
	var open error
	re.recoverOpen(ctx, due, func(operation *Operation, err error) {
		switch {
		case open != nil:
		case unsettled(err):
			open = err
		case operation != nil:
			open = operation.Peers.Err()
		}
	})
	return open
}

// openEntry has the properties of an open entry by which recoverFirst decides whether to settle it.
type openEntry struct {
	nothing bool          // the log has stored that the operation ended without effect
	idle    time.Duration // the age of the entry (see entries.idle); set only if the field nothing is true
	lapsed  bool          // no other coordinator works on the operation
	rest    time.Time     // do not retry before then
}

// due reports whether to settle the entry before a new operation begins. It is false while another
// coordinator works on the operation, and before a retry is due. It is also false for an operation without
// effect while one of its requests may still be applied: an earlier recovery has reported that operation.
func (o openEntry) due(now time.Time, inFlight time.Duration) bool {
	return o.lapsed && now.After(o.rest) && !(o.nothing && o.idle <= inFlight)
}

// recoverOpen concurrently settles the open entries for which due returns true, and calls tell
// with each result, one call at a time. Only the entries that it works on are in memory.
func (re *recovery) recoverOpen(ctx context.Context, due func(wal.Entry) bool, tell func(*Operation, error)) {
	var (
		g  errgroup.Group
		mu sync.Mutex
	)
	report := func(operation *Operation, err error) {
		mu.Lock()
		defer mu.Unlock()
		tell(operation, err)
	}
	if err := re.identity.checkLog(ctx); err != nil {
		report(nil, err)
		return
	}
	g.SetLimit(recoveries)
	for entry, err := range re.entries.log.Open(ctx) {
		switch {
		case err != nil:
			report(nil, fmt.Errorf("write-ahead log: %w", err))
		case due(entry):
			g.Go(func() error {
				operation, err := re.settle(ctx, entry)
				if !reported(entry, operation) && !errors.Is(err, errAtWork) && !errors.Is(err, errOver) {
					report(operation, err)
				}
				return nil
			})
		}
	}
	_ = g.Wait()
	re.entries.unwatch()
}

// cameToNothing reports whether an open entry stores that its operation ended without effect. Such
// an entry stays open because a request of the operation may still be applied.
func cameToNothing(e wal.Entry) bool {
	return e.State == string(protocol.Aborted) || e.State == string(protocol.Ended)
}

// unsettled reports whether an operation with the error err is still open. Other errors report how
// an operation ended.
func unsettled(err error) bool {
	_, doubt := errors.AsType[*InDoubtError](err)
	switch {
	case doubt:
		return true // whatever the InDoubtError wraps
	case err == nil, errors.Is(err, ErrAborted), errors.Is(err, ErrEnded), errors.Is(err, ErrNotFound):
		return false
	}
	for _, ended := range []any{new(*HeldError), new(*ConflictError)} {
		if errors.As(err, ended) {
			return false
		}
	}
	return true
}

// Reasons to skip an entry of the log.
var (
	errAtWork = errors.New("another call works on it")
	errOver   = errors.New("it has ended meanwhile")
)

// settle settles one open operation of the log. It returns errAtWork if this process works
// on the operation, and errOver if it has ended since entry was read.
func (re *recovery) settle(ctx context.Context, entry wal.Entry) (*Operation, error) {
	if !re.entries.begin(entry.ID) {
		return nil, errAtWork
	}
	defer re.entries.done(entry.ID)
	entry, err := re.entries.reread(ctx, entry)
	if err != nil {
		return nil, err
	}
	j, err := re.identity.ofThisRing(ctx, entry)
	if err != nil {
		return nil, err
	}
	if entry, err = re.entries.adopt(ctx, entry); err != nil {
		return nil, err
	}
	if j.Change != nil {
		return re.changes.settle(ctx, entry, *j.Change)
	}
	kind, err := re.kinds.find(j.groupKind())
	if err != nil {
		return nil, fmt.Errorf("operation %s: %w", entry.ID, err)
	}
	peers, err := re.clusters.peers(ctx)
	if err != nil {
		return nil, fmt.Errorf("operation %s: %w", entry.ID, err)
	}
	op := j.Operation
	if op.Action != protocol.Add {
		// The configured peers may have changed since the operation began, and the machine reads the
		// members again.
		op.Peers = peers
	}
	if entry.State == string(protocol.Aborted) {
		// The abort is proved: only requests that may still be applied are left.
		j.Record.Committing = false
	}
	r := re.executor.runner(kind, j.key(), protocol.Recover(op, j.Record), j)
	r.entry.took(entry)
	result, err := r.run(ctx)
	switch fateOf(result, err, func() time.Duration { return re.entries.idle(entry) }, re.opts.MaxInFlight) {
	case entryEnded:
		re.entries.forget(entry.ID)
	case entryKept:
		re.entries.postpone(entry.ID)
	case entryExpired:
		re.entries.forget(entry.ID)
		err = re.entries.log.End(context.WithoutCancel(ctx), r.entry.present(), r.conclusion().outcome())
	}
	return r.conclusion().conclude(ctx, result, err)
}

// settleAsked settles an open operation for a caller that asks for it. If another call of this
// process works on the operation, the error is an *InDoubtError.
func (re *recovery) settleAsked(ctx context.Context, entry wal.Entry) (*Operation, error) {
	if err := re.executor.tails.wait(ctx); err != nil {
		return nil, err
	}
	operation, err := re.settle(ctx, entry)
	if errors.Is(err, errAtWork) {
		err = &InDoubtError{Operation: entry.ID, Settles: "it is settled by the call that works on it", Err: err}
	}
	return operation, err
}

// Outcome returns the state of the operation with the given ID or idempotency key. It first
// settles an open operation, as far as the peers answer. The error is that of the operation
// itself, or an *InDoubtError while the outcome is unknown. It wraps wal.ErrNotFound if the log
// never had the operation or has dropped it, and ErrOtherLog if the operation began in another
// ring.
func (c *Coordinator) Outcome(ctx context.Context, id string) (*Operation, error) {
	return c.recovery.outcome(ctx, id)
}

func (re *recovery) outcome(ctx context.Context, id string) (*Operation, error) {
	if id == "" {
		return nil, errors.New("operation is empty: give its ID or its idempotency key")
	}
	for entry, err := range re.entries.log.Open(ctx) {
		if err != nil || entry.ID != id {
			continue
		}
		operation, err := re.settleAsked(ctx, entry)
		if !errors.Is(err, errOver) {
			return operation, err
		}
	}
	entry, err := re.entries.log.Find(ctx, "operation/"+id)
	if errors.Is(err, wal.ErrNotFound) {
		entry, err = re.entries.log.Find(ctx, id)
	}
	if err != nil {
		return nil, fmt.Errorf("operation %s: write-ahead log: %w", id, err)
	}
	if entry.Ended.IsZero() {
		operation, err := re.settleAsked(ctx, entry)
		if errors.Is(err, errOver) {
			return re.outcome(ctx, id)
		}
		return operation, err
	}
	re.clusters.acquaint(ctx)
	now := re.clusters.identities.origin()
	if j, err := decodeJournal(entry); err == nil && j.Origin.Known() && j.Origin.Foreign(now) {
		return nil, otherLog(entry.ID, j, now)
	}
	var o outcome
	if err := json.Unmarshal(entry.Outcome, &o); err != nil {
		return nil, fmt.Errorf("outcome of operation %s: %w", id, err)
	}
	operation := o.operation(entry.ID, Kind{Mode: o.Mode})
	switch o.State {
	case Done, Committed:
		return operation, nil
	case Ended:
		return operation, fmt.Errorf("operation %s: %w: %s", id, ErrEnded, o.because())
	default:
		return operation, fmt.Errorf("operation %s: %w: %s", id, ErrAborted, o.because())
	}
}
