// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/placement"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
	syncerv1alpha1 "github.com/atoll-dev/atoll/syncer/v1alpha1"
)

func tainted(c splitter.Cluster, effect corev1.TaintEffect, added ...time.Time) splitter.Cluster {
	taint := syncerv1alpha1.Taint{Key: "maintenance", Effect: effect}
	if added != nil {
		taint.TimeAdded = &metav1.Time{Time: added[0]}
	}
	c.Taints = append(c.Taints[:len(c.Taints):len(c.Taints)], taint)
	return c
}

// A cluster with a taint NoSchedule keeps its replicas and the objects that it has. New replicas and new objects go to
// the other cluster, in the Controller and in the Splitter.
func TestNoScheduleHolds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := cluster("a"), cluster("b")
		w.policy("p", "{selector: {}}")
		w.create(deployments, deployment("web", 4, ""))
		w.configMap("old", "")
		w.startPlacement(placement.Options{}, a, b)
		w.split(a, b)
		w.rest()
		w.works("web--a", 2)
		w.works("web--b", 2)
		w.set(tainted(a, corev1.TaintEffectNoSchedule), b)
		w.rest()
		w.patch(deployments, "web", `{"spec":{"replicas":10}}`)
		w.configMap("new", "")
		w.rest()
		require.Equal(t, map[string]int64{"a": 2, "b": 8}, w.shards())
		require.Equal(t, "a,b", w.targets(configMaps, "old"))
		require.Equal(t, "b", w.targets(configMaps, "new"))
		w.Reset()
		w.patch(policies, "p", `{"spec":{"tolerations":[{"key":"maintenance","operator":"Exists"}]}}`)
		w.works("web--b", 8)
		for range 5 {
			w.rest()
			for c, n := range w.shards() {
				w.works("web--"+c, n)
			}
		}
		require.Equal(t, map[string]int64{"a": 5, "b": 5}, w.shards(), "tolerated")
		require.Equal(t, "a,b", w.targets(configMaps, "new"))
	})
}

// Objects leave a cluster with a taint NoExecute when TolerationSeconds have passed, without an event. They count from
// TimeAdded or, without it, from the first observation of the taint. Until then the cluster gets no new replicas. All
// replicas stay available.
func TestNoExecuteDrainsAfterTheSeconds(t *testing.T) {
	for name, dated := range map[string]bool{"with a time": true, "without a time": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t)
				a, b := cluster("a"), cluster("b")
				w.policy("p", `{selector: {}, tolerations: [{key: maintenance, operator: Exists, effect: NoExecute, tolerationSeconds: 300}]}`)
				w.create(deployments, deployment("web", 4, ""))
				w.configMap("settings", "")
				w.startPlacement(placement.Options{Linger: time.Second}, a, b)
				w.split(a, b)
				w.rest()
				w.works("web--a", 2)
				w.works("web--b", 2)
				if dated {
					a = tainted(a, corev1.TaintEffectNoExecute, time.Now().Add(-2*time.Minute))
				} else {
					a = tainted(a, corev1.TaintEffectNoExecute)
					w.set(a, b)
					time.Sleep(2 * time.Minute)
					b.Labels["a list in which"] = "something-else-changes"
				}
				w.set(a, b)
				w.rest()
				w.patch(deployments, "web", `{"spec":{"replicas":6}}`)
				w.rest()
				require.Equal(t, map[string]int64{"a": 2, "b": 4}, w.shards())
				w.works("web--b", 4)
				time.Sleep(2*time.Minute + 15*time.Second) // 2:40 and 20 s of rests are over
				require.Equal(t, "a,b", w.annotation(deployments, "web", "placement"))
				require.Empty(t, w.annotation(deployments, "web", "leaving"))
				time.Sleep(10 * time.Second)
				w.rest()
				require.Equal(t, "a", w.annotation(deployments, "web", "leaving"))
				require.Equal(t, "b", w.targets(configMaps, "settings"))
				require.Equal(t, map[string]int64{"a": 2, "b": 6}, w.shards(), "first the new replicas")
				w.works("web--b", 6)
				w.rest()
				require.Equal(t, map[string]int64{"b": 6}, w.shards())
				require.Equal(t, "b", w.annotation(deployments, "web", "placement"))
				require.Equal(t, int64(1), w.chosenBy("p"), "the status is written by time alone, too")
			})
		})
	}
}

// If all clusters have a taint NoExecute, the objects stay.
func TestNoExecuteEverywhereMovesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := cluster("a"), cluster("b")
		w.policy("p", "{}")
		w.create(deployments, deployment("web", 4, ""))
		w.startPlacement(placement.Options{}, a, b)
		w.split(a, b)
		w.rest()
		w.set(tainted(a, corev1.TaintEffectNoExecute), tainted(b, corev1.TaintEffectNoExecute))
		w.rest()
		require.Equal(t, map[string]int64{"a": 2, "b": 2}, w.shards())
		require.Empty(t, w.annotation(deployments, "web", "leaving"))
		require.Equal(t, [2]any{"False", "NoClusters"}, w.readyOf("p"))
	})
}

// The default policy has tolerations, too.
func TestTheDefaultPolicyTolerates(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.create(deployments, deployment("web", 4, ""))
		tolerates := v1alpha1.PlacementPolicySpec{Tolerations: []v1alpha1.Toleration{{Operator: corev1.TolerationOpExists}}}
		w.startPlacement(placement.Options{Default: &tolerates}, tainted(cluster("a"), corev1.TaintEffectNoSchedule), cluster("b"))
		require.Equal(t, []string{"NONE -> a,b"}, w.happened("web"))
	})
}

// chosenBy returns how many clusters a policy chooses by its status.
func (w *world) chosenBy(policy string) int64 {
	n, _, err := unstructured.NestedInt64(w.get(policies, policy).Object, "status", "clusters")
	require.NoError(w.t, err)
	return n
}
