// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
)

// ServiceClusterPhaseOf derives the phase of a ServiceCluster from its stage, from whether it is being deleted, and from
// its conditions. RegionBound must be True for any phase but Pending and Terminating; another missing condition does
// not count as False, so that the phase is right without a program that writes it.
func ServiceClusterPhaseOf(stage fanoutv1alpha1.Stage, deleted bool, conditions []metav1.Condition) ServiceClusterPhase {
	is := func(t ServiceClusterConditionType, s metav1.ConditionStatus) bool {
		return meta.IsStatusConditionPresentAndEqual(conditions, string(t), s)
	}
	switch {
	case deleted, stage == fanoutv1alpha1.StageRemoving:
		return ServiceClusterTerminating
	case !is(ServiceClusterConditionRegionBound, metav1.ConditionTrue), stage != fanoutv1alpha1.StageConfigured,
		is(ServiceClusterConditionClaimed, metav1.ConditionFalse):
		return ServiceClusterPending
	case is(ServiceClusterConditionReachable, metav1.ConditionFalse):
		return ServiceClusterNotReady
	case is(ServiceClusterConditionReachable, metav1.ConditionUnknown):
		return ServiceClusterPending
	case is(ServiceClusterConditionReady, metav1.ConditionFalse):
		return ServiceClusterNotReady
	}
	return ServiceClusterReady
}
