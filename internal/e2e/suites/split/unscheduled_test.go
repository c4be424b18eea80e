// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package split_test

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// unscheduled creates workloads whose pods fit no node of the clusters. Later it lets the pods of
// one workload run on any node.
func (w *world) unscheduled() {
	const nowhere = "nodeSelector: {there-is: none},"
	w.create(deployments, fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: stuck}, spec: {replicas: 5,
		strategy: {rollingUpdate: {maxUnavailable: 5, maxSurge: 0}}, selector: {matchLabels: {app: stuck}}, template: %s}}`, fmt.Sprintf(pod, "stuck", nowhere)))
	w.create(statefulSets, fmt.Sprintf(`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: stuck-db}, spec: {replicas: 5, serviceName: db, podManagementPolicy: Parallel,
		selector: {matchLabels: {app: stuck-db}}, template: %s}}`, fmt.Sprintf(pod, "stuck-db", nowhere)))
	w.create(jobs, fmt.Sprintf("{apiVersion: batch/v1, kind: Job, metadata: {name: stuck-batch}, spec: {parallelism: 5, completions: 5, template: %s}}",
		fmt.Sprintf(pod, "stuck-batch", "restartPolicy: Never, "+nowhere)))
	all := map[string]schema.GroupVersionResource{"stuck": deployments, "stuck-db": statefulSets, "stuck-batch": jobs}
	for name, gvr := range all {
		w.eventually(gvr, name, "reports clusters without a node for its pods", func(_ context.Context, parent *unstructured.Unstructured) error {
			if c := conditionOf(parent, "Scheduled"); c != "False Unschedulable" {
				return fmt.Errorf("Scheduled is %q: %v", c, parent.Object["status"])
			}
			for _, want := range []string{"cluster-1: 2 pods find no node (0/1 nodes are available: ", "; cluster-2: 3 pods find no node (0/1 nodes are available: "} {
				if !strings.Contains(fmt.Sprint(parent.Object["status"]), want) {
					return fmt.Errorf("%q is not reported: %v", want, parent.Object["status"])
				}
			}
			return nil
		})
	}
	w.rests(clusterNames[:2]...)

	w.patch(deployments, "stuck", `{"spec":{"template":{"spec":{"nodeSelector":null}}}}`)
	w.divided(deployments, "stuck", map[string]int{"cluster-1": 2, "cluster-2": 3})
	w.eventually(deployments, "stuck", "no longer reports missing nodes", func(_ context.Context, parent *unstructured.Unstructured) error {
		if c := conditionOf(parent, "Scheduled"); c != "" {
			return fmt.Errorf("Scheduled is %q", c)
		}
		return nil
	})
	for name, gvr := range all {
		w.delete("upstream", gvr, name)
		w.gone(gvr, name, clusterNames...)
	}
}
