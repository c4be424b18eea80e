// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/v1alpha1"
)

// ruling is the result to report to the RegionClaims of a region.
type ruling struct {
	decision decision
	// undecided is the reason if the region has no holder. The text does not change while the
	// reason stays the same, so that the status is not written again.
	undecided string
	// blind means that the decision could not be read.
	blind bool
	// unreachable means that a peer which may hold the region is unreachable.
	unreachable bool
	// firm means that the ruling does not depend on an unreachable peer: neither on its cached
	// objects nor on the absence of objects there. Two arbiters that reach different peers cannot
	// both be firm if their rulings differ. An arbiter that is not firm replaces no other arbiter's
	// report, or the two would write in turns without end.
	firm bool
}

// report is the status of a RegionClaim that an arbiter writes.
type report struct {
	ObservedGeneration int64                     `json:"observedGeneration"`
	Phase              v1alpha1.RegionClaimPhase `json:"phase"`
	Conditions         []metav1.Condition        `json:"conditions"`
	Holder             v1alpha1.RegionHolder     `json:"holder,omitzero"`
}

// phaseUnder returns the phase of a claim if d is the decision on record. The parameter was is the
// claim's present phase. False means that the present phase stays: without a decision, a Bound or
// Conflict claim keeps its phase, because the holder may still be the same.
func phaseUnder(d decision, uid types.UID, leaving bool, was v1alpha1.RegionClaimPhase) (v1alpha1.RegionClaimPhase, bool) {
	switch {
	case leaving:
		return v1alpha1.RegionClaimPending, true
	case d.none():
		return v1alpha1.RegionClaimPending, was != v1alpha1.RegionClaimBound && was != v1alpha1.RegionClaimConflict
	case d.uid == uid:
		return v1alpha1.RegionClaimBound, true
	}
	return v1alpha1.RegionClaimConflict, true
}

// reportOn returns the status of the RegionClaim obj under a ruling; mine is the last report that
// this arbiter wrote, nil if not known. False means that the status stays as it is.
func reportOn(obj *unstructured.Unstructured, r ruling, mine *report, now time.Time) (report, bool) {
	was, d := statusIn(obj), r.decision
	phase, ok := phaseUnder(d, obj.GetUID(), leaving(obj), was.Phase)
	if !ok || !r.firm && isReported(obj, was) && !mine.matches(was) {
		return report{}, false
	}
	s := report{ObservedGeneration: obj.GetGeneration(), Phase: phase}
	if !d.none() {
		s.Holder = v1alpha1.RegionHolder{Peer: string(d.peer), Since: metav1.NewTime(d.since)}
	}
	c := metav1.Condition{
		Type: string(v1alpha1.RegionClaimConditionBound), ObservedGeneration: obj.GetGeneration(),
		LastTransitionTime: metav1.NewTime(now),
	}
	k := region.Key{Provider: obj.GetNamespace(), Name: obj.GetName()}
	since := d.since.Format(time.RFC3339)
	switch {
	case leaving(obj):
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, string(v1alpha1.RegionClaimReasonRemoving), "the claim is being deleted"
		if d.uid == obj.GetUID() {
			c.Message += "; the region is free once it is gone"
		}
	case phase == v1alpha1.RegionClaimBound:
		c.Status, c.Reason = metav1.ConditionTrue, string(v1alpha1.RegionClaimReasonAcknowledged)
		c.Message = fmt.Sprintf("peer %s serves region %s since %s", d.peer, k, since)
	case phase == v1alpha1.RegionClaimConflict:
		c.Status, c.Reason = metav1.ConditionFalse, string(v1alpha1.RegionClaimReasonHeldElsewhere)
		c.Message = fmt.Sprintf("peer %s has held region %s since %s; it is free once the RegionClaim there is deleted or that peer is removed", d.peer, k, since)
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, string(v1alpha1.RegionClaimReasonPending), r.undecided
		if r.unreachable {
			c.Reason = string(v1alpha1.RegionClaimReasonPeerUnreachable)
		}
	}
	s.Conditions = only(was.Conditions, c.Type)
	meta.SetStatusCondition(&s.Conditions, c)
	return s, true
}

// only returns the condition of this type in a list of one, or an empty list if conditions lacks
// it.
func only(conditions []metav1.Condition, conditionType string) []metav1.Condition {
	return slices.DeleteFunc(slices.Clone(conditions), func(c metav1.Condition) bool { return c.Type != conditionType })
}

// isReported reports whether the status was written for the present generation of obj, and for its
// deletion if obj is being deleted.
func isReported(obj *unstructured.Unstructured, was v1alpha1.RegionClaimStatus) bool {
	c := meta.FindStatusCondition(was.Conditions, string(v1alpha1.RegionClaimConditionBound))
	return was.Phase != "" && was.ObservedGeneration == obj.GetGeneration() && c != nil &&
		leaving(obj) == (c.Reason == string(v1alpha1.RegionClaimReasonRemoving))
}

// matches reports whether s equals the given status, apart from transition times.
func (s *report) matches(was v1alpha1.RegionClaimStatus) bool {
	return s != nil && s.same(&report{
		ObservedGeneration: was.ObservedGeneration, Phase: was.Phase, Conditions: was.Conditions, Holder: was.Holder,
	})
}

// differs reports whether the status of obj has another phase or holder than s. Such a change must
// not be decided from a cache alone.
func (s report) differs(obj *unstructured.Unstructured) bool {
	was := statusIn(obj)
	return was.Phase != s.Phase || was.Holder.Peer != s.Holder.Peer || !was.Holder.Since.Time.Equal(s.Holder.Since.Time)
}
