// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	masterv1alpha1 "github.com/atoll-dev/atoll/region/master/v1alpha1"
	operatorv1alpha1 "github.com/atoll-dev/atoll/region/operator/v1alpha1"
	regionv1alpha1 "github.com/atoll-dev/atoll/region/v1alpha1"
)

// Peers returns the least ClusterRole in a peer for a central.Peers that accepts and observes it.
func Peers() *rbacv1.ClusterRole {
	return role("atoll-peers",
		rule(operatorv1alpha1.Resource("kubecarriers"), "list", "watch"),
		rule(regionv1alpha1.Resource("regionclaims"), "list", "watch"),
		kubeSystem(),
	)
}

// PeersCentral returns the least ClusterRole in a central plane for running a central.Source, a
// central.Peers and a central.Master. They also need to read the kubeconfigs: see Kubeconfigs.
func PeersCentral() *rbacv1.ClusterRole {
	return role("atoll-peers-central",
		rule(masterv1alpha1.Resource("peers"), "create", "list", "watch"),
		rule(masterv1alpha1.Resource("peers/status"), "patch"),
		rule(operatorv1alpha1.Resource("kubecarriers"), "list", "watch"),
		rule(operatorv1alpha1.Resource("kubecarriers/status"), "patch"),
		kubeSystem(),
	)
}

// Kubeconfigs returns the least Role for reading the kubeconfigs of Peers. Each namespace that has
// such Secrets needs the Role, and should have no other Secrets: the right to watch Secrets
// includes reading all of them.
func Kubeconfigs(namespace string) *rbacv1.Role {
	return &rbacv1.Role{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"},
		ObjectMeta: metav1.ObjectMeta{Name: "atoll-kubeconfigs", Namespace: namespace},
		Rules:      []rbacv1.PolicyRule{rule(schema.GroupResource{Resource: "secrets"}, "get", "list", "watch")},
	}
}

// kubeSystem lets a region.Ring read the identity of a cluster. Without it, a Ring rejects new
// credentials.
func kubeSystem() rbacv1.PolicyRule {
	r := rule(schema.GroupResource{Resource: "namespaces"}, "get")
	r.ResourceNames = []string{"kube-system"}
	return r
}
