// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelog

import (
	"context"
	"errors"

	"github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/wal"
)

// Propose implements [wal.Decider].
func (l *Log) Propose(ctx context.Context, e wal.Entry) (wal.Entry, wal.Decision, error) {
	o, err := l.begin(ctx, e, v1alpha1.OperationPending)
	return both(o, err)
}

// Decide implements [wal.Decider].
func (l *Log) Decide(ctx context.Context, e wal.Entry, target, uid string) (wal.Entry, wal.Decision, error) {
	ctx, cancel, err := l.taken(ctx)
	if err != nil {
		return wal.Entry{}, wal.Decision{}, err
	}
	defer cancel()
	if err := validate(e); err != nil {
		return wal.Entry{}, wal.Decision{}, err
	}
	fields := l.present(e)
	fields["target"], fields["targetUID"] = target, uid
	o, err := l.patch(ctx, "decide", e.ID, e.Version, v1alpha1.OperationCommitted, fields)
	return both(o, err)
}

func both(o *v1alpha1.Operation, err error) (wal.Entry, wal.Decision, error) {
	e, err := stored(o, err)
	if o == nil {
		return e, wal.Decision{}, err
	}
	return e, decision(o), err
}

func decision(o *v1alpha1.Operation) wal.Decision {
	return wal.Decision{
		ID: o.Name, UID: string(o.UID), Version: version(o), Owner: o.Spec.Holder, Decided: o.Spec.State == v1alpha1.OperationCommitted,
		Target: o.Spec.Target, TargetUID: string(o.Spec.TargetUID),
	}
}

// Withdraw implements [wal.Decider].
func (l *Log) Withdraw(ctx context.Context, d wal.Decision, outcome []byte) error {
	ctx, cancel, err := l.taken(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	if d.Decided {
		return wal.ErrStale
	}
	// At this version it is undecided, so the same write cannot end a decided one.
	o, err := l.patch(ctx, "withdraw", d.ID, d.Version, v1alpha1.OperationEnded, ending(outcome))
	if errors.Is(err, wal.ErrStale) && o != nil && !live(o) {
		return wal.ErrNotFound // who ended it may have decided it before
	}
	return err
}

// Decision implements [wal.Decider].
func (l *Log) Decision(ctx context.Context, id string) (wal.Decision, error) {
	ctx, cancel, err := l.bounded(ctx)
	if err != nil {
		return wal.Decision{}, err
	}
	defer cancel()
	o, err := l.get(ctx, id)
	switch {
	case err != nil:
		return wal.Decision{}, err
	case o == nil || !live(o):
		return wal.Decision{}, wal.ErrNotFound
	default:
		return decision(o), nil
	}
}
