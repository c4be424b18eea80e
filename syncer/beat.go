// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

var syncTargets = schema.GroupVersionResource{Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version, Resource: "synctargets"}

// beat writes into the status of the SyncTarget what is known, and that somebody is alive, until ctx ends.
func (s *Syncer) beat(ctx context.Context) {
	for ctx.Err() == nil {
		down, err := uidOf(ctx, s.down)
		if err == nil && s.downUID() != "" && down != s.downUID() {
			err = otherCluster(down, s.downUID())
		}
		pause := s.opts.Heartbeat + rand.N(s.opts.Heartbeat/5+1)
		err = s.report(ctx, err)
		if s.lease.reportOnce() {
			logging.From(ctx).Error(errors.Join(errStale, err), "Stops writing; what runs in the cluster goes on")
		}
		if err != nil && ctx.Err() == nil {
			if apierrors.IsConflict(err) {
				pause = min(pause, soon) // somebody else has written meanwhile
			}
			logging.From(ctx).Info("The SyncTarget's status is not written", "reason", err.Error())
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

func (s *Syncer) downUID() types.UID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.downstreamUID
}

// report writes the status of the SyncTarget; unreachable says why the cluster does not answer. It is no error if there is
// no SyncTarget, or if it says that nobody syncs any more: then nothing is written.
func (s *Syncer) report(ctx context.Context, unreachable error) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	client := s.up.Dynamic().Resource(syncTargets)
	obj, err := client.Get(ctx, s.opts.Target, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		s.renewLease(ctx, time.Now(), time.Time{})
		return nil
	}
	if err != nil {
		return err
	}
	target := &v1alpha1.SyncTarget{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, target); err != nil {
		return err
	}
	if hasEnded(target) {
		return nil
	}
	if s.others.heard(target.Status.LastSyncerHeartbeatTime) {
		s.noticeAnother(ctx, "another process writes the heartbeat of the SyncTarget")
	}
	last := time.Time{}
	if target.Status.LastSyncerHeartbeatTime != nil {
		last = target.Status.LastSyncerHeartbeatTime.Time
	}
	sent := time.Now()
	err = writeTarget(ctx, client, target, func(now *v1alpha1.SyncTargetStatus, set setCondition) {
		now.LastSyncerHeartbeatTime = new(metav1.Now())
		s.others.beat(*now.LastSyncerHeartbeatTime)
		s.describeAnother(now, set)
		s.describe(s.Status(), unreachable, now, withDefinitions(now, s.asStale(last, unreachable, set)))
		switch capacity, ok := s.lastCapacity(); {
		case s.opts.Capacity < 0:
			now.Capacity = nil // what we have said goes; what others say is theirs, and stays
		case ok && unreachable == nil:
			now.Capacity = capacity
		}
	})
	if err == nil && unreachable == nil {
		s.renewLease(ctx, sent, last)
	}
	return err
}

// describe says in conditions what a Status says.
func (s *Syncer) describe(state Status, unreachable error, now *v1alpha1.SyncTargetStatus, set setCondition) {
	if unreachable != nil {
		set(v1alpha1.SyncTargetConditionReachable, metav1.ConditionFalse, v1alpha1.SyncTargetReasonUnreachable, unreachable.Error())
		set(v1alpha1.SyncTargetConditionReady, metav1.ConditionFalse, v1alpha1.SyncTargetReasonUnreachable, unreachable.Error())
		return // all else stays as it was last known
	}
	set(v1alpha1.SyncTargetConditionReachable, metav1.ConditionTrue, v1alpha1.SyncTargetReasonAnswered, "")
	if isTrue(now, v1alpha1.SyncTargetConditionReady) && (len(state.Types) == 0 || slices.ContainsFunc(state.Types, isUnlisted)) {
		return // one that has just begun knows no better than the one before it
	}
	if len(state.Types) == 0 {
		set(v1alpha1.SyncTargetConditionReady, metav1.ConditionUnknown, v1alpha1.SyncTargetReasonPending, "types were not compared yet")
		set(v1alpha1.SyncTargetConditionTypesCompatible, metav1.ConditionUnknown, v1alpha1.SyncTargetReasonPending, "types were not compared yet")
		return
	}
	set(v1alpha1.SyncTargetConditionReady, metav1.ConditionTrue, v1alpha1.SyncTargetReasonSyncing, "")
	now.SyncedResources = nil
	var bad, held []string
	lossy := false
	for _, t := range state.Types {
		name := t.Resource.GroupResource().String()
		if t.Reason == "" && t.Err == nil {
			now.SyncedResources = append(now.SyncedResources, name)
		}
		switch {
		case isUnlisted(t), t.Reason == ReasonNotPermitted:
		case t.Err != nil:
			bad = append(bad, name+" (no fresh copy)")
		case t.Reason == ReasonScope:
			bad = append(bad, name+" (namespaced on one side only)")
		case len(t.Losses) > 0:
			lossy = true
			bad = append(bad, name+" ("+loop.Shorten(brief(t.Losses), longestWhy)+")")
		}
		if t.Held > 0 {
			held = append(held, fmt.Sprintf("%d %s", t.Held, name))
		}
	}
	slices.Sort(now.SyncedResources)
	now.SyncedResources = now.SyncedResources[:min(len(now.SyncedResources), 512)]
	switch {
	case len(bad) > 0:
		message := brief(bad)
		if lossy {
			message = loop.Shorten(message, loop.LongestMessage-2*len(remedyOfLosses)) + remedyOfLosses
		}
		set(v1alpha1.SyncTargetConditionTypesCompatible, metav1.ConditionFalse, v1alpha1.SyncTargetReasonIncompatible, message)
	case state.compared:
		set(v1alpha1.SyncTargetConditionTypesCompatible, metav1.ConditionTrue, v1alpha1.SyncTargetReasonCompatible, "")
	case meta.FindStatusCondition(now.Conditions, string(v1alpha1.SyncTargetConditionTypesCompatible)) == nil:
		set(v1alpha1.SyncTargetConditionTypesCompatible, metav1.ConditionUnknown, v1alpha1.SyncTargetReasonPending, "schemas were not compared yet")
	}
	gone := originsGone(state)
	switch {
	case len(gone) > 0:
		set(v1alpha1.SyncTargetConditionDeletionsHeld, metav1.ConditionTrue, v1alpha1.SyncTargetReasonOriginsGone, "wait to be deleted: "+brief(held)+"; of these "+brief(gone))
	case len(held) > 0:
		set(v1alpha1.SyncTargetConditionDeletionsHeld, metav1.ConditionTrue, v1alpha1.SyncTargetReasonCapReached, "wait to be deleted: "+brief(held))
	default:
		set(v1alpha1.SyncTargetConditionDeletionsHeld, metav1.ConditionFalse, v1alpha1.SyncTargetReasonWithinCap, "")
	}
	describeRefused(state, now, set)
	describeUnsynced(state, now, set)
}

// describeUnsynced says in a condition which objects ask to be synced although their type is not. Where none ever did there
// is no such condition.
func describeUnsynced(state Status, now *v1alpha1.SyncTargetStatus, set setCondition) {
	var asking []string
	for _, t := range state.Types {
		if text := countOf(t, ReasonExcluded, ReasonNotServedDownstream, ReasonScope); text != "" {
			asking = append(asking, text)
		}
	}
	switch {
	case len(asking) > 0:
		set(v1alpha1.SyncTargetConditionObjectsUnsynced, metav1.ConditionTrue, v1alpha1.SyncTargetReasonTypeNotSynced, brief(asking))
	case meta.FindStatusCondition(now.Conditions, string(v1alpha1.SyncTargetConditionObjectsUnsynced)) != nil:
		set(v1alpha1.SyncTargetConditionObjectsUnsynced, metav1.ConditionFalse, v1alpha1.SyncTargetReasonNothingUnsynced, "")
	}
}

// remedyOfLosses ends the message about types that the two sides do not define alike.
const remedyOfLosses = ": what a side does not accept is dropped there, or the object is refused: apply the same CustomResourceDefinition on both sides or run crds.Fleet; of types of Kubernetes, run the same version"

// originsGone counts and names, for each type, the copies that stay because nothing shows that their origins were deleted.
func originsGone(state Status) []string {
	var all []string
	for _, t := range state.Types {
		if text := countOf(t, ReasonOriginGone); text != "" {
			all = append(all, text)
		}
	}
	return all
}

// describeRefused says in a condition which objects are refused. Where none ever was there is no such condition.
func describeRefused(state Status, now *v1alpha1.SyncTargetStatus, set setCondition) {
	var refused []string
	for _, t := range state.Types {
		if text := refusedOf(t); text != "" {
			refused = append(refused, text)
		}
	}
	switch {
	case len(refused) > 0:
		set(v1alpha1.SyncTargetConditionObjectsRefused, metav1.ConditionTrue, v1alpha1.SyncTargetReasonNotPermitted, brief(refused))
	case meta.FindStatusCondition(now.Conditions, string(v1alpha1.SyncTargetConditionObjectsRefused)) != nil:
		set(v1alpha1.SyncTargetConditionObjectsRefused, metav1.ConditionFalse, v1alpha1.SyncTargetReasonNothingRefused, "")
	}
}

// refusedOf counts and names objects of a type that are refused, with why the first one is; "" if there are none.
func refusedOf(t TypeStatus) string {
	return countOf(t, ReasonNotPermitted, ReasonNotSyncable)
}

// countOf counts and names the objects of a type that have one of the reasons, with the message of the first; "" if there
// are none.
func countOf(t TypeStatus, reasons ...Reason) string {
	const few = 3
	var names []string
	var why string
	for _, p := range t.Problems {
		if !slices.Contains(reasons, p.Reason) {
			continue
		}
		if why == "" {
			why = p.Message
		}
		names = append(names, loop.KeyText(p.Object))
	}
	if len(names) == 0 {
		return ""
	}
	text := fmt.Sprintf("%d %s (%s", len(names), t.Resource.GroupResource(), strings.Join(names[:min(few, len(names))], ", "))
	if len(names) > few {
		text += ", ..."
	}
	return text + "): " + loop.Shorten(why, longestWhy)
}

// longestWhy bounds in bytes the message about objects of one type: a condition names ten types.
const longestWhy = 400

// isUnlisted says whether it is not known yet if a type can be listed.
func isUnlisted(t TypeStatus) bool { return errors.Is(t.Err, loop.ErrNotListed) }

func isTrue(status *v1alpha1.SyncTargetStatus, t v1alpha1.SyncTargetConditionType) bool {
	return slices.ContainsFunc(status.Conditions, func(c metav1.Condition) bool {
		return c.Type == string(t) && c.Status == metav1.ConditionTrue
	})
}

// brief joins a few of all.
func brief(all []string) string {
	const few = 10
	if len(all) > few {
		return strings.Join(all[:few], ", ") + fmt.Sprintf(" and %d more", len(all)-few)
	}
	return strings.Join(all, ", ")
}

// setCondition sets one condition of a SyncTarget.
type setCondition func(v1alpha1.SyncTargetConditionType, metav1.ConditionStatus, v1alpha1.SyncTargetConditionReason, string)

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

// targetManager owns the status of SyncTargets.
const targetManager = manager + "-target"

// writeTarget applies what change makes of the status of a SyncTarget, if that is another.
func writeTarget(ctx context.Context, client loopClient, target *v1alpha1.SyncTarget, change func(now *v1alpha1.SyncTargetStatus, set setCondition)) error {
	now := target.Status.DeepCopy()
	now.ObservedGeneration = target.Generation
	change(now, func(t v1alpha1.SyncTargetConditionType, status metav1.ConditionStatus, reason v1alpha1.SyncTargetConditionReason, message string) {
		next := metav1.Condition{
			Type: string(t), Status: status, Reason: string(reason), Message: loop.Shorten(message, loop.LongestMessage),
			ObservedGeneration: target.Generation, LastTransitionTime: metav1.Now(),
		}
		at := slices.IndexFunc(now.Conditions, func(c metav1.Condition) bool { return c.Type == next.Type })
		if at < 0 {
			now.Conditions = append(now.Conditions, next)
			return
		}
		if now.Conditions[at].Status == status {
			next.LastTransitionTime = now.Conditions[at].LastTransitionTime
		}
		now.Conditions[at] = next
	})
	slices.SortFunc(now.Conditions, func(a, b metav1.Condition) int { return cmp.Compare(a.Type, b.Type) })
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(now)
	if err != nil {
		return err
	}
	wish := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "SyncTarget", "status": status,
		"metadata": map[string]any{"name": target.Name, "uid": string(target.UID), "resourceVersion": target.ResourceVersion},
	}}
	_, err = client.Apply(ctx, target.Name, wish, metav1.ApplyOptions{FieldManager: targetManager, Force: true}, "status")
	return wrap("write the status of SyncTarget "+target.Name, err)
}

// loopClient is what writeTarget needs of a client.
type loopClient interface {
	Apply(ctx context.Context, name string, obj *unstructured.Unstructured, options metav1.ApplyOptions, subresources ...string) (*unstructured.Unstructured, error)
}
