// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/atoll-dev/atoll/wal"
	"github.com/atoll-dev/atoll/wal/v1alpha1"
)

// Advance implements [wal.Log].
func (l *Log) Advance(ctx context.Context, e wal.Entry) (wal.Entry, error) {
	ctx, cancel, err := l.writeContext(ctx)
	if err != nil {
		return wal.Entry{}, err
	}
	defer cancel()
	if err := validate(e); err != nil {
		return wal.Entry{}, err
	}
	return asEntry(l.patch(ctx, "advance", e.ID, e.Version, "", l.present(e)))
}

// present returns the fields of a record that Advance replaces.
func (l *Log) present(e wal.Entry) map[string]any {
	fields := map[string]any{"holder": e.Owner, "step": e.State, "payload": e.Data}
	if l.opts.Describe != nil {
		d := l.opts.Describe(e)
		fields["action"], fields["object"] = cut(d.Action, 64), cut(d.Object, 1024)
	}
	return fields
}

// live reports whether the record o is an entry that has not ended.
func live(o *v1alpha1.Operation) bool {
	switch o.Spec.State {
	case v1alpha1.OperationOpen, v1alpha1.OperationPending, v1alpha1.OperationCommitted:
		return true
	}
	return false
}

// asEntry returns the entry in o together with err. A record whose begin is not complete, or that only holds a key, is
// not an entry: for such a record asEntry returns the zero Entry, and ErrNotFound instead of ErrStale.
func asEntry(o *v1alpha1.Operation, err error) (wal.Entry, error) {
	if o != nil && !live(o) && o.Spec.State != v1alpha1.OperationEnded {
		if errors.Is(err, wal.ErrStale) {
			err = wal.ErrNotFound
		}
		o = nil
	}
	return toEntry(o, err)
}

// End implements [wal.Log]. It also prunes some of the entries that ended longer than Options.Retention ago.
func (l *Log) End(ctx context.Context, e wal.Entry, outcome []byte) error {
	ctx, cancel, err := l.writeContext(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	if len(outcome) > wal.MaxOutcome {
		return &wal.FieldError{Field: "outcome", Reason: fmt.Sprintf("is %d bytes long, at most %d are allowed", len(outcome), wal.MaxOutcome)}
	}
	err = l.end(ctx, e.ID, e.Version, outcome)
	if err == nil {
		l.prune(ctx)
	}
	return err
}

// end marks a live record as ended. It leaves an ended or unknown record unchanged.
func (l *Log) end(ctx context.Context, id, v string, outcome []byte) error {
	o, err := l.patch(ctx, "end", id, v, v1alpha1.OperationEnded, ending(outcome))
	switch {
	case errors.Is(err, wal.ErrNotFound), o != nil && o.Spec.State == v1alpha1.OperationEnded:
		return nil
	default:
		return err
	}
}

// ending returns the fields that mark a record as ended.
func ending(outcome []byte) map[string]any {
	return map[string]any{"outcome": outcome, "ended": stamp(time.Now())}
}
