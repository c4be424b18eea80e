// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/account"
)

// TestRolesAreNarrow checks the form of the roles. Other tests, such as TestRights of atollctl,
// show that the roles suffice and that every right in them is used.
func TestRolesAreNarrow(t *testing.T) {
	t.Parallel()
	for _, role := range []*rbacv1.ClusterRole{Coordinate(), Kinds(schema.GroupResource{Resource: "secrets"}), CoordinateCentral(), Install(), Accounts(), AccountsCentral(), Publish(), Claims(), ClaimsCentral(), Peers(), PeersCentral(), Events(), Placement(), Declarations(), Gateway(true), TokenReviews(), Identity()} {
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

// A coordinator holds all rights in the Roles of Accounts, because an API server rejects a Role that
// grants more than its author holds. It does not hold the right to read Secrets.
func TestCoordinatorsHoldWhatTheyGrant(t *testing.T) {
	t.Parallel()
	for accountRole, granted := range account.DefaultRights() {
		for _, want := range granted {
			require.True(t, slices.ContainsFunc(Coordinate().Rules, func(held rbacv1.PolicyRule) bool {
				return slices.Equal(held.APIGroups, want.APIGroups) && slices.Equal(held.Resources, want.Resources) &&
					!slices.ContainsFunc(want.Verbs, func(verb string) bool { return !slices.Contains(held.Verbs, verb) })
			}), "%s: %v", accountRole, want)
		}
	}
	for _, rule := range Coordinate().Rules {
		if slices.Contains(rule.Resources, "secrets") {
			require.NotContains(t, rule.Verbs, "get")
			require.NotContains(t, rule.Verbs, "list")
			require.NotContains(t, rule.Verbs, "watch")
		}
	}
}

// A region.Ring accepts new credentials only if it may read the identity of the cluster. So each loop
// with a Ring of its own has this right in a peer, and so has a router.
func TestEveryLoopMayReadTheIdentity(t *testing.T) {
	t.Parallel()
	reads := func(rules []rbacv1.PolicyRule) bool {
		return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
			return slices.Contains(r.Resources, "namespaces") && slices.Contains(r.Verbs, "get") &&
				(len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, "kube-system"))
		})
	}
	for _, name := range LoopNames() {
		cluster, _, _ := Loop(name, Place{})
		switch name {
		case "accounts", "events", "shards": // these loops have no Ring of their own
			continue
		}
		require.True(t, slices.ContainsFunc(cluster, func(r *rbacv1.ClusterRole) bool { return reads(r.Rules) }), name)
	}
	cluster, _, err := Impersonate(Impersonation{Users: []string{"alice"}})
	require.NoError(t, err)
	require.True(t, reads(cluster.Rules))
}

// Loop returns the expected roles for each loop, in a peer and in a central plane.
func TestLoops(t *testing.T) {
	t.Parallel()
	type names struct{ peer, central []string }
	want := map[string]names{
		"accounts":        {[]string{"atoll-accounts"}, []string{"atoll-accounts-central"}},
		"catalog":         {[]string{"atoll-catalog"}, []string{"atoll-catalog"}},
		"claims":          {[]string{"atoll-claims"}, []string{"system/atoll-claims-central"}},
		"events":          {[]string{"atoll-events"}, []string{"atoll-events"}},
		"fanout":          {[]string{"atoll"}, []string{"atoll-central"}},
		"peers":           {[]string{"atoll-peers"}, []string{"atoll-peers-central", "system/atoll-kubeconfigs"}},
		"shards":          {nil, []string{"system/atoll-shards"}},
		"serviceclusters": {[]string{"atoll-serviceclusters"}, nil},
	}
	require.Len(t, LoopNames(), len(want))
	want["clusterdaemonsets"] = names{[]string{"atoll-clusterdaemonsets"}, []string{"atoll-clusterdaemonsets"}}
	want["placement"] = names{[]string{"atoll-placement"}, []string{"atoll-placement"}}
	require.Equal(t, []string{"clusterdaemonsets", "declarations", "placement"}, UpstreamLoopNames())
	for name := range want {
		for _, central := range []bool{false, true} {
			cluster, namespaced, ok := Loop(name, Place{Central: central, Namespace: "system"})
			require.True(t, ok)
			var got []string
			for _, r := range cluster {
				require.Equal(t, "ClusterRole", r.Kind)
				got = append(got, r.Name)
			}
			for _, r := range namespaced {
				require.Equal(t, "Role", r.Kind)
				require.NotEmpty(t, r.Rules)
				got = append(got, r.Namespace+"/"+r.Name)
			}
			if central {
				require.Equal(t, want[name].central, got, name)
			} else {
				require.Equal(t, want[name].peer, got, name)
			}
		}
	}
	_, _, ok := Loop("nothing", Place{})
	require.False(t, ok)
}
