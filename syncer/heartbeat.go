// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/syncer/internal/synctarget"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// heartbeat writes the state of a Syncer into the status of its SyncTarget. Each write shows that the Syncer runs.
type heartbeat struct {
	syncer   *Syncer
	capacity *capacity
}

// run writes the status every Options.Heartbeat until ctx ends.
func (h heartbeat) run(ctx context.Context) {
	s := h.syncer
	for ctx.Err() == nil {
		uid, err := synctarget.ClusterUID(ctx, s.down)
		if known := s.downUID(); known != "" {
			err = sameCluster(uid, known, err)
		}
		pause := s.opts.Heartbeat + rand.N(s.opts.Heartbeat/5+1)
		err = h.write(ctx, err)
		if s.lease.reportOnce() {
			logging.From(ctx).Error(errors.Join(errStale, err), "Stops writing; workloads in the cluster keep running")
		}
		if err != nil && ctx.Err() == nil {
			if apierrors.IsConflict(err) {
				pause = min(pause, shortRetry) // another client has written the status meanwhile
			}
			logging.From(ctx).Info("The SyncTarget's status is not written", "reason", err.Error())
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// write writes the status once. unreachable is the error of the downstream; nil if it is reachable. If there is no
// SyncTarget, or its status reports that its Syncer has ended, write changes nothing and returns nil.
func (h heartbeat) write(ctx context.Context, unreachable error) error {
	s := h.syncer
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	sent := time.Now()
	obj, err := s.up.Dynamic().Resource(synctarget.Resource).Get(ctx, s.opts.Target, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		if unreachable == nil {
			h.renewLease(ctx, sent, time.Time{})
		}
		return nil
	}
	if err != nil {
		return err
	}
	target := &v1alpha1.SyncTarget{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, target); err != nil {
		return err
	}
	if synctarget.HasEnded(target) {
		return nil
	}
	if s.otherSyncers.heard(target.Status.LastSyncerHeartbeatTime) {
		s.otherSyncers.notice(ctx, "another process writes the heartbeat of the SyncTarget")
	}
	last := time.Time{}
	if target.Status.LastSyncerHeartbeatTime != nil {
		last = target.Status.LastSyncerHeartbeatTime.Time
	}
	sent = time.Now()
	err = synctarget.WriteStatus(ctx, s.up, target, func(now *v1alpha1.SyncTargetStatus, set synctarget.SetCondition) {
		now.LastSyncerHeartbeatTime = new(metav1.Now())
		s.otherSyncers.beat(*now.LastSyncerHeartbeatTime)
		s.otherSyncers.describe(now, set)
		describe(s.Status(), unreachable, now, withDefinitions(now, s.lease.describe(last, unreachable, set)))
		h.capacity.describe(now, unreachable)
	})
	if err == nil && unreachable == nil {
		h.renewLease(ctx, sent, last)
	}
	return err
}

// renewLease renews the lease from the time sent; for last see lapsedLocked. It is called when the downstream is
// reachable, and the upstream has accepted a heartbeat or has no SyncTarget. If writes were blocked until now, it
// queues all objects.
func (h heartbeat) renewLease(ctx context.Context, sent, last time.Time) {
	s := h.syncer
	if s.lease.renew(sent, last) {
		if s.lease.returning() {
			logging.From(ctx).Info("Writes again; first deletes the objects that moved away")
		}
		s.resume()
	}
}
