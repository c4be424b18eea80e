// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/splitter/placement"
)

// While a policy is suspended, its objects stay and new ones wait, although a cluster drains and another policy would
// place them. Afterwards they are placed as the policy demands.
func TestSuspend(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.policy("p", "{priority: 1, maxClusters: 1, clusterSelector: {matchLabels: {tier: gold}}}")
		w.policy("other", "{}")
		w.create(deployments, deployment("web", 2, ""))
		gold, spare := cluster("a", "tier=gold"), cluster("b")
		w.startPlacement(placement.Options{}, gold, spare)
		w.split(gold, spare)
		require.Equal(t, []string{"NONE -> a"}, w.happened("web"))

		w.patch(policies, "p", `{"spec":{"suspend":true,"clusterSelector":null}}`)
		w.rest()
		w.set(draining(gold), spare)
		w.create(deployments, deployment("new", 2, ""))
		require.Empty(t, w.happened("web"))
		require.Empty(t, w.happened("new"))
		require.Equal(t, map[string]int64{"a": 2}, w.shards())
		require.Equal(t, [2]any{"False", "Suspended"}, w.readyOf("p"))

		w.patch(policies, "p", `{"spec":{"suspend":false}}`)
		require.Equal(t, []string{"NONE -> b"}, w.happened("new"))
		require.Equal(t, "a -> a,b leaving a", w.happened("web")[0])
		require.Equal(t, [2]any{"True", "Complete"}, w.readyOf("p"))
	})
}

// readyOf returns the status and the reason of the condition Ready of a policy.
func (w *world) readyOf(policy string) (ready [2]any) {
	conditions, _, err := unstructured.NestedSlice(w.get(policies, policy).Object, "status", "conditions")
	require.NoError(w.t, err)
	for _, c := range conditions {
		if c := c.(map[string]any); c["type"] == "Ready" {
			ready = [2]any{c["status"], c["reason"]}
		}
	}
	return ready
}
