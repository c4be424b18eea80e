// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/account"
	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
)

// Coordinate returns the least ClusterRole that suffices to run a
// fanout.Coordinator with account.Kinds, and to make peers a ring.
func Coordinate() *rbacv1.ClusterRole {
	var rules []rbacv1.PolicyRule
	for _, kind := range account.Kinds() {
		rules = append(rules, rule(kind.Resource.GroupResource(), "create", "delete", "get", "list", "update"))
	}
	accounts := account.Kind().Resource.GroupResource()
	return role("atoll",
		append(rules,
			// The status is applied by server-side apply.
			rule(schema.GroupResource{Group: accounts.Group, Resource: accounts.Resource + "/status"}, "patch"),
			rule(fanoutv1alpha1.Resource("peersets"), "create", "get", "update"),
			// The namespace of each Account; kube-system's UID is the cluster's identity.
			rule(schema.GroupResource{Resource: "namespaces"}, "create", "delete", "get"),
		)...)
}

// Install returns the least ClusterRole that suffices to install the types.
func Install() *rbacv1.ClusterRole {
	return role("atoll-install",
		rule(schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}, "create", "get", "patch", "update"),
	)
}

func role(name string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules:      rules,
	}
}

func rule(resource schema.GroupResource, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{resource.Group}, Resources: []string{resource.Resource}, Verbs: verbs}
}
