// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelog

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/wal"
	"github.com/atoll-dev/atoll/wal/v1alpha1"
)

// pruneStep is the number of records that each End checks. Each operation adds at most two records: its own and the
// object that holds its key. So the whole history is scanned several times before the expired records double its
// length.
const pruneStep = 16

// pruning is the position of this program's scan of the history.
type pruning struct {
	mu   sync.Mutex
	next string // continue token
	busy bool
}

// prune deletes some of the entries that ended longer than the retention time ago, and leftovers of begins by
// programs that died. If a deletion fails, a later End retries it.
func (l *Log) prune(ctx context.Context) {
	l.pruned.mu.Lock()
	if l.pruned.busy {
		l.pruned.mu.Unlock()
		return
	}
	l.pruned.busy = true
	next := l.pruned.next
	l.pruned.mu.Unlock()

	page, err := l.client.List(ctx, metav1.ListOptions{
		LabelSelector: stateLabel + " in (Ended,Beginning,Key)", Limit: pruneStep, Continue: next,
	})
	next = ""
	if err == nil {
		next = page.GetContinue()
		for i := range page.Items {
			if o, err := decode(&page.Items[i]); err == nil {
				l.expire(ctx, o)
			}
		}
	}
	l.pruned.mu.Lock()
	defer l.pruned.mu.Unlock()
	l.pruned.next, l.pruned.busy = next, false
}

// expire deletes the record o, and the object that holds its key, if o has expired. Each delete requires, as a
// precondition, the version that was read.
func (l *Log) expire(ctx context.Context, o *v1alpha1.Operation) {
	old := func(since time.Time) bool { return time.Since(since) > l.opts.Retention }
	switch o.Spec.State {
	case v1alpha1.OperationBeginning:
		if !old(o.CreationTimestamp.Time) {
			return
		}
	case v1alpha1.OperationEnded:
		e, err := entry(o)
		if err != nil || !old(e.Ended) {
			return
		}
		l.release(ctx, e, o)
	case v1alpha1.OperationKey:
		if o.Spec.KeyOf == nil || !old(o.CreationTimestamp.Time) {
			return
		}
		if record, err := l.get(ctx, o.Spec.KeyOf.Name); err != nil || record != nil && record.UID == o.Spec.KeyOf.UID {
			return
		}
	default:
		return
	}
	_ = l.remove(ctx, o)
}

// release deletes the object that holds the key of an entry that is about to be deleted.
func (l *Log) release(ctx context.Context, e wal.Entry, o *v1alpha1.Operation) {
	if e.Key == "" || keyName(e.Key) == e.ID {
		return
	}
	key, err := l.get(ctx, keyName(e.Key))
	if err == nil && key != nil && key.Spec.KeyOf != nil && key.Spec.KeyOf.UID == o.UID {
		_ = l.remove(ctx, key)
	}
}
