// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/syncer/internal/synctarget"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// condition is a condition that a Controller writes.
type condition struct {
	kind    v1alpha1.SyncTargetConditionType
	status  metav1.ConditionStatus
	reason  v1alpha1.SyncTargetConditionReason
	message string
}

// report writes conditions of a SyncTarget if one of them has changed.
func (c *Controller) report(ctx context.Context, target *v1alpha1.SyncTarget, all ...condition) error {
	for i := range all {
		all[i].message = loop.Shorten(all[i].message, loop.LongestMessage) // as it is stored, for the comparison below
	}
	if !slices.ContainsFunc(all, func(now condition) bool {
		there := meta.FindStatusCondition(target.Status.Conditions, string(now.kind))
		return there == nil || there.Status != now.status || there.Reason != string(now.reason) || there.Message != now.message || there.ObservedGeneration != target.Generation
	}) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, synctarget.RequestTimeout)
	defer cancel()
	err := synctarget.WriteStatus(ctx, c.up, target, func(_ *v1alpha1.SyncTargetStatus, set synctarget.SetCondition) {
		for _, now := range all {
			set(now.kind, now.status, now.reason, now.message)
		}
	})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // the change queues the SyncTarget again
	}
	return err
}

// SetTypes records the types of which the cluster of a SyncTarget and the upstream do not accept the same objects.
// Each entry of incompatible has a type and the reason, as text. known is false until both sides have answered. The
// Controller reports the types in the condition TypesDefined, and Syncers report them in TypesCompatible. A SyncTarget
// for which SetTypes was not called has no condition TypesDefined. SetTypes does not block and is safe for concurrent
// use.
func (c *Controller) SetTypes(target string, incompatible []string, known bool) {
	next := condition{v1alpha1.SyncTargetConditionTypesDefined, metav1.ConditionTrue, v1alpha1.SyncTargetReasonCompatible, ""}
	switch {
	case len(incompatible) > 0:
		next.status, next.reason, next.message = metav1.ConditionFalse, v1alpha1.SyncTargetReasonIncompatible, synctarget.Brief(incompatible)
	case !known:
		next.status, next.reason = metav1.ConditionUnknown, v1alpha1.SyncTargetReasonPending
	}
	c.mu.Lock()
	before, ok := c.types[target]
	c.types[target] = next
	c.mu.Unlock()
	if !ok || before != next {
		c.queue.Add(target)
	}
}
