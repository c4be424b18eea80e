// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelog

import (
	"context"

	"github.com/atoll-dev/atoll/wal"
	"github.com/atoll-dev/atoll/wal/v1alpha1"
)

// Decision implements [wal.Log] for the records of the first release. A call of End withdraws (aborts) an undecided
// record.
func (l *Log) Decision(ctx context.Context, id string) (wal.Decision, error) {
	ctx, cancel, err := l.readContext(ctx)
	if err != nil {
		return wal.Decision{}, err
	}
	defer cancel()
	o, err := l.find(ctx, id)
	if err != nil {
		return wal.Decision{}, err
	}
	if o == nil || o.Spec.State != v1alpha1.OperationPending && o.Spec.State != v1alpha1.OperationCommitted {
		return wal.Decision{}, wal.ErrNotFound
	}
	return wal.Decision{
		ID: o.Name, UID: string(o.UID), Version: version(o), Owner: o.Spec.Holder, Decided: o.Spec.State == v1alpha1.OperationCommitted,
		Target: o.Spec.Target, TargetUID: string(o.Spec.TargetUID),
	}, nil
}
