// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelog

import (
	"context"
	"fmt"
	"iter"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/wal"
	"github.com/atoll-dev/atoll/wal/v1alpha1"
)

// pageSize is the maximum number of entries in one answer. An entry may have a megabyte.
const pageSize = 100

const openSelector = stateLabel + " in (Open,Pending,Committed)"

// Open implements [wal.Log]. The request for each page is limited by Options.Timeout.
func (l *Log) Open(ctx context.Context) iter.Seq2[wal.Entry, error] {
	return func(yield func(wal.Entry, error) bool) {
		opts := metav1.ListOptions{LabelSelector: openSelector, Limit: pageSize}
		last := ""
		for {
			page, err := l.page(ctx, opts)
			if err != nil && opts.Continue != "" && apierrors.IsResourceExpired(err) {
				// The continue token has expired: list from the beginning, and skip the entries that were already
				// yielded.
				opts.Continue = ""
				continue
			}
			if err != nil {
				yield(wal.Entry{}, err)
				return
			}
			for i := range page.Items {
				if page.Items[i].GetName() <= last {
					continue
				}
				last = page.Items[i].GetName()
				o, err := decode(&page.Items[i])
				if err != nil {
					if !yield(wal.Entry{ID: last}, err) {
						return
					}
					continue
				}
				if live(o) && !yield(toEntry(o, nil)) {
					return
				}
			}
			if opts.Continue = page.GetContinue(); opts.Continue == "" {
				return
			}
		}
	}
}

func (l *Log) page(ctx context.Context, opts metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	ctx, cancel, err := l.readContext(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	for {
		page, err := l.client.List(ctx, opts)
		switch {
		case err == nil:
			return page, nil
		case refused(err) || !awaitRetry(ctx):
			return nil, fmt.Errorf("central log: list operations: %w", explain(err))
		}
	}
}

// readContext returns a context for a read. It ends after Options.Timeout, or with the caller's context.
func (l *Log) readContext(ctx context.Context) (context.Context, context.CancelFunc, error) {
	if l == nil || l.client == nil {
		return nil, nil, errNotMade
	}
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, l.opts.Timeout)
	return ctx, cancel, nil
}

// Find implements [wal.Log].
func (l *Log) Find(ctx context.Context, key string) (wal.Entry, error) {
	ctx, cancel, err := l.readContext(ctx)
	if err != nil {
		return wal.Entry{}, err
	}
	defer cancel()
	if key == "" {
		return wal.Entry{}, wal.ErrNotFound
	}
	o, err := l.find(ctx, keyName(key))
	if err != nil {
		return wal.Entry{}, err
	}
	if o != nil && o.Spec.KeyOf != nil {
		ref := o.Spec.KeyOf
		if o, err = l.find(ctx, ref.Name); err != nil {
			return wal.Entry{}, err
		}
		if o != nil && o.UID != ref.UID {
			o = nil
		}
	}
	if o == nil || o.Spec.Key != key || !live(o) && o.Spec.State != v1alpha1.OperationEnded {
		return wal.Entry{}, wal.ErrNotFound
	}
	return toEntry(o, nil)
}
