// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package servicecluster

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/internal/rivals"
	"github.com/atoll-dev/atoll/region/v1alpha1"
)

const (
	ready     = string(v1alpha1.ServiceClusterConditionReady)
	claimed   = string(v1alpha1.ServiceClusterConditionClaimed)
	bound     = string(v1alpha1.ServiceClusterConditionRegionBound)
	reachable = string(v1alpha1.ServiceClusterConditionReachable)
)

// occupancy is what the other peers hold of the name of a ServiceCluster without a claim.
type occupancy int

const (
	// free: no other peer holds the name.
	free occupancy = iota
	// held: another peer holds the name, or a guard of it.
	held
	// contested: other peers have ServiceClusters of the name without a claim, too, and no peer holds the name.
	contested
	// unseen: a peer that may hold it was not read.
	unseen
)

// observation is all that a decision depends on.
type observation struct {
	cluster   *v1alpha1.ServiceCluster
	occupancy occupancy      // of a cluster without a claim
	rivals    []rivals.Rival // all clusters of the name, if it is contested
	remove    string         // the command that deletes a cluster of the name
	last      *result        // of the probes since the process started; nil: none
	now       time.Time
	patience  int // Options.Failures
}

// status is the part of a ServiceCluster's status that this package writes. The phase and the observed generation are
// omitted while region/claim writes them.
type status struct {
	ObservedGeneration int64                        `json:"observedGeneration,omitempty"`
	Phase              v1alpha1.ServiceClusterPhase `json:"phase,omitempty"`
	Conditions         []metav1.Condition           `json:"conditions"`
	KubernetesVersion  v1alpha1.KubernetesVersion   `json:"kubernetesVersion,omitzero"`
}

// stageOf returns the stage of the fan-out protocol; empty if the object was applied without it.
func stageOf(c *v1alpha1.ServiceCluster) fanoutv1alpha1.Stage {
	if c.Spec.Fanout == nil {
		return ""
	}
	return c.Spec.Fanout.Stage
}

// counts reports whether the ServiceCluster is more than a reservation or a guard.
func counts(c *v1alpha1.ServiceCluster) bool {
	switch stageOf(c) {
	case "", fanoutv1alpha1.StageConfigured, fanoutv1alpha1.StageRemoving:
		return true
	}
	return false
}

// leaving reports whether the ServiceCluster is being deleted, which cannot be undone.
func leaving(c *v1alpha1.ServiceCluster) bool {
	return c.DeletionTimestamp != nil || stageOf(c) == fanoutv1alpha1.StageRemoving
}

// isPrimary reports whether the ServiceCluster holds its name for good.
func isPrimary(c *v1alpha1.ServiceCluster) bool {
	return c.Spec.Fanout != nil && c.Spec.Fanout.Claim != nil && c.Spec.Fanout.Claim.Role == fanoutv1alpha1.RolePrimary && counts(c)
}

// isBound reports whether this peer serves the region.
func isBound(c *v1alpha1.ServiceCluster) bool {
	return meta.IsStatusConditionTrue(c.Status.Conditions, bound)
}

// mayProbe reports whether the cluster may be probed: it is committed, stays, and its region is bound.
func mayProbe(c *v1alpha1.ServiceCluster) bool {
	return stageOf(c) == fanoutv1alpha1.StageConfigured && !leaving(c) && isBound(c)
}

// plan returns the status of a ServiceCluster that counts.
func plan(o observation) status {
	c := o.cluster
	conditions := slices.Clone(c.Status.Conditions)
	set := func(condition metav1.Condition) metav1.Condition {
		condition.ObservedGeneration, condition.LastTransitionTime = c.Generation, metav1.NewTime(o.now)
		condition.Message = loop.Shorten(condition.Message, loop.LongestMessage)
		meta.SetStatusCondition(&conditions, condition)
		return condition
	}
	claim, reach := set(claimOf(o)), set(reachOf(o))
	set(readyOf(c, claim, reach))

	s := status{KubernetesVersion: c.Status.KubernetesVersion}
	if o.last != nil && o.last.err == nil {
		s.KubernetesVersion = o.last.version
	}
	for _, t := range []string{claimed, reachable, ready} {
		s.Conditions = append(s.Conditions, *meta.FindStatusCondition(conditions, t))
	}
	if isBound(c) {
		s.ObservedGeneration = c.Generation
		s.Phase = v1alpha1.ServiceClusterPhaseOf(stageOf(c), leaving(c), conditions)
	}
	return s
}

func condition(t string, s metav1.ConditionStatus, reason v1alpha1.ServiceClusterConditionReason, message string) metav1.Condition {
	return metav1.Condition{Type: t, Status: s, Reason: string(reason), Message: message}
}

func claimOf(o observation) metav1.Condition {
	switch {
	case stageOf(o.cluster) != "":
		return condition(claimed, metav1.ConditionTrue, v1alpha1.ServiceClusterReasonCommitted, "the name is this ServiceCluster's everywhere")
	case o.occupancy == held:
		return condition(claimed, metav1.ConditionFalse, v1alpha1.ServiceClusterReasonHeld,
			"another ServiceCluster holds this name: choose another name, or remove the other one")
	case o.occupancy == contested:
		return condition(claimed, metav1.ConditionFalse, v1alpha1.ServiceClusterReasonRivals, rivals.Message(o.remove, o.rivals))
	case o.occupancy == unseen:
		return condition(claimed, metav1.ConditionUnknown, v1alpha1.ServiceClusterReasonPeerUnreachable,
			"whether the name is free is not known, because a part of the installation is unreachable")
	}
	return condition(claimed, metav1.ConditionFalse, v1alpha1.ServiceClusterReasonUnclaimed,
		"the ServiceCluster was applied without a claim to its name: a coordinator adopts it")
}

func reachOf(o observation) metav1.Condition {
	c := o.cluster
	before := meta.FindStatusCondition(c.Status.Conditions, reachable)
	current := before != nil && before.ObservedGeneration == c.Generation
	pending := func(message string) metav1.Condition {
		return condition(reachable, metav1.ConditionUnknown, v1alpha1.ServiceClusterReasonPending, message)
	}
	switch {
	case leaving(c) && before != nil:
		return *before
	case leaving(c):
		return pending("the cluster is not probed, because the ServiceCluster is being deleted")
	case !mayProbe(c) && stageOf(c) == "":
		return pending("the cluster is not probed before the name is claimed")
	case !mayProbe(c):
		return pending("the cluster is not probed before the region is bound")
	case o.last == nil && current && before.Status != metav1.ConditionUnknown:
		return *before // of an earlier process
	case o.last == nil:
		return pending("the cluster was not probed yet")
	case o.last.err == nil:
		return condition(reachable, metav1.ConditionTrue, v1alpha1.ServiceClusterReasonAnswered, "the cluster answers with its kubeconfig")
	}
	refused := isKubeconfig(o.last.err)
	if !refused && o.last.failures < o.patience && before != nil && before.Status == metav1.ConditionTrue && (current || o.last.reached) {
		return *before
	}
	reason := v1alpha1.ServiceClusterReasonUnreachable
	if refused {
		reason = v1alpha1.ServiceClusterReasonKubeconfigInvalid
	}
	return condition(reachable, metav1.ConditionFalse, reason, explain(o.last.err))
}

// readyOf summarizes the conditions. The first that is not True is the reason.
func readyOf(c *v1alpha1.ServiceCluster, claim, reach metav1.Condition) metav1.Condition {
	region := meta.FindStatusCondition(c.Status.Conditions, bound)
	switch {
	case leaving(c):
		return condition(ready, metav1.ConditionFalse, v1alpha1.ServiceClusterReasonRemoving, "the ServiceCluster is being removed")
	case claim.Status != metav1.ConditionTrue:
		return condition(ready, claim.Status, v1alpha1.ServiceClusterConditionReason(claim.Reason), claim.Message)
	case region == nil:
		return condition(ready, metav1.ConditionUnknown, v1alpha1.ServiceClusterReasonPending, "whether the region is bound is not known yet")
	case region.Status != metav1.ConditionTrue:
		return condition(ready, metav1.ConditionFalse, v1alpha1.ServiceClusterReasonRegionUnbound, region.Message)
	case reach.Status != metav1.ConditionTrue:
		return condition(ready, reach.Status, v1alpha1.ServiceClusterConditionReason(reach.Reason), reach.Message)
	}
	return condition(ready, metav1.ConditionTrue, v1alpha1.ServiceClusterReasonComplete, "the cluster can be used")
}
