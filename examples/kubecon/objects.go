// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	splitterv1alpha1 "github.com/atoll-dev/atoll/splitter/v1alpha1"
	syncerv1alpha1 "github.com/atoll-dev/atoll/syncer/v1alpha1"
)

var (
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	syncTargets = syncerv1alpha1.GroupVersion.WithResource("synctargets")
)

const (
	workload  = "my-deployment"
	namespace = "default"
	replicas  = 15
	// budget is the number of replicas that must always be available. It follows from the
	// maxUnavailable of the Deployment.
	budget = replicas - 1
)

// newDeployment returns the Deployment that the story creates as deployment.yaml.
func newDeployment() *unstructured.Unstructured {
	labels := map[string]any{"app": workload}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": workload},
		"spec": map[string]any{
			"replicas": int64(replicas), "selector": map[string]any{"matchLabels": labels},
			"strategy": map[string]any{"rollingUpdate": map[string]any{"maxUnavailable": int64(replicas - budget), "maxSurge": int64(1)}},
			"template": map[string]any{
				"metadata": map[string]any{"labels": labels},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "app", "image": "registry.example.com/app:1"}}},
			},
		},
	}}
}

// newSyncTarget returns the SyncTarget that the story creates as NAME.yaml, for the cluster of a
// kubeconfig.
func newSyncTarget(name, weight string, kubeconfig []byte) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": syncerv1alpha1.GroupVersion.String(), "kind": "SyncTarget",
		"metadata": map[string]any{"name": name, "labels": map[string]any{splitterv1alpha1.WeightLabel: weight}},
		"spec":     map[string]any{"kubeconfig": string(kubeconfig)},
	}}
}

// state holds the objects of the workload upstream, by name: the parent and its shards.
type state map[string]*unstructured.Unstructured

// shards returns the clusters whose shards are not being deleted.
func (s state) shards() []string {
	var found []string
	for _, obj := range s {
		if c := obj.GetLabels()[syncerv1alpha1.ClusterLabel]; c != "" && obj.GetDeletionTimestamp() == nil {
			found = append(found, c)
		}
	}
	slices.Sort(found)
	return found
}

func (s state) shard(cluster string) *unstructured.Unstructured {
	for _, obj := range s {
		if obj.GetLabels()[syncerv1alpha1.ClusterLabel] == cluster {
			return obj
		}
	}
	return nil
}

// rows returns the output of kubectl get deployments.
func (s state) rows() [][2]string {
	var rows [][2]string
	for name, obj := range s {
		rows = append(rows, [2]string{name, readiness(obj)})
	}
	slices.SortFunc(rows, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	return rows
}

// readiness returns the column READY of a Deployment, or "" until a controller has observed the
// Deployment.
func readiness(obj *unstructured.Unstructured) string {
	if !observed(obj) {
		return ""
	}
	ready, wanted := ready(obj)
	return ratio(ready, wanted)
}

func observed(obj *unstructured.Unstructured) bool {
	_, found, _ := unstructured.NestedInt64(fields(obj), "status", "observedGeneration")
	return found
}

func ready(obj *unstructured.Unstructured) (ready, wanted int) {
	is, _, _ := unstructured.NestedInt64(fields(obj), "status", "readyReplicas")
	of, _, _ := unstructured.NestedInt64(fields(obj), "spec", "replicas")
	return int(is), int(of)
}

func fields(obj *unstructured.Unstructured) map[string]any {
	if obj == nil {
		return nil
	}
	return obj.Object
}

// complete reports whether all replicas of a Deployment are ready, at its present generation.
func complete(obj *unstructured.Unstructured) bool {
	seen, _, _ := unstructured.NestedInt64(fields(obj), "status", "observedGeneration")
	is, of := ready(obj)
	return obj != nil && is == of && seen >= obj.GetGeneration()
}

// readyCondition returns the status of the condition Ready.
func readyCondition(obj *unstructured.Unstructured) string {
	list, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, v := range list {
		if c, ok := v.(map[string]any); ok && c["type"] == "Ready" {
			return fmt.Sprint(c["status"])
		}
	}
	return ""
}

func ratio(ready, wanted int) string { return fmt.Sprintf("%d/%d", ready, wanted) }
