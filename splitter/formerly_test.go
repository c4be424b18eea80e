// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/splitter"
)

// Another controller wrote the parent's status before the Splitter divided the parent. The Splitter
// overwrites the counters in that status, also a counter whose sum over the shards is zero. It does
// not keep an observedGeneration above the parent's generation.
func TestStatusOfAFormerController(t *testing.T) {
	for name, clusters := range map[string][]splitter.Cluster{"with shards": {cluster("a", ""), cluster("b", "")}, "without a cluster": nil} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, splitter.Options{}, clusters...)
				w.stop()
				w.create(deployments, deployment("web", 4))
				_, err := w.of(deployments).Patch(t.Context(), "web", types.MergePatchType, []byte(
					`{"status":{"observedGeneration":9,"replicas":7,"readyReplicas":7,"availableReplicas":5,"unavailableReplicas":2,"updatedReplicas":1}}`,
				), metav1.PatchOptions{FieldManager: "kube-controller-manager"}, "status")
				require.NoError(t, err)
				split, err := splitter.New(w.api, w.clusters, splitter.Options{})
				require.NoError(t, err)
				w.start(split)
				w.rest()
				status := w.get(deployments, "web").Object["status"].(map[string]any)
				if len(clusters) > 0 {
					require.NotContains(t, status, "observedGeneration", "no cluster has seen it")
					w.works("web--a", 2)
					w.works("web--b", 2)
					w.rest()
					status = w.get(deployments, "web").Object["status"].(map[string]any)
					require.EqualValues(t, 4, status["availableReplicas"])
					require.EqualValues(t, 4, status["updatedReplicas"])
				} else {
					require.NotContains(t, status, "replicas")
					require.NotContains(t, status, "availableReplicas")
				}
				require.EqualValues(t, 1, status["observedGeneration"])
				require.NotContains(t, status, "unavailableReplicas")
				w.Reset()
				time.Sleep(time.Hour)
				require.Empty(t, w.writes())
			})
		})
	}
}

// A parent that has lost its finalizer and is no longer divisible keeps no shards.
func TestShardsOfAParentThatLostItsFinalizer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, splitter.Options{}, cluster("a", ""), cluster("b", ""))
		w.create(deployments, deployment("web", 4))
		w.rest()
		require.Len(t, w.shards(), 2)
		w.stop()
		w.patch(deployments, "web", `{"metadata":{"finalizers":null,"labels":{"state.workload.kcp.io/a":"Sync"}}}`)
		split, err := splitter.New(w.api, w.clusters, splitter.Options{})
		require.NoError(t, err)
		w.start(split)
		w.rest()
		require.Empty(t, w.shards())
		require.NotNil(t, w.get(deployments, "web"))
	})
}
