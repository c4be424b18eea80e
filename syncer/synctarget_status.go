// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/syncer/internal/synctarget"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// describe sets the conditions of a SyncTarget from the state of its Syncer. unreachable is the error of the
// downstream; nil if it is reachable. describe does no I/O.
func describe(state Status, unreachable error, now *v1alpha1.SyncTargetStatus, set synctarget.SetCondition) {
	if unreachable != nil {
		set(v1alpha1.SyncTargetConditionReachable, metav1.ConditionFalse, v1alpha1.SyncTargetReasonUnreachable, unreachable.Error())
		set(v1alpha1.SyncTargetConditionReady, metav1.ConditionFalse, v1alpha1.SyncTargetReasonUnreachable, unreachable.Error())
		return // all other conditions stay as they were
	}
	set(v1alpha1.SyncTargetConditionReachable, metav1.ConditionTrue, v1alpha1.SyncTargetReasonAnswered, "")
	if isTrue(now, v1alpha1.SyncTargetConditionReady) && (len(state.Types) == 0 || slices.ContainsFunc(state.Types, isUnlisted)) {
		return // a Syncer that has just started knows less than the one before it
	}
	if len(state.Types) == 0 {
		set(v1alpha1.SyncTargetConditionReady, metav1.ConditionUnknown, v1alpha1.SyncTargetReasonPending, "types were not compared yet")
		set(v1alpha1.SyncTargetConditionTypesCompatible, metav1.ConditionUnknown, v1alpha1.SyncTargetReasonPending, "types were not compared yet")
		return
	}
	set(v1alpha1.SyncTargetConditionReady, metav1.ConditionTrue, v1alpha1.SyncTargetReasonSyncing, "")
	now.SyncedResources = syncedResources(state)
	describeTypes(state, now, set)
	describeHeld(state, set)
	describeRefused(state, now, set)
	describeUnsynced(state, now, set)
}

// syncedResources returns the names of the synced types, sorted, as many as a SyncTarget may have.
func syncedResources(state Status) []string {
	var names []string
	for _, t := range state.Types {
		if t.Reason == "" && t.Err == nil {
			names = append(names, t.Resource.GroupResource().String())
		}
	}
	slices.Sort(names)
	return names[:min(len(names), 512)]
}

// describeTypes sets the condition TypesCompatible, which names the types that the two sides do not serve alike. If it
// knows no such type and the schemas were not compared yet, the condition that an earlier Syncer set stays.
func describeTypes(state Status, now *v1alpha1.SyncTargetStatus, set synctarget.SetCondition) {
	var bad []string
	lossy := false
	for _, t := range state.Types {
		name := t.Resource.GroupResource().String()
		switch {
		case isUnlisted(t), t.Reason == ReasonNotPermitted:
		case t.Err != nil:
			bad = append(bad, name+" (no fresh copy)")
		case t.Reason == ReasonScope:
			bad = append(bad, name+" (namespaced on one side only)")
		case len(t.Losses) > 0:
			lossy = true
			bad = append(bad, name+" ("+loop.Shorten(synctarget.Brief(t.Losses), longestWhy)+")")
		}
	}
	switch {
	case len(bad) > 0:
		message := synctarget.Brief(bad)
		if lossy {
			message = loop.Shorten(message, loop.LongestMessage-2*len(remedyOfLosses)) + remedyOfLosses
		}
		set(v1alpha1.SyncTargetConditionTypesCompatible, metav1.ConditionFalse, v1alpha1.SyncTargetReasonIncompatible, message)
	case state.compared:
		set(v1alpha1.SyncTargetConditionTypesCompatible, metav1.ConditionTrue, v1alpha1.SyncTargetReasonCompatible, "")
	case meta.FindStatusCondition(now.Conditions, string(v1alpha1.SyncTargetConditionTypesCompatible)) == nil:
		set(v1alpha1.SyncTargetConditionTypesCompatible, metav1.ConditionUnknown, v1alpha1.SyncTargetReasonPending, "schemas were not compared yet")
	}
}

// describeHeld sets the condition DeletionsHeld, which counts the deletions that wait.
func describeHeld(state Status, set synctarget.SetCondition) {
	var held []string
	for _, t := range state.Types {
		if t.Held > 0 {
			held = append(held, fmt.Sprintf("%d %s", t.Held, t.Resource.GroupResource()))
		}
	}
	gone := originsGone(state)
	switch {
	case len(gone) > 0:
		set(v1alpha1.SyncTargetConditionDeletionsHeld, metav1.ConditionTrue, v1alpha1.SyncTargetReasonOriginsGone, "wait to be deleted: "+synctarget.Brief(held)+"; of these "+synctarget.Brief(gone))
	case len(held) > 0:
		set(v1alpha1.SyncTargetConditionDeletionsHeld, metav1.ConditionTrue, v1alpha1.SyncTargetReasonCapReached, "wait to be deleted: "+synctarget.Brief(held))
	default:
		set(v1alpha1.SyncTargetConditionDeletionsHeld, metav1.ConditionFalse, v1alpha1.SyncTargetReasonWithinCap, "")
	}
}

// describeUnsynced sets the condition ObjectsUnsynced, which names the objects that are labelled for the target
// although their type is not synced. It does not set the condition before the first such object is found.
func describeUnsynced(state Status, now *v1alpha1.SyncTargetStatus, set synctarget.SetCondition) {
	var asking []string
	for _, t := range state.Types {
		if text := countOf(t, ReasonExcluded, ReasonNotServedDownstream, ReasonScope); text != "" {
			asking = append(asking, text)
		}
	}
	switch {
	case len(asking) > 0:
		set(v1alpha1.SyncTargetConditionObjectsUnsynced, metav1.ConditionTrue, v1alpha1.SyncTargetReasonTypeNotSynced, synctarget.Brief(asking))
	case meta.FindStatusCondition(now.Conditions, string(v1alpha1.SyncTargetConditionObjectsUnsynced)) != nil:
		set(v1alpha1.SyncTargetConditionObjectsUnsynced, metav1.ConditionFalse, v1alpha1.SyncTargetReasonNothingUnsynced, "")
	}
}

// remedyOfLosses ends the message about types that the two sides define differently.
const remedyOfLosses = ": what a side does not accept is dropped there, or the object is refused: apply the same CustomResourceDefinition on both sides or run crds.Fleet; of types of Kubernetes, run the same version"

// originsGone counts and names, for each type, the downstream objects with ReasonOriginGone.
func originsGone(state Status) []string {
	var all []string
	for _, t := range state.Types {
		if text := countOf(t, ReasonOriginGone); text != "" {
			all = append(all, text)
		}
	}
	return all
}

// describeRefused sets the condition ObjectsRefused, which names the refused objects. It does not set the condition
// before the first object is refused.
func describeRefused(state Status, now *v1alpha1.SyncTargetStatus, set synctarget.SetCondition) {
	var refused []string
	for _, t := range state.Types {
		if text := refusedOf(t); text != "" {
			refused = append(refused, text)
		}
	}
	switch {
	case len(refused) > 0:
		set(v1alpha1.SyncTargetConditionObjectsRefused, metav1.ConditionTrue, v1alpha1.SyncTargetReasonNotPermitted, synctarget.Brief(refused))
	case meta.FindStatusCondition(now.Conditions, string(v1alpha1.SyncTargetConditionObjectsRefused)) != nil:
		set(v1alpha1.SyncTargetConditionObjectsRefused, metav1.ConditionFalse, v1alpha1.SyncTargetReasonNothingRefused, "")
	}
}

// refusedOf counts and names the refused objects of a type, with the message of the first one; "" if there are none.
func refusedOf(t TypeStatus) string {
	return countOf(t, ReasonNotPermitted, ReasonNotSyncable)
}

// countOf counts the objects of a type that have one of the reasons. It names the first three, with the message of the
// first one. It returns "" if there are none.
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

// isUnlisted reports whether no list of a type has succeeded or failed yet.
func isUnlisted(t TypeStatus) bool { return errors.Is(t.Err, loop.ErrNotListed) }

func isTrue(status *v1alpha1.SyncTargetStatus, t v1alpha1.SyncTargetConditionType) bool {
	return slices.ContainsFunc(status.Conditions, func(c metav1.Condition) bool {
		return c.Type == string(t) && c.Status == metav1.ConditionTrue
	})
}

// withDefinitions returns a func that sets conditions like set, with one difference: while TypesDefined is False, it
// sets TypesCompatible to False and appends the message of TypesDefined.
func withDefinitions(now *v1alpha1.SyncTargetStatus, set synctarget.SetCondition) synctarget.SetCondition {
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
