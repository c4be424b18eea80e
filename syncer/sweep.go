// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// sweepEvery is how often the upstream is listed for objects that have our finalizer and are not selected. No watch
// shows them.
const sweepEvery = 30 * time.Minute

// sweeper finds upstream objects that have our finalizer and are not selected: they were withdrawn while no syncer
// ran, or another client added the finalizer, such as a client that restores objects with their finalizers.
type sweeper struct{ *syncedType }

// run sweeps until ctx ends. The caches must have their first lists.
func (s sweeper) run(ctx context.Context) {
	for pause := shortRetry; ; {
		var wait time.Duration
		err := s.sweep(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			pause, wait = shortRetry, sweepEvery+rand.N(sweepEvery/5)
		default:
			logging.From(ctx).Info("Objects that are no longer selected are not known yet", "resource", s.name, "reason", err.Error())
			wait, pause = pause, min(2*pause, time.Minute)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// sweep lists once the upstream objects that are not selected, and queues those that have our finalizer.
func (s sweeper) sweep(ctx context.Context) error {
	target := s.syncer.opts.Target
	unselected := fmt.Sprintf("%s!=%s,%s%s!=%s", s.syncer.opts.Label, target, v1alpha1.StateLabelPrefix, target, v1alpha1.StateSync)
	return s.up.each(ctx, "", unselected, func(u *metav1.PartialObjectMetadata) error {
		if s.syncer.holds(u) {
			key := types.NamespacedName{Namespace: u.Namespace, Name: u.Name}
			s.syncer.add(originRef(key).queueKey(s.name))
		}
		return nil
	})
}

// releaseAll removes our condition and our finalizer from all upstream objects. A refused object may have the
// condition without the finalizer.
func (m removals) releaseAll(ctx context.Context) error {
	return m.up.each(ctx, "", "", func(u *metav1.PartialObjectMetadata) error {
		return errors.Join(m.conditions.clear(ctx, u), m.finalizers.drop(ctx, u))
	})
}
