// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package synctarget

import (
	"cmp"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// SyncRights returns the rules that a Syncer of the given types needs downstream. They do not include the right to
// list nodes for the capacity, or the rights that syncer.NamespaceOptions need.
func SyncRights(types []schema.GroupResource) []rbacv1.PolicyRule {
	rules := []rbacv1.PolicyRule{KubeSystem(), Allow(schema.GroupResource{Resource: "namespaces"}, "create")}
	for _, gr := range types {
		rules = append(rules, Allow(gr, "create", "delete", "get", "list", "patch", "watch"))
	}
	return rules
}

// KubeSystem returns the rule that allows a client to read the UID that identifies a cluster.
func KubeSystem() rbacv1.PolicyRule {
	rule := Allow(schema.GroupResource{Resource: "namespaces"}, "get")
	rule.ResourceNames = []string{"kube-system"}
	return rule
}

// Allow returns a rule for all objects of a type.
func Allow(gr schema.GroupResource, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{gr.Group}, Resources: []string{gr.Resource}, Verbs: verbs}
}

// SortTypes sorts types by group and resource.
func SortTypes(all []schema.GroupResource) {
	slices.SortFunc(all, func(a, b schema.GroupResource) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
	})
}
