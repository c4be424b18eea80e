// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
)

// That the roles suffice, and that nothing in them is unused, is shown by the
// tests of atollctl, whose servers grant what is printed here.
func TestRolesAreNarrow(t *testing.T) {
	t.Parallel()
	for _, role := range []*rbacv1.ClusterRole{Coordinate(), Install()} {
		require.Equal(t, "ClusterRole", role.Kind)
		require.NotEmpty(t, role.Rules)
		for _, rule := range role.Rules {
			require.Len(t, rule.APIGroups, 1)
			require.Len(t, rule.Resources, 1)
			require.NotEmpty(t, rule.Verbs)
			require.True(t, slices.IsSorted(rule.Verbs), "the same role prints the same way")
			for _, word := range slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs) {
				require.NotContains(t, word, "*", "%s", role.Name)
			}
			for _, verb := range []string{"escalate", "bind", "impersonate", "deletecollection"} {
				require.NotContains(t, rule.Verbs, verb)
			}
		}
	}
}
