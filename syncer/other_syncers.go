// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/syncer/internal/synctarget"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// rememberOthers is how long a sign of another Syncer counts.
const rememberOthers = 10 * time.Minute

// otherSyncers collects signs that another Syncer works for the same target. The signs are in the objects that both write.
type otherSyncers struct {
	syncer *Syncer

	mu       sync.Mutex
	beats    []int64     // the last heartbeats that this process has sent, in seconds since 1970
	foreign  []time.Time // when a heartbeat of another process was read
	message  string      // of the last sign
	at       time.Time   // time of the last sign
	reported string      // the message that changed returned last
}

// beat records a heartbeat that this process sends.
func (o *otherSyncers) beat(at metav1.Time) {
	const last = 3 // more than one, since responses may be lost
	o.mu.Lock()
	defer o.mu.Unlock()
	o.beats = append(o.beats, at.Unix())
	o.beats = o.beats[max(0, len(o.beats)-last):]
}

// heard reports whether another process keeps writing the heartbeat of the SyncTarget. at is the present
// heartbeat. A single foreign heartbeat may be the last one of a process that has ended.
func (o *otherSyncers) heard(at *metav1.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.beats) == 0 || at == nil || slices.Contains(o.beats, at.Unix()) {
		return false
	}
	o.foreign = slices.DeleteFunc(append(o.foreign, time.Now()), func(t time.Time) bool { return time.Since(t) >= rememberOthers })
	return len(o.foreign) > 1
}

// notice records a sign of another Syncer. It calls the Observer for the first one.
func (o *otherSyncers) notice(ctx context.Context, sign string) {
	s := o.syncer
	if s.dry {
		return
	}
	message := fmt.Sprintf("%s: another syncer works for target %s; this one, instance %s, syncs to the cluster whose kube-system has UID %s: stop one of the two",
		sign, s.opts.Target, s.instance, s.downUID())
	o.mu.Lock()
	o.message, o.at = message, time.Now()
	o.mu.Unlock()
	o.report(ctx)
}

// now returns the message and the time of the last sign. The message is "" if the sign is too old.
func (o *otherSyncers) now() (message string, at time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if time.Since(o.at) >= rememberOthers {
		return "", o.at
	}
	return o.message, o.at
}

// changed returns the present message. It also reports whether, since the last call, a first sign was noticed or
// the last sign became too old.
func (o *otherSyncers) changed() (message string, changed bool) {
	message, _ = o.now()
	o.mu.Lock()
	defer o.mu.Unlock()
	changed = (message == "") != (o.reported == "")
	o.reported = message
	return message, changed
}

// report calls the Observer if a first sign of another Syncer was noticed, or the last sign became too old.
func (o *otherSyncers) report(ctx context.Context) {
	message, changed := o.changed()
	if !changed {
		return
	}
	if message != "" {
		logging.From(ctx).Info("Another syncer works for the same target", "reason", message)
	}
	o.syncer.opts.Observer.another(ctx, AnotherEvent{Message: message})
}

// describe sets the condition AnotherSyncer if a sign was ever noticed. Both Syncers write this condition. So a
// Syncer sets it to False only after it has run, and noticed no sign, for rememberOthers.
func (o *otherSyncers) describe(now *v1alpha1.SyncTargetStatus, set synctarget.SetCondition) {
	message, at := o.now()
	switch {
	case message != "":
		set(v1alpha1.SyncTargetConditionAnotherSyncer, metav1.ConditionTrue, v1alpha1.SyncTargetReasonNoticed, message)
	case isTrue(now, v1alpha1.SyncTargetConditionAnotherSyncer) && time.Since(o.syncer.begun) >= rememberOthers && time.Since(at) >= rememberOthers:
		set(v1alpha1.SyncTargetConditionAnotherSyncer, metav1.ConditionFalse, v1alpha1.SyncTargetReasonNotNoticed, "")
	}
}
