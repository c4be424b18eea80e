// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"embed"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	splitterv1alpha1 "github.com/atoll-dev/atoll/splitter/v1alpha1"
	syncerv1alpha1 "github.com/atoll-dev/atoll/syncer/v1alpha1"
)

var (
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	autoscalers = schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}
	budgets     = schema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}
	services    = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	ingresses   = schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"}
	pods        = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	nodes       = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	policies    = splitterv1alpha1.GroupVersion.WithResource("placementpolicies")
	syncTargets = syncerv1alpha1.GroupVersion.WithResource("synctargets")
)

// Names and numbers of the manifests.
const (
	shop           = "shop" // name of all objects
	namespace      = "default"
	minReplicas    = 6
	maxReplicas    = 36
	maxUnavailable = 2
	maxSurge       = 2
	perReplica     = 10 // requests per second that a replica serves
	stabilization  = 10 * time.Second
)

//go:embed manifests
var manifests embed.FS

// applied lists the manifests in the order in which the story creates their objects.
var applied = []struct {
	file     string
	resource schema.GroupVersionResource
}{
	{"policy.yaml", policies},
	{"service.yaml", services},
	{"ingress.yaml", ingresses},
	{"budget.yaml", budgets},
	{"autoscaler.yaml", autoscalers},
	{"deployment.yaml", deployments},
}

// manifest returns the object of a manifest.
func manifest(file string) (*unstructured.Unstructured, error) {
	data, err := manifests.ReadFile("manifests/" + file)
	if err != nil {
		return nil, err
	}
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(data, &obj.Object); err != nil {
		return nil, fmt.Errorf("manifest %s: %w", file, err)
	}
	return obj, nil
}

// newSyncTarget returns the SyncTarget that attaches a cluster.
func newSyncTarget(name string, kubeconfig []byte) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": syncerv1alpha1.GroupVersion.String(), "kind": "SyncTarget",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"kubeconfig": string(kubeconfig)},
	}}
}

// number returns the integer in a field, zero if it is missing.
func number(obj *unstructured.Unstructured, path ...string) int {
	n, _, _ := unstructured.NestedInt64(obj.Object, path...)
	return int(n)
}

// isTrue reports whether an object has a condition with the status True.
func isTrue(obj *unstructured.Unstructured, condition string) bool {
	list, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, v := range list {
		if c, ok := v.(map[string]any); ok && c["type"] == condition {
			return c["status"] == "True"
		}
	}
	return false
}

// imageOf returns the image of the first container in a pod or in the template of a Deployment.
func imageOf(obj *unstructured.Unstructured, path ...string) string {
	list, _, _ := unstructured.NestedSlice(obj.Object, append(path, "containers")...)
	if len(list) == 0 {
		return ""
	}
	c, _ := list[0].(map[string]any)
	image, _ := c["image"].(string)
	return image
}
