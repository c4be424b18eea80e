// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/atoll-dev/atoll/region"
)

// A cache of PartialStart syncs while a region is unreachable, names the region, and adds its objects when it answers. A
// cache without it waits for the region.
func TestPartialStart(t *testing.T) {
	ring, h := regions(t)
	for peer, name := range map[region.PeerName]string{"peer-a": "a", "peer-b": "b"} {
		c, err := client.New(ring.Server(peer).Config(), client.Options{})
		require.NoError(t, err)
		require.NoError(t, c.Create(t.Context(), configMap(name)))
	}
	ring.Partition("peer-b", true)
	us := region.Key{Provider: "loodse", Name: "us"}

	var p PartialStart
	partial, whole := runAll(t, h, p.NewCache), runAll(t, h, nil)
	require.Empty(t, p.Missing(), "no informer has asked")
	_, err := partial.GetCache().GetInformer(t.Context(), &corev1.ConfigMap{})
	require.NoError(t, err, "it syncs")
	require.Equal(t, []string{"a@eu.loodse"}, names(t, partial.GetCache()))
	require.Equal(t, []region.Key{us}, p.Missing())
	require.NoError(t, partial.GetClient().Create(t.Context(), configMap("c@eu.loodse")))
	eventually(t, want(t, partial.GetCache(), "a@eu.loodse", "c@eu.loodse"))

	informer, err := whole.GetCache().GetInformer(t.Context(), &corev1.ConfigMap{}, cache.BlockUntilSynced(false))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	require.Error(t, whole.GetCache().List(ctx, &corev1.ConfigMapList{}))
	require.False(t, informer.HasSynced())

	ring.Partition("peer-b", false)
	eventually(t, want(t, partial.GetCache(), "a@eu.loodse", "b@us.loodse", "c@eu.loodse"))
	eventually(t, func() error {
		if got := p.Missing(); len(got) > 0 {
			return fmt.Errorf("missing are %v", got)
		}
		return nil
	})
	eventually(t, want(t, whole.GetCache(), "a@eu.loodse", "b@us.loodse", "c@eu.loodse"))
}

// Only the informers of the cache start without a region. The other reads of the cluster need all regions.
func TestPartialStartIsOfTheCacheAlone(t *testing.T) {
	ring, h := regions(t)
	ring.Partition("peer-b", true)
	var p PartialStart
	all := runAll(t, h, p.NewCache)
	require.NoError(t, all.GetCache().List(t.Context(), &corev1.ConfigMapList{}))
	require.Error(t, all.GetAPIReader().List(t.Context(), &corev1.ConfigMapList{}))
}

// Two caches that miss the same region name it once.
func TestPartialStartOfTwoCaches(t *testing.T) {
	ring, h := regions(t)
	ring.Partition("peer-b", true)
	var p PartialStart
	for range 2 {
		require.NoError(t, runAll(t, h, p.NewCache).GetCache().List(t.Context(), &corev1.ConfigMapList{}))
	}
	require.Equal(t, []region.Key{{Provider: "loodse", Name: "us"}}, p.Missing())
}

// runAll runs a cluster.Cluster of all regions until the test ends.
func runAll(t *testing.T, h http.Handler, newCache cache.NewCacheFunc) cluster.Cluster {
	t.Helper()
	config := Config(h)
	config.BearerToken = "alice"
	all, err := cluster.New(config, func(o *cluster.Options) { o.NewCache = newCache })
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- all.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	require.True(t, all.GetCache().WaitForCacheSync(t.Context()), "it has started")
	return all
}
