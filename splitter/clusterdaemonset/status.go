// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterdaemonset

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
)

// few is the maximum number of clusters that a message names. Hundreds of names would make the object too large.
const few = 10

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
		message = "other clients' Deployments have these names: " + brief(occupied)
	case len(p.parts) == 0:
		is, reason, message = metav1.ConditionFalse, v1alpha1.ReasonNoClusters, "no cluster is chosen"
	case behind != nil:
		is, reason = metav1.ConditionFalse, v1alpha1.ReasonClustersNotReady
		message = fmt.Sprintf("%d of %d clusters are not ready: %s", len(behind), len(p.parts), brief(behind))
		if silent != nil {
			message += "; unreachable: " + brief(silent)
		}
	case silent != nil:
		is, reason = metav1.ConditionUnknown, v1alpha1.ReasonClustersUnknown
		message = fmt.Sprintf("%d of %d clusters are unreachable: %s", len(silent), len(p.parts), brief(silent))
	}
	return map[string]any{
		"observedGeneration": set.GetGeneration(),
		"desiredClusters":    int64(len(p.parts)), "readyClusters": ready, "unknownClusters": unknown,
		"conditions": []any{condition(set, is, reason, message, now)},
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

// condition returns the condition Ready. It keeps its lastTransitionTime while its status stays the same.
func condition(set *unstructured.Unstructured, is metav1.ConditionStatus, reason v1alpha1.ConditionReason, message string, now time.Time) map[string]any {
	at := now.UTC().Format(time.RFC3339)
	list, _, _ := unstructured.NestedSlice(set.Object, "status", "conditions")
	for _, v := range list {
		before, _ := v.(map[string]any)
		if then, ok := before["lastTransitionTime"].(string); ok && before["type"] == string(v1alpha1.ConditionReady) && before["status"] == string(is) {
			at = then
		}
	}
	return map[string]any{
		"type": string(v1alpha1.ConditionReady), "status": string(is), "reason": string(reason),
		"message": loop.Shorten(message, loop.LongestMessage), "lastTransitionTime": at, "observedGeneration": set.GetGeneration(),
	}
}

// brief joins at most few names, and adds the number of the rest.
func brief(all []string) string {
	if len(all) > few {
		return strings.Join(all[:few], ", ") + fmt.Sprintf(" and %d more", len(all)-few)
	}
	return strings.Join(all, ", ")
}
