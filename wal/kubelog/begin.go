// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/atoll-dev/atoll/wal"
	"github.com/atoll-dev/atoll/wal/v1alpha1"
)

// Begin implements [wal.Log].
func (l *Log) Begin(ctx context.Context, e wal.Entry) (wal.Entry, error) {
	o, err := l.begin(ctx, e)
	return toEntry(o, err)
}

// toEntry converts o to the entry that a call returns together with err. A nil o gives the zero Entry.
func toEntry(o *v1alpha1.Operation, err error) (wal.Entry, error) {
	if o == nil {
		return wal.Entry{}, err
	}
	e, damaged := entry(o)
	return e, errors.Join(damaged, err)
}

// begin stores e as a record, takes e's key for the record, and then makes the record an open entry.
func (l *Log) begin(ctx context.Context, e wal.Entry) (*v1alpha1.Operation, error) {
	ctx, cancel, err := l.writeContext(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	if err := validate(e); err != nil {
		return nil, err
	}
	if e.Began.IsZero() {
		e.Began = time.Now()
	}
	if e.Key == "" || keyName(e.Key) == e.ID {
		return l.beginAlone(ctx, l.record(e, v1alpha1.OperationOpen))
	}
	for {
		mine, err := l.beginAlone(ctx, l.record(e, v1alpha1.OperationBeginning))
		if err != nil {
			return mine, err
		}
		// Three writes: the record, its key, its state. Only the last one makes the record an entry. Until then
		// another program may delete the record, which the last write detects.
		if other, err := l.hold(ctx, mine); other != nil || err != nil {
			_ = l.remove(ctx, mine) // on an error, prune removes it later
			if other != nil && err == nil {
				err = wal.ErrExists
			}
			return other, err
		}
		begun, err := l.patch(ctx, "begin", mine.Name, version(mine), v1alpha1.OperationOpen, map[string]any{})
		if err == nil || !errors.Is(err, wal.ErrNotFound) && !errors.Is(err, wal.ErrStale) {
			return begun, err
		}
	}
}

// beginAlone creates the record o, and no object that holds its key. If a complete record with o's ID exists,
// beginAlone returns this record with wal.ErrExists.
func (l *Log) beginAlone(ctx context.Context, o *v1alpha1.Operation) (*v1alpha1.Operation, error) {
	for {
		mine, other, err := l.create(ctx, "begin", o)
		if err != nil || mine != nil {
			return mine, err
		}
		if other, err = l.holder(ctx, other); err != nil {
			return nil, err
		} else if other != nil {
			return other, wal.ErrExists
		}
	}
}

// keyName returns the name of the object that holds key. For a key of the form operation/ID, this is the record that
// is named ID, which saves two writes.
func keyName(key string) string {
	if id, ok := strings.CutPrefix(key, "operation/"); ok && len(validation.IsDNS1123Subdomain(id)) == 0 && !strings.HasPrefix(id, "key.") {
		return id
	}
	sum := sha256.Sum256([]byte(key))
	return "key." + hex.EncodeToString(sum[:])
}

// hold creates the object that holds the key of the record mine, or takes it over from a deleted record. If another
// record holds the key, hold returns that record.
func (l *Log) hold(ctx context.Context, mine *v1alpha1.Operation) (*v1alpha1.Operation, error) {
	key := l.record(wal.Entry{ID: keyName(mine.Spec.Key), Key: mine.Spec.Key, Owner: mine.Spec.Holder}, v1alpha1.OperationKey)
	key.Spec.Began, key.Spec.Action, key.Spec.Object = mine.Spec.Began, "", ""
	key.Spec.KeyOf = &v1alpha1.RecordRef{Name: mine.Name, UID: mine.UID}
	for {
		held, there, err := l.create(ctx, "begin", key)
		if err != nil || held != nil {
			return nil, err
		}
		other, err := l.holder(ctx, there)
		if other != nil || err != nil {
			return other, err
		}
		if there.Spec.State != v1alpha1.OperationKey {
			continue
		}
		// The key is held for a record that no longer exists, and a record with that UID can never exist again.
		_, err = l.patch(ctx, "begin", there.Name, version(there), "", map[string]any{"keyOf": key.Spec.KeyOf, "holder": mine.Spec.Holder})
		if err == nil || !errors.Is(err, wal.ErrStale) && !errors.Is(err, wal.ErrNotFound) {
			return nil, err
		}
	}
}

// holder returns the complete record that o stands for: o itself, or the record for which o holds a key. If this
// record does not exist, holder returns nil. If the begin of the record is not complete, holder waits; if the record
// then does not change for Options.Grace, holder deletes it.
func (l *Log) holder(ctx context.Context, o *v1alpha1.Operation) (*v1alpha1.Operation, error) {
	since, seen := time.Now(), ""
	name, ref := o.Name, o.Spec.KeyOf
	if ref != nil {
		name = ref.Name
	}
	for {
		record, err := l.find(ctx, name)
		switch {
		case err != nil:
			return nil, err
		case record == nil, ref != nil && record.UID != ref.UID:
			return nil, nil
		case record.Spec.State == v1alpha1.OperationKey:
			return l.holder(ctx, record)
		case record.Spec.State != v1alpha1.OperationBeginning:
			return record, nil
		}
		if v := version(record); v != seen {
			since, seen = time.Now(), v
		}
		if time.Since(since) >= l.opts.Grace {
			// Ignore the result: the next read shows whether the record is gone.
			_ = l.remove(ctx, record)
		}
		if !awaitRetry(ctx) {
			return nil, context.Cause(ctx)
		}
	}
}
