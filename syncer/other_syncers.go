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

// otherSyncers collects signs that another Syncer works for the same target. The signs are in objects that both
// Syncers write.
type otherSyncers struct {
	syncer *Syncer

	mu       sync.Mutex
	beats    []int64     // the last heartbeats that this process has sent, in seconds since 1970
	foreign  []time.Time // when a heartbeat of another process was read
	message  string      // the message about the last sign
	at       time.Time   // the time of the last sign
	reported string      // the last message that the method changed returned
}

// beat records a heartbeat that this process sends.
func (o *otherSyncers) beat(at metav1.Time) {
	const last = 3 // more than one, since responses may be lost
	o.mu.Lock()
	defer o.mu.Unlock()
	o.beats = append(o.beats, at.Unix())
	o.beats = o.beats[max(0, len(o.beats)-last):]
}

// heard reports whether another process keeps writing the heartbeat of the SyncTarget. at is the heartbeat that the
// SyncTarget has now. A single heartbeat of another process may be the last one of a process that has ended. So heard
// returns true only if it was called with such a heartbeat at least twice within rememberOthers.
func (o *otherSyncers) heard(at *metav1.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.beats) == 0 || at == nil || slices.Contains(o.beats, at.Unix()) {
		return false
	}
	o.foreign = slices.DeleteFunc(append(o.foreign, time.Now()), func(t time.Time) bool { return time.Since(t) >= rememberOthers })
	return len(o.foreign) > 1
}

// notice records a sign of another Syncer. It calls the Observer unless an earlier sign still counts. In a dry run it
// does nothing.
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

// changed returns the present message. It also reports whether a sign counts now and none counted at the last call, or
// the reverse.
func (o *otherSyncers) changed() (message string, changed bool) {
	message, _ = o.now()
	o.mu.Lock()
	defer o.mu.Unlock()
	changed = (message == "") != (o.reported == "")
	o.reported = message
	return message, changed
}

// report calls the Observer if a first sign of another Syncer counts, or if the last sign has become too old.
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

// describe sets the condition AnotherSyncer to True while a sign counts. This Syncer and the other one both write this
// condition. So a Syncer changes True to False only if it has been running for rememberOthers and has noticed no sign
// in that time.
func (o *otherSyncers) describe(now *v1alpha1.SyncTargetStatus, set synctarget.SetCondition) {
	message, at := o.now()
	switch {
	case message != "":
		set(v1alpha1.SyncTargetConditionAnotherSyncer, metav1.ConditionTrue, v1alpha1.SyncTargetReasonNoticed, message)
	case isTrue(now, v1alpha1.SyncTargetConditionAnotherSyncer) && time.Since(o.syncer.begun) >= rememberOthers && time.Since(at) >= rememberOthers:
		set(v1alpha1.SyncTargetConditionAnotherSyncer, metav1.ConditionFalse, v1alpha1.SyncTargetReasonNotNoticed, "")
	}
}
