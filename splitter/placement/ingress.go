// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/selector"
)

// The resources outside the core group that follow workloads.
var (
	ingresses       = schema.GroupResource{Group: "networking.k8s.io", Resource: "ingresses"}
	networkPolicies = schema.GroupResource{Group: "networking.k8s.io", Resource: "networkpolicies"}
)

// ingress holds the names of the Services and Secrets that an Ingress refers to.
type ingress struct{ services, secrets []string }

func newIngress(obj *unstructured.Unstructured) (i ingress) {
	backend := func(v any) {
		holder, _ := v.(map[string]any)
		if name, _, _ := unstructured.NestedString(holder, "service", "name"); name != "" {
			i.services = append(i.services, name)
		}
	}
	spec, _ := obj.Object["spec"].(map[string]any)
	backend(spec["defaultBackend"])
	for _, rule := range objectsIn(spec, "rules") {
		for _, path := range objectsIn(rule, "http", "paths") {
			backend(path["backend"])
		}
	}
	for _, entry := range objectsIn(spec, "tls") {
		if name, _ := entry["secretName"].(string); name != "" {
			i.secrets = append(i.secrets, name)
		}
	}
	return i
}

// objectsIn returns the objects of the list at path.
func objectsIn(obj map[string]any, path ...string) (list []map[string]any) {
	v, _, _ := unstructured.NestedFieldNoCopy(obj, path...)
	items, _ := v.([]any)
	for _, item := range items {
		if o, ok := item.(map[string]any); ok {
			list = append(list, o)
		}
	}
	return list
}

// podSelector returns the selector of a NetworkPolicy.
func podSelector(policy *unstructured.Unstructured) labels.Selector {
	content, _, _ := unstructured.NestedMap(policy.Object, "spec", "podSelector")
	return selector.Read(content)
}

// routes records the Services and Ingresses of all namespaces.
type routes struct {
	services  map[types.NamespacedName]map[string]string // their selectors
	ingresses map[types.NamespacedName]ingress
}

// setService records the selector of a Service, or that it is gone if obj is nil.
func (x *index) setService(key types.NamespacedName, obj *unstructured.Unstructured) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.routes.services, key)
	if obj != nil {
		x.routes.services[key] = serviceSelector(obj)
	}
}

// setIngress records an Ingress, or that it is gone if obj is nil. It returns the Secrets that the Ingress refers to or
// referred to before.
func (x *index) setIngress(key types.NamespacedName, obj *unstructured.Unstructured) []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	named := x.routes.ingresses[key].secrets
	delete(x.routes.ingresses, key)
	if obj != nil {
		now := newIngress(obj)
		x.routes.ingresses[key], named = now, slices.Concat(named, now.secrets)
	}
	return named
}

// secretsOf returns the names of the Secrets that an Ingress refers to.
func (x *index) secretsOf(key types.NamespacedName) []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.routes.ingresses[key].secrets
}

// ingressesTo returns the Ingresses of a namespace that refer to a Service.
func (x *index) ingressesTo(service types.NamespacedName) (list []types.NamespacedName) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for key, i := range x.routes.ingresses {
		if key.Namespace == service.Namespace && slices.Contains(i.services, service.Name) {
			list = append(list, key)
		}
	}
	return list
}

// behind returns the clusters of the workloads whose pods are behind the Services of an Ingress. x.mu must be held.
func (x *index) behind(namespace string, i ingress) (clusters []string) {
	for w := range maps.Values(x.namespaces[namespace]) {
		for _, name := range i.services {
			selector := x.routes.services[types.NamespacedName{Namespace: namespace, Name: name}]
			if w.runs(func(pods map[string]string) bool { return matches(selector, pods) }) {
				clusters = append(clusters, w.clusters...)
				break
			}
		}
	}
	return clusters
}
