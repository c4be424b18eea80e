// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/splitter/placement"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
)

// While the clusters form too few groups, placed objects stay and new ones wait, also if a cluster drains. Then the
// object moves as far as the bounds require, and no further.
func TestTooFewGroups(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.policy("p", "{maxClusters: 2, spreadBy: ["+region+"]}")
		w.create(deployments, deployment("web", 4, ""))
		a, b := cluster("a", region+"=eu"), cluster("b", region+"=eu")
		w.startPlacement(placement.Options{}, a, b)
		w.split(a, b)
		require.Equal(t, []string{"NONE -> a,b"}, w.happened("web"))

		w.patch(policies, "p", `{"spec":{"groups":[{"key":"`+region+`","minGroups":2,"maxClusters":1}]}}`)
		w.rest() // the Controller has read the policy
		w.create(deployments, deployment("new", 4, ""))
		require.Empty(t, w.happened("web"))
		require.Equal(t, []string{"NONE -> NONE"}, w.happened("new"))
		require.Equal(t, [2]any{"False", "TooFewGroups"}, w.readyOf("p"))
		w.set(draining(a), b)
		require.Empty(t, w.happened("web"))

		w.set(a, b, cluster("c", region+"=us"))
		changes := w.happened("web")
		require.Equal(t, [2]any{"True", "Complete"}, w.readyOf("p"))
		require.Len(t, changes, 1)
		require.Contains(t, []string{"a,b -> a,b,c leaving a", "a,b -> a,b,c leaving b"}, changes[0])
		require.Len(t, w.happened("new"), 1)
	})
}

// A default policy with a key that is not in SpreadBy is refused.
func TestBoundsOfOtherGroupsAreRefused(t *testing.T) {
	w := newWorld(t)
	_, err := placement.New(w.api, w.script(), placement.Options{Default: &v1alpha1.PlacementPolicySpec{Groups: []v1alpha1.GroupBounds{{Key: "zone"}}}})
	require.EqualError(t, err, `placement: Options.Default: groups: key "zone" is not in spreadBy`)
}
