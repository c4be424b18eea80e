// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/splitter"
	syncerv1alpha1 "github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// holds returns a cluster with room for the given number of pods.
func holds(name string, pods int64) splitter.Cluster {
	c := cluster(name, "")
	c.Pods = &pods
	return c
}

// The number of pods that a cluster can hold is spec.pods of its SyncTarget or, without that field,
// the number of pods in its status.capacity.
func TestCapacityOfClusters(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, splitter.Options{})
		crd, err := config.CRD("synctargets.workload.kcp.io")
		require.NoError(t, err)
		require.NoError(t, w.AddCRD(crd))
		client := w.api.Dynamic().Resource(syncerv1alpha1.GroupVersion.WithResource("synctargets"))
		_, err = client.Create(t.Context(), parse(t, `{apiVersion: workload.kcp.io/v1alpha1, kind: SyncTarget, metadata: {name: a}}`), metav1.CreateOptions{})
		require.NoError(t, err)
		seen := make(chan *int64, 100)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			for list := range splitter.SyncTargets(w.api).Watch(ctx) {
				seen <- list[0].Pods
			}
		}()
		defer func() { cancel(); <-done }()
		w.rest()
		require.Nil(t, <-seen)
		for _, step := range []struct {
			patch string
			want  *int64
			subs  []string
		}{
			{`{"status":{"capacity":{"cpu":"4","memory":"8Gi","pods":"110"}}}`, new(int64(110)), []string{"status"}},
			{`{"status":{"capacity":{"pods":220}}}`, new(int64(220)), []string{"status"}},
			{`{"status":{"capacity":{"pods":"1k"}}}`, new(int64(1000)), []string{"status"}},
			{`{"spec":{"pods":7}}`, new(int64(7)), nil},
			{`{"spec":{"pods":0}}`, new(int64(0)), nil},
			{`{"spec":{"pods":null}}`, new(int64(1000)), nil},
			{`{"status":{"capacity":{"pods":"0"}}}`, new(int64(0)), []string{"status"}},
			{`{"status":{"capacity":{"pods":"-1"}}}`, nil, []string{"status"}},
			{`{"status":{"capacity":{"pods":"5"}}}`, new(int64(5)), []string{"status"}},
			{`{"status":{"capacity":null}}`, nil, []string{"status"}},
		} {
			_, err := client.Patch(t.Context(), "a", types.MergePatchType, []byte(step.patch), metav1.PatchOptions{}, step.subs...)
			require.NoError(t, err)
			w.rest()
			require.Len(t, seen, 1, step.patch)
			require.Equal(t, step.want, <-seen, step.patch)
		}
	})
}

// The other resources are those of spec.capacity, else of status.capacity. A declared number of pods above the reported
// one means that nodes will be added, so that the present nodes limit nothing.
func TestOtherCapacityOfClusters(t *testing.T) {
	for target, want := range map[string]map[string]string{
		`{status: {capacity: {cpu: "4", memory: 8Gi, pods: "110", example.com/gpu: 2}}}`:                                {"cpu": "4", "memory": "8Gi", "example.com/gpu": "2"},
		`{spec: {capacity: {cpu: 9, example.com/gpu: 0}}, status: {capacity: {cpu: "4", memory: 8Gi}}}`:                 {"cpu": "9", "memory": "8Gi", "example.com/gpu": "0"},
		`{spec: {pods: 110}, status: {capacity: {cpu: "4", pods: "110"}}}`:                                              {"cpu": "4"},
		`{spec: {pods: 111}, status: {capacity: {cpu: "4", pods: "110"}}}`:                                              {},
		`{spec: {pods: 111, capacity: {memory: 1Gi, pods: 5}}, status: {capacity: {cpu: "4", pods: "110"}}}`:            {"memory": "1Gi"},
		`{spec: {pods: 111}, status: {capacity: {cpu: "4", memory: -1, other: [], another: x}}}`:                        {"cpu": "4"},
		`{metadata: {name: a, deletionTimestamp: "2026-01-01T00:00:00Z"}, status: {capacity: {cpu: "4", pods: "110"}}}`: {},
	} {
		list := splitter.ReadClusters([]*unstructured.Unstructured{parse(t, `{apiVersion: workload.kcp.io/v1alpha1, kind: SyncTarget, `+target[1:])}, time.Now())
		have := map[string]string{}
		for name, q := range list[0].Capacity {
			have[string(name)] = q.String()
		}
		require.Equal(t, want, have, target)
	}
}

// No cluster gets more replicas than it can hold. The condition Placed reports the replicas
// without room.
func TestEverywhereHasRoom(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, splitter.Options{}, holds("a", 2), cluster("b", ""), holds("c", 0))
		w.create(deployments, deployment("web", 12))
		w.rest()
		require.Equal(t, map[string]int64{"a": 2, "b": 10}, w.shards())
		w.clusters.Set(holds("a", 2), holds("b", 11), holds("c", 3))
		w.rest()
		w.patch(deployments, "web", `{"spec":{"replicas":20}}`)
		w.rest()
		require.Equal(t, "False Unplaced: 4 replicas find no place: a Capacity (pods), c Capacity (pods)", w.conditionOf(deployments, "web", "Placed"))
		w.clusters.Set(holds("a", 2), cluster("b", ""), holds("c", 3))
		w.rest()
		require.Equal(t, "True Placed: all replicas have a place", w.conditionOf(deployments, "web", "Placed"))
	})
}

// Losing a node moves no replicas: present replicas stay. A cluster below its share gets more
// replicas once it has room for them.
func TestNodesThatComeAndGoMoveNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, splitter.Options{}, holds("a", 10), holds("b", 100))
		w.create(deployments, deployment("web", 12))
		w.rest()
		for _, c := range []string{"a", "b"} {
			w.works("web--"+c, 6)
		}
		w.rest()
		require.Equal(t, map[string]int64{"a": 6, "b": 6}, w.shards())
		w.Reset()
		for _, pods := range []int64{2, 10, 0, 10, 5, 6} {
			w.clusters.Set(holds("a", pods), holds("b", 100))
			for range 10 {
				time.Sleep(time.Minute)
				synctest.Wait()
			}
			require.Empty(t, w.writes(), "%d", pods)
		}
		// Unavailable replicas do not move either.
		w.clusters.Set(holds("a", 3), holds("b", 100))
		w.rest()
		w.works("web--a", 3)
		w.rest()
		require.Equal(t, map[string]int64{"a": 6, "b": 6}, w.shards())
		w.works("web--a", 6)
		w.rest()

		w.patch(deployments, "web", `{"spec":{"replicas":16}}`)
		w.rest()
		require.Equal(t, map[string]int64{"a": 6, "b": 10}, w.shards(), "nothing more without room")
		w.works("web--b", 10)
		w.clusters.Set(holds("a", 10), holds("b", 100))
		w.rest()
		require.Equal(t, map[string]int64{"a": 8, "b": 8}, w.shards(), "its share")
	})
}
