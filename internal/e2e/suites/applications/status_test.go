// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package applications_test

import (
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// reporting are the kinds whose status must come back to the upstream.
var reporting = []string{
	"CronJob", "DaemonSet", "Deployment", "HorizontalPodAutoscaler", "Job", "PersistentVolumeClaim", "PodDisruptionBudget", "ReplicaSet", "ReplicationController", "ResourceQuota", "StatefulSet",
}

// running returns nil if the controllers of the cluster have brought an object to its final state.
func running(down *unstructured.Unstructured) error {
	number := func(path ...string) int64 {
		n, _, _ := unstructured.NestedInt64(down.Object, path...)
		return n
	}
	ready, want := int64(0), int64(0)
	switch down.GetKind() {
	case "Deployment", "StatefulSet", "ReplicaSet", "ReplicationController":
		ready, want = number("status", "readyReplicas"), number("spec", "replicas")
	case "DaemonSet":
		ready, want = number("status", "numberReady"), 3
	case "Job":
		if suspended, _, _ := unstructured.NestedBool(down.Object, "spec", "suspend"); !suspended && !holds(down, "Complete") {
			return fmt.Errorf("it is not complete: %v", down.Object["status"])
		}
	case "PersistentVolumeClaim":
		if phase, _, _ := unstructured.NestedString(down.Object, "status", "phase"); phase != "Bound" {
			return fmt.Errorf("its phase is %s", phase)
		}
	case "HorizontalPodAutoscaler", "PodDisruptionBudget", "ResourceQuota":
		if status(down) == nil {
			return fmt.Errorf("its controller has not seen it")
		}
	}
	if ready != want {
		return fmt.Errorf("%d of %d are ready: %v", ready, want, down.Object["status"])
	}
	return nil
}

func holds(obj *unstructured.Unstructured, kind string) bool {
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		condition, _ := c.(map[string]any)
		return condition["type"] == kind && condition["status"] == "True"
	})
}

// came returns nil if the upstream has the status of the downstream object.
func came(up, down *unstructured.Unstructured) error {
	a, b := status(up), status(down)
	if !reflect.DeepEqual(a, b) {
		return fmt.Errorf("the status is %v upstream, and %v in the cluster", a, b)
	}
	observed, found, _ := unstructured.NestedInt64(up.Object, "status", "observedGeneration")
	if found && observed != up.GetGeneration() {
		return fmt.Errorf("status.observedGeneration is %d, and the generation %d", observed, up.GetGeneration())
	}
	return nil
}

// status returns the status without the fields that belong to one cluster: generations, and a Job's notes on its pods.
func status(obj *unstructured.Unstructured) map[string]any {
	all, _, _ := unstructured.NestedMap(obj.Object, "status")
	delete(all, "observedGeneration")
	delete(all, "uncountedTerminatedPods")
	conditions, _ := all["conditions"].([]any)
	for _, c := range conditions {
		if condition, ok := c.(map[string]any); ok {
			delete(condition, "observedGeneration")
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}
