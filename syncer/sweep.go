// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// letGo removes our finalizer from an upstream object that is not to be synced any more and has no copy.
func (l *lane) letGo(ctx context.Context, key types.NamespacedName) error {
	u, err := l.syncer.up.Metadata().Resource(l.kind.GVR).Namespace(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	case l.selects(u):
		return loop.ErrBehind // the copy of the upstream is behind
	}
	if err := l.clearCondition(ctx, u); err != nil {
		return err
	}
	return l.dropFinalizer(ctx, u)
}

// sweepEvery is how often it is looked again for objects that have our finalizer and are not to be synced: they have no watch.
const sweepEvery = 30 * time.Minute

// sweep looks for objects that are not to be synced and have our finalizer, until ctx ends: those that left while no syncer
// ran, and those that got it from another client, such as one that restores objects with their finalizers.
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
	for pause := soon; ; {
		var wait time.Duration
		err := l.sweepPages(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			pause, wait = soon, sweepEvery+rand.N(sweepEvery/5)
		default:
			logging.From(ctx).Info("Objects that have left are not known yet", "resource", l.name, "reason", err.Error())
			wait, pause = pause, min(2*pause, time.Minute)
		}
		select {
		case <-time.After(wait):
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
