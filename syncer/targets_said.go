// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// said is a condition that Targets writes.
type said struct {
	condition v1alpha1.SyncTargetConditionType
	status    metav1.ConditionStatus
	reason    v1alpha1.SyncTargetConditionReason
	message   string
}

// say writes conditions of a SyncTarget if one of them has changed.
func (t *Targets) say(ctx context.Context, target *v1alpha1.SyncTarget, all ...said) error {
	for i := range all {
		all[i].message = loop.Shorten(all[i].message, loop.LongestMessage) // in the form in which it is read back
	}
	if !slices.ContainsFunc(all, func(s said) bool {
		there := meta.FindStatusCondition(target.Status.Conditions, string(s.condition))
		return there == nil || there.Status != s.status || there.Reason != string(s.reason) || there.Message != s.message || there.ObservedGeneration != target.Generation
	}) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err := writeTarget(ctx, t.up.Dynamic().Resource(syncTargets), target, func(_ *v1alpha1.SyncTargetStatus, set setCondition) {
		for _, s := range all {
			set(s.condition, s.status, s.reason, s.message)
		}
	})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // the change queues it again
	}
	return err
}

// pulse is the last heartbeat of a SyncTarget, and when this process first saw it, by its own clock.
type pulse struct {
	value time.Time
	seen  time.Time
}

// A heartbeat counts as silent after silence times its interval, and not before leastSilence, since times in a status
// are whole seconds.
const (
	silence      = 4
	leastSilence = 3 * time.Second
)

// listen returns how much longer the heartbeat of a SyncTarget has to stand still to count as silent; zero if it is
// silent.
func (t *Targets) listen(target *v1alpha1.SyncTarget) time.Duration {
	var value time.Time
	if beat := target.Status.LastSyncerHeartbeatTime; beat != nil {
		value = beat.Time
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	p, ok := t.pulses[target.Name]
	if !ok || !p.value.Equal(value) {
		p = pulse{value: value, seen: time.Now()}
		t.pulses[target.Name] = p
	}
	return max(0, max(silence*t.opts.Heartbeat, leastSilence)-time.Since(p.seen))
}

// elsewhere returns the conditions of a SyncTarget whose Syncer does not run in this process, and the requeue delay.
func (t *Targets) elsewhere(target *v1alpha1.SyncTarget, mode Mode) ([]said, time.Duration) {
	ready := meta.FindStatusCondition(target.Status.Conditions, string(v1alpha1.SyncTargetConditionReady))
	if target.Status.LastSyncerHeartbeatTime == nil {
		if mode == Push && ready == nil {
			return nil, 0
		}
		return []said{{v1alpha1.SyncTargetConditionReady, metav1.ConditionUnknown, v1alpha1.SyncTargetReasonPending, "no syncer has reported yet"}}, 0
	}
	if wait := t.listen(target); wait > 0 {
		return nil, wait
	}
	const still = "the heartbeat of the syncer stands still"
	return []said{
		{v1alpha1.SyncTargetConditionReady, metav1.ConditionUnknown, v1alpha1.SyncTargetReasonSilent, still},
		{v1alpha1.SyncTargetConditionReachable, metav1.ConditionUnknown, v1alpha1.SyncTargetReasonSilent, still},
	}, 0
}

// SetTypes records the types that a SyncTarget's cluster and the upstream define so that they do not accept the same
// objects, each with the reason as text. known is false until both sides have answered. Targets reports the types in
// the condition TypesDefined, and the Syncers of Targets and Agents in TypesCompatible. A target without a record has
// no condition TypesDefined. It does not block and is safe for concurrent use.
func (t *Targets) SetTypes(target string, incompatible []string, known bool) {
	next := said{v1alpha1.SyncTargetConditionTypesDefined, metav1.ConditionTrue, v1alpha1.SyncTargetReasonCompatible, ""}
	switch {
	case len(incompatible) > 0:
		next.status, next.reason, next.message = metav1.ConditionFalse, v1alpha1.SyncTargetReasonIncompatible, brief(incompatible)
	case !known:
		next.status, next.reason = metav1.ConditionUnknown, v1alpha1.SyncTargetReasonPending
	}
	t.mu.Lock()
	before, ok := t.types[target]
	t.types[target] = next
	t.mu.Unlock()
	if !ok || before != next {
		t.queue.Add(target)
	}
}
