// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterdaemonset

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
	"github.com/atoll-dev/atoll/splitter/workload"
)

// status returns the desired status of a ClusterDaemonSet. It is pure.
func status(set *unstructured.Unstructured, p plan, now time.Time) map[string]any {
	var ready, unknown int64
	var behind, silent, occupied []string
	for _, part := range p.parts {
		switch {
		case part.state == taken:
			occupied = append(occupied, part.desired.GetName())
		case !part.reachable:
			unknown++
			silent = append(silent, part.cluster)
		case part.ready():
			ready++
		default:
			behind = append(behind, part.cluster+" "+part.progress())
		}
	}
	is, reason, message := metav1.ConditionTrue, v1alpha1.ReasonComplete, fmt.Sprintf("all %d clusters are ready", len(p.parts))
	switch {
	case p.invalid != nil:
		is, reason, message = metav1.ConditionFalse, v1alpha1.ReasonInvalid, p.invalid.Error()
	case occupied != nil:
		is, reason = metav1.ConditionFalse, v1alpha1.ReasonNameTaken
		message = "other clients' Deployments have these names: " + loop.Brief(occupied, ", ")
	case len(p.parts) == 0:
		is, reason, message = metav1.ConditionFalse, v1alpha1.ReasonNoClusters, "no cluster is chosen"
	case behind != nil:
		is, reason = metav1.ConditionFalse, v1alpha1.ReasonClustersNotReady
		message = fmt.Sprintf("%d of %d clusters are not ready: %s", len(behind), len(p.parts), loop.Brief(behind, ", "))
		if silent != nil {
			message += "; unreachable: " + loop.Brief(silent, ", ")
		}
	case silent != nil:
		is, reason = metav1.ConditionUnknown, v1alpha1.ReasonClustersUnknown
		message = fmt.Sprintf("%d of %d clusters are unreachable: %s", len(silent), len(p.parts), loop.Brief(silent, ", "))
	}
	return map[string]any{
		"observedGeneration": set.GetGeneration(),
		"desiredClusters":    int64(len(p.parts)), "readyClusters": ready, "unknownClusters": unknown,
		"conditions": []any{loop.Condition(set, workload.Condition(set, string(v1alpha1.ConditionReady)), string(v1alpha1.ConditionReady), string(is), string(reason), message, now)},
	}
}

// ready reports whether the cluster of a part runs all replicas of the present template. A Deployment that the
// Controller may not write counts by its own spec.
func (p part) ready() bool {
	if p.current == nil || p.current.GetDeletionTimestamp() != nil || p.desired != nil && p.state != applied {
		return false
	}
	wanted, updated := p.of("spec", "replicas"), p.of("status", "updatedReplicas")
	return p.of("status", "observedGeneration") >= p.current.GetGeneration() &&
		updated >= wanted && p.of("status", "replicas") <= updated && p.of("status", "readyReplicas") >= wanted
}

// progress describes a part that is not ready.
func (p part) progress() string {
	switch {
	case p.state == failed:
		return "could not be written"
	case p.current == nil || p.current.GetDeletionTimestamp() != nil:
		return "has no Deployment yet"
	}
	ready, wanted := min(p.of("status", "readyReplicas"), p.of("spec", "replicas")), p.of("spec", "replicas")
	if ready == wanted {
		return "rolls it out"
	}
	return fmt.Sprintf("%d of %d", ready, wanted)
}

func (p part) of(path ...string) int64 {
	n, _ := number(p.current, path...)
	return n
}
