// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/v1alpha1"
)

// ruling is what is to be told to the RegionClaims of a region.
type ruling struct {
	decision decision
	// undecided is why nobody holds the region, where nobody does. It names
	// nothing that changes by itself.
	undecided string
	// blind says that what was decided could not be read.
	blind bool
	// unreachable says that a peer that would know does not answer.
	unreachable bool
	// firm says that whoever sees as much finds the same: it rests on no copy of a peer
	// that does not answer, and on the absence of nothing that such a peer may have. Of
	// two arbiters that reach different peers one at most is firm about what they differ
	// in. One that is not replaces nothing that another has told: they would do so in
	// turn, without end.
	firm bool
}

// report is the status of a RegionClaim, given the one that it has.
type report struct {
	ObservedGeneration int64                     `json:"observedGeneration"`
	Phase              v1alpha1.RegionClaimPhase `json:"phase"`
	Conditions         []metav1.Condition        `json:"conditions"`
	Holder             v1alpha1.RegionHolder     `json:"holder,omitzero"`
}

// phaseUnder is what a claim is told when d is on record; was is what it was told
// before. False means nothing: who held the region then may still do so.
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

// reportOn returns the status of the RegionClaim obj under a ruling; mine is what the
// arbiter told it last, nil if that is not known. False means that it stays as it is.
func reportOn(obj *unstructured.Unstructured, r ruling, mine *report, now time.Time) (report, bool) {
	was, d := statusIn(obj), r.decision
	phase, ok := phaseUnder(d, obj.GetUID(), leaving(obj), was.Phase)
	if !ok || !r.firm && isTold(obj, was) && !mine.is(was) {
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
	if before := meta.FindStatusCondition(was.Conditions, c.Type); before != nil && before.Status == c.Status {
		c.LastTransitionTime = before.LastTransitionTime
	}
	s.Conditions = []metav1.Condition{c}
	return s, true
}

// isTold says whether obj was told anything that is about its present generation.
func isTold(obj *unstructured.Unstructured, was v1alpha1.RegionClaimStatus) bool {
	c := meta.FindStatusCondition(was.Conditions, string(v1alpha1.RegionClaimConditionBound))
	return was.Phase != "" && was.ObservedGeneration == obj.GetGeneration() && c != nil &&
		leaving(obj) == (c.Reason == string(v1alpha1.RegionClaimReasonRemoving))
}

// is says whether a status is s, whenever that was told.
func (s *report) is(was v1alpha1.RegionClaimStatus) bool {
	return s != nil && s.same(&report{
		ObservedGeneration: was.ObservedGeneration, Phase: was.Phase, Conditions: was.Conditions, Holder: was.Holder,
	})
}

// differs says whether the status of obj says anything else about who holds the
// region than s: what must not be told from a copy alone.
func (s report) differs(obj *unstructured.Unstructured) bool {
	was := statusIn(obj)
	return was.Phase != s.Phase || was.Holder.Peer != s.Holder.Peer || !was.Holder.Since.Time.Equal(s.Holder.Since.Time)
}
