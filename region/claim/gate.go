// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/atoll-dev/atoll/region/v1alpha1"
)

const regionBound = string(v1alpha1.ServiceClusterConditionRegionBound)

// gate is the part of a ServiceCluster's status that this package writes: the condition
// RegionBound, and the phase, except while the gate is open and another manager writes the phase.
type gate struct {
	ObservedGeneration int64                        `json:"observedGeneration,omitempty"`
	Phase              v1alpha1.ServiceClusterPhase `json:"phase,omitempty"`
	Conditions         []metav1.Condition           `json:"conditions"`
}

// gateOf returns the gate of a ServiceCluster. claim is the phase of the RegionClaim with the same
// name in the same peer; empty if there is no such RegionClaim. The gate names no peer, because
// tenants can read it.
func gateOf(cluster *unstructured.Unstructured, claim v1alpha1.RegionClaimPhase, now time.Time) gate {
	c := metav1.Condition{
		Type: regionBound, Status: metav1.ConditionFalse, Reason: string(v1alpha1.ServiceClusterReasonRegionUnbound),
		ObservedGeneration: cluster.GetGeneration(), LastTransitionTime: metav1.NewTime(now),
	}
	switch claim {
	case v1alpha1.RegionClaimBound:
		c.Status, c.Reason = metav1.ConditionTrue, string(v1alpha1.ServiceClusterReasonBound)
		c.Message = "the RegionClaim of this name is Bound"
	case v1alpha1.RegionClaimConflict:
		c.Message = "the region is held elsewhere: see the RegionClaim of this name"
	case "":
		c.Reason = string(v1alpha1.ServiceClusterReasonNoRegionClaim)
		c.Message = "there is no RegionClaim of this name"
	default:
		c.Message = "the RegionClaim of this name is not Bound"
	}
	conditions := conditionsOf(cluster)
	g := gate{Conditions: only(conditions, regionBound)}
	meta.SetStatusCondition(&g.Conditions, c)
	if c.Status != metav1.ConditionTrue || !phaseIsAnothers(cluster) {
		meta.SetStatusCondition(&conditions, c)
		g.Phase = v1alpha1.ServiceClusterPhaseOf(stageOf(cluster), leaving(cluster), conditions)
		g.ObservedGeneration = cluster.GetGeneration()
	}
	return g
}

// conditionsOf returns the conditions of a ServiceCluster, by any writer.
func conditionsOf(cluster *unstructured.Unstructured) []metav1.Condition {
	var s v1alpha1.ServiceClusterStatus
	if raw, ok := cluster.Object["status"].(map[string]any); ok {
		_ = runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &s)
	}
	return s.Conditions
}

// phaseIsAnothers reports whether another manager wrote the phase.
func phaseIsAnothers(cluster *unstructured.Unstructured) bool {
	for _, e := range cluster.GetManagedFields() {
		if e.Manager == FieldManager || e.FieldsV1 == nil {
			continue
		}
		var fields struct {
			Status struct {
				Phase *struct{} `json:"f:phase"`
			} `json:"f:status"`
		}
		if json.Unmarshal(e.FieldsV1.GetRawBytes(), &fields) == nil && fields.Status.Phase != nil {
			return true
		}
	}
	return false
}
