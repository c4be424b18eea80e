// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	declared "github.com/atoll-dev/atoll/splitter/workload"
)

// reference names an object that a workload or its pods refer to in their own namespace. The resource has the form
// RESOURCE.GROUP, or RESOURCE for the core group.
type reference struct{ resource, name string }

// The core resources that pods refer to.
const (
	configMaps      = "configmaps"
	secrets         = "secrets"
	serviceAccounts = "serviceaccounts"
	claims          = "persistentvolumeclaims"
	services        = "services"
)

// references returns the objects that a workload and its pods refer to.
func references(of *declared.Type, obj *unstructured.Unstructured) map[reference]bool {
	refs := referenceSet{}
	of.References(obj, func(resource, name string) { refs.add(resource, name) })
	for _, template := range of.Templates(obj) {
		spec, _ := template["spec"].(map[string]any)
		for _, field := range []string{"serviceAccountName", "serviceAccount"} {
			if account := spec[field]; account != "default" { // each namespace has its own default
				refs.add(serviceAccounts, account)
			}
		}
		refs.walk(spec)
	}
	return refs
}

type referenceSet map[reference]bool

func (r referenceSet) add(resource string, name any) {
	if name, ok := name.(string); ok && name != "" {
		r[reference{resource, name}] = true
	}
}

// walk adds the references in a part of a pod's spec. All types of volumes, all containers and
// their environment variables refer to objects by the same few fields.
func (r referenceSet) walk(v any) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			r.walk(item)
		}
	case map[string]any:
		for field, inner := range v {
			r.addField(field, inner)
			r.walk(inner)
		}
	}
}

// addField adds the objects to which a field of a pod's spec refers. Most fields refer to no object.
func (r referenceSet) addField(field string, value any) {
	named, _ := value.(map[string]any)
	switch field {
	case "configMap", "configMapRef", "configMapKeyRef":
		r.add(configMaps, named["name"])
	case "secret", "secretRef", "secretKeyRef", "nodePublishSecretRef":
		r.add(secrets, named["name"])
	case "secretName":
		r.add(secrets, value)
	case "persistentVolumeClaim":
		r.add(claims, named["claimName"])
	case "imagePullSecrets":
		list, _ := value.([]any)
		for _, item := range list {
			entry, _ := item.(map[string]any)
			r.add(secrets, entry["name"])
		}
	}
}

// serviceSelector returns the selector of a Service.
func serviceSelector(service *unstructured.Unstructured) map[string]string {
	selector, _, _ := unstructured.NestedStringMap(service.Object, "spec", "selector")
	return selector
}

// matches reports whether the selector of a Service selects pods that have the labels in pods. An empty selector
// selects none.
func matches(selector, pods map[string]string) bool {
	for k, v := range selector {
		if pods[k] != v {
			return false
		}
	}
	return len(selector) > 0
}
