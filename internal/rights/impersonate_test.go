// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
)

var couchdbs = rbacv1.PolicyRule{APIGroups: []string{"eu-west-1.loodse"}, Resources: []string{"couchdbs"}, Verbs: []string{"list", "get"}}

func TestImpersonate(t *testing.T) {
	t.Parallel()
	role := func(group, resource, verb string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{verb}, ResourceNames: names}
	}
	const authn = "authentication.k8s.io"
	for name, tt := range map[string]struct {
		i     Impersonation
		want  []rbacv1.PolicyRule
		roles map[string][]rbacv1.PolicyRule
	}{
		"one user": {i: Impersonation{Users: []string{"alice"}}, want: []rbacv1.PolicyRule{role("", "users", "impersonate", "alice")}},
		"everything": {
			i: Impersonation{
				Users: []string{"bob", "alice", "system:serviceaccount:ci:b", "system:serviceaccount:ci:a", "system:serviceaccount:cd:a"}, Groups: []string{"dev"},
				UIDs: []string{"1"}, Extra: map[string][]string{"scopes": {"view"}, "example.com/a": {"b"}},
			},
			want: []rbacv1.PolicyRule{
				role("", "users", "impersonate", "alice", "bob"), role("", "groups", "impersonate", "dev"), role(authn, "uids", "impersonate", "1"),
				role(authn, "userextras/example.com/a", "impersonate", "b"), role(authn, "userextras/scopes", "impersonate", "view"),
			},
			roles: map[string][]rbacv1.PolicyRule{
				"cd": {role("", "serviceaccounts", "impersonate", "a")}, "ci": {role("", "serviceaccounts", "impersonate", "a", "b")},
			},
		},
		"constrained": {
			i: Impersonation{Users: []string{"alice"}, Groups: []string{"dev"}, On: []rbacv1.PolicyRule{couchdbs}},
			want: []rbacv1.PolicyRule{
				role(authn, "users", "impersonate:user-info", "alice"), role(authn, "groups", "impersonate:user-info", "dev"),
				{APIGroups: []string{"eu-west-1.loodse"}, Resources: []string{"couchdbs"}, Verbs: []string{"impersonate-on:user-info:get", "impersonate-on:user-info:list"}},
			},
		},
		"any user, constrained": {
			i: Impersonation{AnyUser: true, On: []rbacv1.PolicyRule{couchdbs}},
			want: []rbacv1.PolicyRule{
				role(authn, "users", "impersonate:user-info"),
				{APIGroups: []string{"eu-west-1.loodse"}, Resources: []string{"couchdbs"}, Verbs: []string{"impersonate-on:user-info:get", "impersonate-on:user-info:list"}},
			},
		},
		"service accounts, constrained": {
			i: Impersonation{Users: []string{"system:serviceaccount:ci:a"}, On: []rbacv1.PolicyRule{couchdbs}},
			want: []rbacv1.PolicyRule{
				{APIGroups: []string{"eu-west-1.loodse"}, Resources: []string{"couchdbs"}, Verbs: []string{"impersonate-on:serviceaccount:get", "impersonate-on:serviceaccount:list"}},
			},
			roles: map[string][]rbacv1.PolicyRule{"ci": {role(authn, "serviceaccounts", "impersonate:serviceaccount", "a")}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster, roles, err := Impersonate(tt.i)
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(append(tt.want, kubeSystem()), cluster.Rules))
			require.Len(t, roles, len(tt.roles))
			for _, r := range roles {
				require.Empty(t, cmp.Diff(tt.roles[r.Namespace], r.Rules))
			}
		})
	}
	require.Equal(t, []string{"list", "get"}, couchdbs.Verbs, "the argument is not modified")
}

// Impersonate fails instead of returning roles that are too wide.
func TestImpersonateRefuses(t *testing.T) {
	t.Parallel()
	for name, i := range map[string]Impersonation{
		"no user":                {},
		"groups alone":           {Groups: []string{"dev"}},
		"any user":               {AnyUser: true},
		"an empty user":          {Users: []string{"alice", ""}},
		"all by a star":          {Users: []string{"*"}},
		"the controller manager": {Users: []string{"system:kube-controller-manager"}},
		"a node":                 {Users: []string{"system:node:a"}},
		"half a service account": {Users: []string{"system:serviceaccount:ci"}},
		"masters":                {Users: []string{"alice"}, Groups: []string{"system:masters"}},
		"an empty group":         {Users: []string{"alice"}, Groups: []string{""}},
		"an empty UID":           {Users: []string{"alice"}, UIDs: []string{""}},
		"any value":              {Users: []string{"alice"}, Extra: map[string][]string{"scopes": nil}},
		"an empty value":         {Users: []string{"alice"}, Extra: map[string][]string{"scopes": {""}}},
		"an empty key":           {Users: []string{"alice"}, Extra: map[string][]string{"": {"a"}}},
		"a key of two cases":     {Users: []string{"alice"}, Extra: map[string][]string{"Scopes": {"a"}}},
		"a constrained service account with groups": {
			Users: []string{"system:serviceaccount:ci:a"}, Groups: []string{"dev"}, On: []rbacv1.PolicyRule{couchdbs},
		},
	} {
		_, _, err := Impersonate(i)
		require.Error(t, err, name)
	}
}
