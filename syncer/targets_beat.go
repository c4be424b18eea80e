// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// beatAlong is the heartbeat of who has a SyncTarget of which others say how its types are defined: that is part of whether
// they are compatible.
func (s *Syncer) beatAlong(ctx context.Context, every time.Duration) {
	for ctx.Err() == nil {
		down, err := uidOf(ctx, s.down)
		if err == nil && s.downUID() != "" && down != s.downUID() {
			err = fmt.Errorf("another cluster answers: kube-system has UID %s there, and had %s", down, s.downUID())
		}
		pause := every + rand.N(every/5+1)
		if err := s.reportAlong(ctx, err); err != nil && ctx.Err() == nil {
			if apierrors.IsConflict(err) {
				pause = min(pause, soon) // somebody else has written meanwhile
			}
			logr.FromContextOrDiscard(ctx).Info("The SyncTarget's status is not written", "reason", err.Error())
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

func (s *Syncer) reportAlong(ctx context.Context, unreachable error) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	client := s.up.Dynamic().Resource(syncTargets)
	obj, err := client.Get(ctx, s.opts.Target, metav1.GetOptions{})
	if err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
	target := &v1alpha1.SyncTarget{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, target); err != nil {
		return err
	}
	if hasEnded(target) {
		return nil
	}
	return writeTarget(ctx, client, target, func(now *v1alpha1.SyncTargetStatus, set setCondition) {
		now.LastSyncerHeartbeatTime = new(metav1.Now())
		s.describe(s.Status(), unreachable, now, withDefinitions(now, set))
	})
}

// withDefinitions makes TypesCompatible say what TypesDefined does.
func withDefinitions(now *v1alpha1.SyncTargetStatus, set setCondition) setCondition {
	return func(t v1alpha1.SyncTargetConditionType, status metav1.ConditionStatus, reason v1alpha1.SyncTargetConditionReason, message string) {
		defined := meta.FindStatusCondition(now.Conditions, string(v1alpha1.SyncTargetConditionTypesDefined))
		if t == v1alpha1.SyncTargetConditionTypesCompatible && defined != nil && defined.Status == metav1.ConditionFalse {
			if message != "" {
				message += "; "
			}
			status, reason, message = metav1.ConditionFalse, v1alpha1.SyncTargetReasonIncompatible, message+defined.Message
		}
		set(t, status, reason, message)
	}
}
