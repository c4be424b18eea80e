// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"testing"

	"github.com/atoll-dev/atoll/syncer"
)

// An autoscaler and its target are synced. The controller downstream scales the target, as with one
// cluster, and the syncer leaves the replicas to it until the autoscaler is deleted. (There are no
// metrics. But the controller scales a target to minReplicas also without them.)
func TestAutoscaler(t *testing.T) {
	w := newWorld(t, syncer.Options{})
	autoscalers := gvr("autoscaling", "v2", "horizontalpodautoscalers")
	w.up.create(deployments, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: 1, selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: c, image: i}]}}}}")
	w.down.has(deployments, "a", map[string]string{"spec.replicas": "1"})
	w.up.create(autoscalers, "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: a}, spec: {minReplicas: 3, maxReplicas: 5, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a}}}")
	w.down.has(deployments, "a", map[string]string{"spec.replicas": "3", "status.availableReplicas": "3"})
	w.up.has(deployments, "a", map[string]string{"spec.replicas": "1", "status.availableReplicas": "3"})
	w.up.has(autoscalers, "a", map[string]string{"status.desiredReplicas": "3"})

	w.up.patch(deployments, "a", `{"spec":{"replicas":2,"minReadySeconds":1}}`)
	w.down.has(deployments, "a", map[string]string{"spec.replicas": "3", "spec.minReadySeconds": "1"})
	w.up.delete(autoscalers, "a")
	w.down.lacks(autoscalers, "a")
	w.down.has(deployments, "a", map[string]string{"spec.replicas": "2", "status.availableReplicas": "2"})
}
