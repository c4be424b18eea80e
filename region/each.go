// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Each calls fn once per peer of the current Snapshot, in parallel and each with its own context, and collects every
// outcome. The error is nil if policy is met, even if some peers failed; otherwise it is a *PartialError. The Results
// are valid in both cases. Each waits for every fn, so fn must respect its context. If fn returns after its context
// ended, Err is set and Value is zero. If the Snapshot has no peer, every policy except BestEffort fails: with
// ErrUnknownPeer for each peer that Require names, else with ErrNoPeers.
func Each[T any](ctx context.Context, d Directory, op string, p Policy, fn func(context.Context, *Conn) (T, error)) (Results[T], error) {
	switch {
	case d == nil:
		return Results[T]{op: op}, errors.New("each: the Directory is nil")
	case fn == nil:
		return Results[T]{op: op}, errors.New("each: the func is nil")
	}
	snapshot := d.Snapshot()
	outcomes := make([]Outcome[T], snapshot.Len())
	t := newTally(p)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	i := 0
	for peer := range snapshot.Peers() {
		outcome := &outcomes[i]
		i++
		wg.Go(func() {
			began := time.Now()
			outcome.Peer = peer.Name
			outcome.Value, outcome.Err = ask(ctx, d, peer.Name, op, fn)
			outcome.Elapsed = time.Since(began)
			if reason := t.add(outcome.Peer, outcome.Err); reason != nil {
				cancel(reason)
			}
		})
	}
	wg.Wait()
	for _, name := range p.required {
		if _, ok := snapshot.Peer(name); !ok {
			outcomes = append(outcomes, Outcome[T]{Peer: name, Err: &Error{Peer: name, Op: op, Err: ErrUnknownPeer}})
		}
	}
	slices.SortFunc(outcomes, func(a, b Outcome[T]) int { return compareNames(a.Peer, b.Peer) })
	outcomes = slices.CompactFunc(outcomes, func(a, b Outcome[T]) bool { return a.Peer == b.Peer })
	r := Results[T]{op: op, outcomes: outcomes}
	if r.met(p) {
		return r, nil
	}
	if err := r.Err(); err != nil {
		return r, err
	}
	// Every peer that was asked responded, but the policy requires more peers than there are.
	why := ErrNoPeers
	if len(outcomes) > 0 {
		why = fmt.Errorf("%d peers answered, which does not meet %s", len(outcomes), p)
	}
	return r, newPartialError(op, len(outcomes), []*Error{{Op: op, Err: why}})
}

// ask calls fn for one peer.
func ask[T any](ctx context.Context, d Directory, name PeerName, op string, fn func(context.Context, *Conn) (T, error)) (T, error) {
	var zero T
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	conn, err := d.Conn(name)
	if err != nil {
		return zero, &Error{Peer: name, Op: op, Err: cause(err)}
	}
	value, err := fn(ctx, conn)
	if ended := context.Cause(ctx); ended != nil &&
		(err == nil || errors.Is(err, context.Canceled) || errors.Is(err, ended) && errors.Is(ctx.Err(), context.Canceled)) {
		// The cause of the context is more specific than "context canceled": it names the peer that failed, or states
		// that enough peers have responded.
		err = ended
	}
	if err == nil {
		return value, nil
	}
	return zero, &Error{Peer: name, Op: op, Err: cause(err)}
}
