// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// bindingTypes are the types that grant rights to ServiceAccounts. The Controller does not place their objects: otherwise
// an author of objects in the upstream would get rights in clusters. Syncers reject such objects without a permit.
var bindingTypes = []struct {
	resource schema.GroupResource
	kind     string
}{
	{schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: "rolebindings"}, "RoleBinding"},
	{schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: "clusterrolebindings"}, "ClusterRoleBinding"},
}

// stripBinding removes all fields but the metadata and the subjects.
func stripBinding(obj *unstructured.Unstructured) {
	stripMetadata(obj)
	keepFields(obj, "subjects")
}

// binds returns a func that reports whether a binding grants rights to a ServiceAccount of a workload. It returns nil if the
// binding names no ServiceAccount.
func binds(binding *unstructured.Unstructured) belonging {
	accounts := map[types.NamespacedName]bool{}
	for _, subject := range objectsIn(binding.Object, "subjects") {
		if subject["kind"] != "ServiceAccount" {
			continue
		}
		name, _ := subject["name"].(string)
		namespace, _ := subject["namespace"].(string)
		accounts[types.NamespacedName{Namespace: namespace, Name: name}] = true
	}
	if len(accounts) == 0 {
		return nil
	}
	return func(w workload) bool {
		for account := range accounts {
			if account.Namespace == w.in && w.refs[reference{serviceAccounts, account.Name}] {
				return true
			}
		}
		return false
	}
}
