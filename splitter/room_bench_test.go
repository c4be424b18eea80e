// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// The figure is the time of one decision about a Deployment with 50 shards in 50 clusters, whose room 10,000 others use.
// With "scaled", each decision changes all shards. The baseline is the same decision without a known capacity, so without
// room: the metric ratio is its time over that with room.
func BenchmarkRoom(b *testing.B) {
	for name, replicas := range map[string][2]int64{"at-rest": {100, 100}, "scaled": {100, 200}} {
		b.Run("parents=10000/clusters=50/"+name, func(b *testing.B) { benchRoom(b, 10_000, 50, replicas) })
	}
}

func benchRoom(b *testing.B, parents, clusters int, replicas [2]int64) {
	b.Helper()
	s, k, parent := roomBench(b, clusters)
	at := situation{}
	caps, each := map[string]amounts{}, map[string]int64{}
	for i := range clusters {
		name := fmt.Sprintf("cluster-%02d", i)
		at.clusters = append(at.clusters, Cluster{Name: name, Ready: metav1.ConditionTrue, State: Placeable})
		caps[name], each[name] = amounts{"cpu": 100_000_000, "memory": 1 << 40, "pods": 100_000}, 2
	}
	var have []Shard
	for _, obj := range k.objects.List() {
		have = append(have, Shard{Cluster: clusterOf(obj), Object: obj})
	}
	require.Len(b, have, clusters)
	turn := 0
	scale := func() {
		turn++
		require.NoError(b, unstructured.SetNestedField(parent.Object, replicas[turn%2], "spec", "replicas"))
	}
	s.room.setCapacities(caps)
	for i := range parents {
		of := k.holder(types.NamespacedName{Namespace: "default", Name: fmt.Sprint("other-", i)})
		entered, _ := s.room.enter(of, decision{replicas: each, each: amounts{"cpu": 500, "memory": 1 << 20, "pods": 1}})
		require.True(b, entered)
	}
	b.ReportAllocs()
	var with, without time.Duration
	for b.Loop() {
		scale()
		started := time.Now()
		_, want, _, err := s.decide(k, parent, at, have)
		with += time.Since(started)
		b.StopTimer()
		require.NoError(b, err)
		require.Len(b, want, clusters)
		started = time.Now()
		_, _, err = s.cut(k, parent, at, have)
		without += time.Since(started)
		require.NoError(b, err)
		b.StartTimer()
	}
	b.ReportMetric(float64(without)/float64(with), "ratio")
}

// roomBench returns a Splitter whose cache has the shards of one Deployment in the given number of clusters.
func roomBench(b *testing.B, clusters int) (*Splitter, *kindState, *unstructured.Unstructured) {
	b.Helper()
	server := regiontest.NewServer(regiontest.Options{})
	b.Cleanup(server.Close)
	api, err := region.APIFor(server.Config())
	require.NoError(b, err)
	s, err := New(api, StaticClusters(), Options{})
	require.NoError(b, err)
	k := s.kinds[0]
	parent := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web", "namespace": "default", "uid": "u-1"},
		"spec": map[string]any{"replicas": int64(2 * clusters), "selector": map[string]any{"matchLabels": map[string]any{"app": "web"}}, "template": map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"app": "web"}},
			"spec": map[string]any{"containers": []any{
				map[string]any{"name": "web", "image": "web", "resources": map[string]any{"requests": map[string]any{"cpu": "500m", "memory": "1Gi"}}},
				map[string]any{"name": "proxy", "image": "proxy", "resources": map[string]any{"requests": map[string]any{"cpu": "100m", "memory": "64Mi"}}},
			}},
		}},
	}}
	for i := range clusters {
		shard := s.dress(parent, newShard(parent, fmt.Sprintf("cluster-%02d", i)))
		require.NoError(b, unstructured.SetNestedField(shard.Object, int64(2), "spec", "replicas"))
		_, err := k.client("default").Create(b.Context(), shard, metav1.CreateOptions{})
		require.NoError(b, err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = k.objects.Start(ctx) }()
	b.Cleanup(func() { cancel(); <-done })
	<-k.objects.Synced()
	return s, k, parent
}
