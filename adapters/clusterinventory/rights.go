// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterinventory

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	inventory "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
)

// SourceRights returns the least rights of a Source in its hub, for ClusterProfiles in the namespace. Bind the Role to
// the user of the hub's credentials.
func SourceRights(namespace string) *rbacv1.Role {
	return hubRole("atoll-cluster-inventory-source", namespace, profileRule("clusterprofiles", "list", "watch"))
}

// SourcePeerRights returns the least rights of a Source and its region.Ring in each peer. Bind the ClusterRole to the
// user of the credentials that the plugin returns.
func SourcePeerRights() *rbacv1.ClusterRole {
	return peerRole("atoll-cluster-inventory-source", ClusterIDProperty)
}

// PublisherRights returns the least rights of a Publisher in its hub, for ClusterProfiles in the namespace. Bind the Role
// to the user of the hub's credentials.
func PublisherRights(namespace string) *rbacv1.Role {
	return hubRole("atoll-cluster-inventory-publisher", namespace,
		profileRule("clusterprofiles", "create", "delete", "list", "patch", "watch"), profileRule("clusterprofiles/status", "patch"))
}

// PublisherPeerRights returns the least rights of a Publisher and its region.Ring in each peer. Bind the ClusterRole to
// the user of the peer's credentials. Without the rule about ClusterProperties, the profiles lack their values.
func PublisherPeerRights() *rbacv1.ClusterRole {
	return peerRole("atoll-cluster-inventory-publisher", ClusterIDProperty, ClusterSetProperty)
}

func hubRole(name, namespace string, rules ...rbacv1.PolicyRule) *rbacv1.Role {
	return &rbacv1.Role{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Rules:      rules,
	}
}

func profileRule(resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{inventory.GroupVersion.Group}, Resources: []string{resource}, Verbs: verbs}
}

func peerRole(name string, properties ...string) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules: []rbacv1.PolicyRule{
			// kube-system's UID is the cluster's identity.
			{APIGroups: []string{""}, Resources: []string{"namespaces"}, ResourceNames: []string{"kube-system"}, Verbs: []string{"get"}},
			{APIGroups: []string{"about.k8s.io"}, Resources: []string{"clusterproperties"}, ResourceNames: properties, Verbs: []string{"get"}},
		},
	}
}
