// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// letGo removes our finalizer from an upstream object that is not to be synced any more and has no copy.
func (l *lane) letGo(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
	u, err := l.syncer.up.Metadata().Resource(l.kind.GVR).Namespace(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return 0, nil
	case err != nil:
		return 0, err
	case l.selects(u):
		return soon, nil // the copy of the upstream is behind
	}
	if err := l.clearCondition(ctx, u); err != nil {
		return 0, err
	}
	return 0, l.dropFinalizer(ctx, u)
}

// sweep looks once for objects that left while nobody watched: that are not to be synced any more and still have our
// finalizer.
func (l *lane) sweep(ctx context.Context) {
	copies := l.copiesOf()
	if l.kind.Refused != "" {
		copies = copies[:2] // one that may not be read downstream does not matter
	}
	for _, o := range copies {
		select {
		case <-o.Synced():
		case <-ctx.Done():
			return
		}
	}
	for pause := soon; ; pause = min(2*pause, time.Minute) {
		err := l.sweepPages(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		logging.From(ctx).Info("Objects that have left are not known yet", "resource", l.name, "reason", err.Error())
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

func (l *lane) sweepPages(ctx context.Context) error {
	labels := fmt.Sprintf("%s!=%s,%s%s!=%s", l.syncer.opts.Label, l.syncer.opts.Target, v1alpha1.StateLabelPrefix, l.syncer.opts.Target, v1alpha1.StateSync)
	opts := metav1.ListOptions{LabelSelector: labels, Limit: 500}
	for {
		page, err := l.sweepPage(ctx, opts)
		if err != nil || page.Continue == "" {
			return err
		}
		opts.Continue = page.Continue
	}
}

func (l *lane) sweepPage(ctx context.Context, opts metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	page, err := l.upPage(ctx, opts)
	if err != nil {
		return nil, err
	}
	for i := range page.Items {
		if u := &page.Items[i]; slices.Contains(u.Finalizers, l.syncer.finalizer) {
			l.syncer.add(l.queueKey(types.NamespacedName{Namespace: u.Namespace, Name: u.Name}))
		}
	}
	return page, nil
}
