// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/syncer"
	"github.com/atoll-dev/atoll/syncer/targets"
)

// TestSyncIsNarrow checks the form of the roles. The tests of packages syncer, syncer/targets,
// syncer/crds and splitter show that the roles suffice and that every right in them is used.
func TestSyncIsNarrow(t *testing.T) {
	t.Parallel()
	want := map[string][2][]string{
		"splitter": {{"atoll-splitter"}, nil},
		"syncer":   {{"atoll-syncer"}, {"atoll-syncer-downstream"}},
		"targets":  {{"atoll-targets", "system/atoll-targets-kubeconfigs"}, {"atoll-syncer-downstream"}},
		"types":    {{"atoll-types"}, {"atoll-types"}},
	}
	require.Len(t, SyncParts(), len(want))
	for _, part := range SyncParts() {
		for i, downstream := range []bool{false, true} {
			cluster, namespaced, ok := Sync(part, Syncing{Downstream: downstream, Namespace: "system", Target: "a"})
			require.True(t, ok)
			var got []string
			for _, r := range cluster {
				require.Equal(t, "ClusterRole", r.Kind)
				got = append(got, r.Name)
				requireNarrow(t, r.Rules)
			}
			for _, r := range namespaced {
				require.Equal(t, "Role", r.Kind)
				got = append(got, r.Namespace+"/"+r.Name)
				requireNarrow(t, r.Rules)
			}
			require.Equal(t, want[part][i], got, part)
		}
	}
	_, _, ok := Sync("nothing", Syncing{})
	require.False(t, ok)
}

func requireNarrow(t *testing.T, rules []rbacv1.PolicyRule) {
	t.Helper()
	require.NotEmpty(t, rules)
	for _, rule := range rules {
		require.Len(t, rule.APIGroups, 1)
		require.Len(t, rule.Resources, 1)
		require.NotEmpty(t, rule.Verbs)
		require.True(t, slices.IsSorted(rule.Verbs), "the same role prints the same way")
		for _, word := range slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs) {
			require.NotContains(t, word, "*")
		}
		for _, verb := range []string{"escalate", "bind", "impersonate", "deletecollection"} {
			require.NotContains(t, rule.Verbs, verb)
		}
	}
}

// The roles of a targets.Controller depend on its mode. Downstream, Pull needs the role for
// installing syncers, and None needs no role. Upstream, None does not need the role for
// kubeconfigs.
func TestSyncOfModes(t *testing.T) {
	t.Parallel()
	names := func(mode targets.Mode, downstream bool) (names []string) {
		cluster, namespaced, _ := Sync("targets", Syncing{Mode: mode, Downstream: downstream, Namespace: "system"})
		for _, r := range cluster {
			names = append(names, r.Name)
		}
		for _, r := range namespaced {
			names = append(names, r.Name)
		}
		return names
	}
	require.Equal(t, []string{"atoll-targets-install"}, names(targets.Pull, true))
	require.Empty(t, names(targets.None, true))
	require.Equal(t, []string{"atoll-targets"}, names(targets.None, false))
	require.Equal(t, []string{"atoll-targets", "atoll-targets-kubeconfigs"}, names(targets.Pull, false))
}

// In the mode Pull, a targets.Controller holds all rights that the syncer which it installs
// needs downstream, because an API server rejects a ClusterRole that grants more than its author
// holds.
func TestInstallersHoldWhatTheyGrant(t *testing.T) {
	t.Parallel()
	types := append(syncer.WorkloadTypes(), schema.GroupResource{Group: "example.org", Resource: "widgets"})
	cluster, _, _ := Sync("targets", Syncing{Mode: targets.Pull, Downstream: true, Types: types, Unscheduled: true})
	held := cluster[0].Rules
	requireNarrow(t, held)
	for _, want := range append(syncer.DownstreamRights(syncer.Options{}, types...), syncer.UnscheduledRights()...) {
		require.True(t, slices.ContainsFunc(held, func(have rbacv1.PolicyRule) bool {
			return slices.Equal(have.APIGroups, want.APIGroups) && slices.Equal(have.Resources, want.Resources) && len(have.ResourceNames) == 0 &&
				!slices.ContainsFunc(want.Verbs, func(verb string) bool { return !slices.Contains(have.Verbs, verb) })
		}), "%v", want)
	}
}
