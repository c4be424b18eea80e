// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// lastHeartbeat is the last heartbeat of a SyncTarget, and when this process first saw it, by its own clock.
type lastHeartbeat struct {
	value time.Time
	seen  time.Time
}

// A heartbeat counts as silent when it has stood still for silence times Options.Heartbeat. It must also have stood
// still for leastSilence, since times in a status are whole seconds.
const (
	silence      = 4
	leastSilence = 3 * time.Second
)

// untilSilent returns how much longer the heartbeat of a SyncTarget has to stand still to count as silent. It returns
// zero if the heartbeat counts as silent.
func (c *Controller) untilSilent(target *v1alpha1.SyncTarget) time.Duration {
	var value time.Time
	if beat := target.Status.LastSyncerHeartbeatTime; beat != nil {
		value = beat.Time
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p, ok := c.pulses[target.Name]
	if !ok || !p.value.Equal(value) {
		p = lastHeartbeat{value: value, seen: time.Now()}
		c.pulses[target.Name] = p
	}
	return max(0, max(silence*c.opts.Heartbeat, leastSilence)-time.Since(p.seen))
}

// elsewhere returns the conditions of a SyncTarget whose Syncer does not run in this process, and the requeue delay.
func (c *Controller) elsewhere(target *v1alpha1.SyncTarget, mode Mode) ([]condition, time.Duration) {
	ready := meta.FindStatusCondition(target.Status.Conditions, string(v1alpha1.SyncTargetConditionReady))
	if target.Status.LastSyncerHeartbeatTime == nil {
		if mode == Push && ready == nil {
			return nil, 0
		}
		return []condition{{v1alpha1.SyncTargetConditionReady, metav1.ConditionUnknown, v1alpha1.SyncTargetReasonPending, "no syncer has reported yet"}}, 0
	}
	if wait := c.untilSilent(target); wait > 0 {
		return nil, wait
	}
	const still = "the heartbeat of the syncer stands still"
	return []condition{
		{v1alpha1.SyncTargetConditionReady, metav1.ConditionUnknown, v1alpha1.SyncTargetReasonSilent, still},
		{v1alpha1.SyncTargetConditionReachable, metav1.ConditionUnknown, v1alpha1.SyncTargetReasonSilent, still},
	}, 0
}
