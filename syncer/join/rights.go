// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package join

import (
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

const certificates = certificatesv1.GroupName

// ApproverRights returns the least rules for an Approver: cluster-wide, and in the namespace of tokens.
func ApproverRights() (everywhere, inNamespace []rbacv1.PolicyRule) {
	return []rbacv1.PolicyRule{
			{APIGroups: []string{certificates}, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"list", "watch"}},
			{APIGroups: []string{certificates}, Resources: []string{"certificatesigningrequests/approval"}, Verbs: []string{"update"}},
			{APIGroups: []string{certificates}, Resources: []string{"signers"}, ResourceNames: []string{certificatesv1.KubeAPIServerClientSignerName}, Verbs: []string{"approve"}},
			{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"synctargets"}, Verbs: []string{"list", "watch"}},
		}, []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, Verbs: []string{"delete", "list", "patch", "watch"}},
		}
}

// TokenRights returns the least rules for NewToken, in the namespace of tokens.
func TokenRights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, Verbs: []string{"create"}},
		{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, Verbs: []string{"create"}},
	}
}

// Manifests returns the objects that an upstream needs once: the namespace of tokens, and the right of tokens and of
// clusters that have joined to create and read their requests. An empty namespace means Namespace.
func Manifests(namespace string) []runtime.Object {
	if namespace == "" {
		namespace = Namespace
	}
	const name = "atoll-join"
	return []runtime.Object{
		&corev1.Namespace{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: namespace},
		},
		&rbacv1.ClusterRole{
			TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Rules: []rbacv1.PolicyRule{{
				APIGroups: []string{certificates}, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"create", "get"},
			}},
		},
		&rbacv1.ClusterRoleBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects: []rbacv1.Subject{
				{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "system:serviceaccounts:" + namespace},
				{APIGroup: rbacv1.GroupName, Kind: "Group", Name: Group},
			},
		},
	}
}
