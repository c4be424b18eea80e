// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/atoll-dev/atoll/internal/docpage"
	"github.com/atoll-dev/atoll/splitter"
)

// anyNumber draws arbitrary content for a field that should hold a number.
func anyNumber(t *rapid.T, label string) any {
	return rapid.OneOf(
		rapid.Map(rapid.Int64Range(0, 30), func(n int64) any { return n }),
		rapid.SampledFrom([]any{nil, int64(-3), 2.5, 4.0, "7", "many", map[string]any{}, true}),
	).Draw(t, label)
}

// anyStatus draws an arbitrary status, with any observedGeneration.
func anyStatus(t *rapid.T) any {
	if rapid.IntRange(0, 4).Draw(t, "odd") == 0 {
		return rapid.SampledFrom([]any{nil, "status", map[string]any{}}).Draw(t, "status")
	}
	status := map[string]any{}
	for _, field := range []string{"observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas"} {
		if v := anyNumber(t, field); v != nil {
			status[field] = v
		}
	}
	return status
}

// working returns the shard with the status that its cluster reports once all replicas are
// available.
func working(s splitter.Shard) splitter.Shard {
	obj := s.Object.DeepCopy()
	n, ok, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas")
	if !ok {
		n = 1
	}
	obj.SetGeneration(1)
	obj.Object["status"] = map[string]any{"observedGeneration": int64(1), "replicas": n, "updatedReplicas": n, "readyReplicas": n, "availableReplicas": n}
	return splitter.Shard{Cluster: s.Cluster, Object: obj, Current: true}
}

// Cut begins with shards of random content, invalid values included. After each call the clusters
// report that all desired replicas are available. Within 200 calls, Cut returns the same shards as
// in the call before. These shards have at most the parent's replicas, and at least those that the
// plan places. Fold reports all of them as available.
func TestStatesOfShards(t *testing.T) {
	most, states := 0, 0
	for name, kind := range map[string]splitter.Kind{"Deployments": splitter.Deployments(), "StatefulSets": splitter.StatefulSets()} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				states++
				d, shares := demand(t, splitter.Spread, splitter.Fill), flat(t) // Fewest may not settle: docs/evidence/states.md
				for i := range shares {
					shares[i].Present = 0 // Cut sets it from the shards
				}
				n := rapid.Int64Range(0, 20).Draw(t, "replicas")
				parent := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": n}, "status": anyStatus(t)}}
				parent.SetGeneration(rapid.Int64Range(0, 5).Draw(t, "generation"))
				var have []splitter.Shard
				for _, cluster := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "gone"}), 0, 4, rapid.ID[string]).Draw(t, "shards") {
					obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": anyNumber(t, "present")}, "status": anyStatus(t)}}
					obj.SetGeneration(rapid.Int64Range(0, 3).Draw(t, "generation"))
					have = append(have, splitter.Shard{Cluster: cluster, Object: obj, Silent: rapid.IntRange(0, 4).Draw(t, "silent") == 0})
				}
				before := map[string]any{"not": "planned"}
				for step := 1; ; step++ {
					require.Less(t, step, 200, "no rest")
					plan, want, err := kind.Cut(parent, d, shares, have)
					require.NoError(t, err)
					status, err := kind.Fold(parent, have)
					require.NoError(t, err)
					parent.Object["status"] = status
					now := field(want, "spec.replicas")
					have = nil
					var sum int64
					for _, s := range want {
						have = append(have, working(s))
						sum += now[s.Cluster].(int64)
					}
					if equal(before, now) && step > 2 {
						most = max(most, step)
						// Replicas that cannot be placed elsewhere stay in a cluster that the
						// parent has to leave.
						require.LessOrEqual(t, sum, n, "%v", now)
						require.GreaterOrEqual(t, sum, n-plan.Unplaced, "%v, %d without a place", now, plan.Unplaced)
						works, _, _ := unstructured.NestedInt64(parent.Object, "status", "availableReplicas")
						require.Equal(t, sum, works, "the status")
						require.Zero(t, plan.Moved)
						return
					}
					before = now
				}
			})
		})
	}
	if !t.Failed() {
		docpage.Section(t, "states.md", "splitter", fmt.Sprintf("- splitter: %d states of a parent and its shards, Deployments and StatefulSets; at most %d plans until one changes nothing\n", states, most))
	}
}

func equal(a, b map[string]any) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if w, ok := b[k]; !ok || v != w {
			return false
		}
	}
	return true
}
