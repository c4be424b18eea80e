// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/atoll-dev/atoll/account/v1alpha1"
)

// Rights are the rules for the subjects of an Account in its namespace, in each peer, by the
// Account's roles. The subject that runs the Coordinator or a Controller must hold them itself,
// in all namespaces: an API server rejects a grant of rights that the granting subject does not
// hold. A role without a key grants nothing.
type Rights map[v1alpha1.AccountRole][]rbacv1.PolicyRule

// DefaultRights returns the rights of Kind; the caller may extend the result.
//
// A Provider manages the ServiceClusters and RegionClaims of its namespace and writes the Secrets
// that hold their kubeconfigs. A Provider cannot read Secrets, so that the Coordinator need not
// hold the right to read all of them. So a Provider writes Secrets with create, replace or
// server-side apply. A Tenant reads the Regions that are published to it. Add the rights on
// services that are offered to tenants.
func DefaultRights() Rights {
	manage := []string{"create", "delete", "get", "list", "patch", "update", "watch"}
	return Rights{
		v1alpha1.AccountProvider: {
			{APIGroups: []string{"kubecarrier.io"}, Resources: []string{"serviceclusters"}, Verbs: manage},
			{APIGroups: []string{"kubecarrier.io"}, Resources: []string{"regionclaims"}, Verbs: slices.Clone(manage)},
			{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create", "delete", "patch", "update"}},
		},
		v1alpha1.AccountTenant: {
			{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"regions"}, Verbs: []string{"get", "list", "watch"}},
		},
	}
}

// RoleLabel is a label, beside Label, of each Role and RoleBinding that was made for an Account;
// its value is the Account's role.
const RoleLabel = "kubecarrier.io/account-role"

var accountRoles = []v1alpha1.AccountRole{v1alpha1.AccountProvider, v1alpha1.AccountTenant}

// RoleName returns the name of the Role and RoleBinding for a role in an Account's namespace:
// "kubecarrier-provider" or "kubecarrier-tenant".
func RoleName(role v1alpha1.AccountRole) string {
	switch role {
	case v1alpha1.AccountProvider:
		return "kubecarrier-provider"
	case v1alpha1.AccountTenant:
		return "kubecarrier-tenant"
	default:
		return ""
	}
}

// grants returns the desired Roles and the desired RoleBindings of account. Without subjects it
// returns no RoleBindings.
func (r Rights) grants(account *unstructured.Unstructured) (roles, bindings []*unstructured.Unstructured) {
	spec := specOf(account)
	for _, role := range slices.Compact(slices.Sorted(slices.Values(spec.Roles))) {
		if RoleName(role) == "" || len(r[role]) == 0 {
			continue
		}
		roles = append(roles, owned(account.GetName(), role, "Role", map[string]any{"rules": list(r[role])}))
		if len(spec.Subjects) == 0 {
			continue
		}
		bindings = append(bindings, owned(account.GetName(), role, "RoleBinding", map[string]any{
			"roleRef":  map[string]any{"apiGroup": rbacv1.GroupName, "kind": "Role", "name": RoleName(role)},
			"subjects": list(defaulted(spec.Subjects)),
		}))
	}
	return roles, bindings
}

func specOf(account *unstructured.Unstructured) v1alpha1.AccountSpec {
	var spec v1alpha1.AccountSpec
	if raw, ok := account.Object["spec"].(map[string]any); ok {
		// The API server has validated it against this type.
		_ = runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &spec)
	}
	return spec
}

// defaulted returns subjects with the defaults that an API server sets, so that a stored
// RoleBinding equals the desired one.
func defaulted(subjects []rbacv1.Subject) []rbacv1.Subject {
	subjects = slices.Clone(subjects)
	for i := range subjects {
		if s := &subjects[i]; s.APIGroup == "" && s.Kind != rbacv1.ServiceAccountKind {
			s.APIGroup = rbacv1.GroupName
		}
	}
	return subjects
}

func list[T any](items []T) []any {
	out := make([]any, len(items))
	for i := range items {
		// Plain data always converts.
		out[i], _ = runtime.DefaultUnstructuredConverter.ToUnstructured(&items[i])
	}
	return out
}

// owned returns a Role or RoleBinding for an Account.
func owned(account string, role v1alpha1.AccountRole, kind string, content map[string]any) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: maps.Clone(content)}
	obj.SetAPIVersion(rbacv1.SchemeGroupVersion.String())
	obj.SetKind(kind)
	obj.SetNamespace(account)
	obj.SetName(RoleName(role))
	obj.SetLabels(map[string]string{Label: account, RoleLabel: string(role)})
	return obj
}
