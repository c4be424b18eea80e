// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// The test runs a Ring over API servers in memory. Every client of a Conn works, and a partition makes the peer
// Unhealthy.
func TestRingOfServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servers := map[region.PeerName]*regiontest.Server{}
		var peers []region.Peer
		for _, name := range []region.PeerName{"eu", "us"} {
			s := regiontest.NewServer(regiontest.Options{Name: string(name)})
			defer s.Close()
			servers[name] = s
			creds, err := region.FromConfig(s.Config())
			require.NoError(t, err)
			peers = append(peers, region.Peer{Name: name, Credentials: creds})
		}
		source, err := region.FromPeers(peers...)
		require.NoError(t, err)
		ring, err := region.NewRing(source, region.Options{})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- ring.Start(ctx) }()
		<-ring.Synced()
		synctest.Wait()

		results, err := region.Each(ctx, ring, "create", region.All(), func(ctx context.Context, c *region.Conn) (int, error) {
			if h := c.Health(); h.State != region.Healthy {
				return 0, h.Err
			}
			object := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"},
			}}
			if _, err := c.Dynamic().Resource(configMaps).Namespace("default").Create(ctx, object, metav1.CreateOptions{}); err != nil {
				return 0, err
			}
			list, err := c.Metadata().Resource(configMaps).Namespace("default").List(ctx, metav1.ListOptions{})
			if err != nil {
				return 0, err
			}
			if _, resources, err := c.Discovery().ServerGroupsAndResources(); err != nil || len(resources) == 0 {
				return 0, fmt.Errorf("%d resources: %w", len(resources), err)
			}
			return len(list.Items), nil
		})
		require.NoError(t, err)
		require.True(t, results.Complete())
		for o := range results.All() {
			require.Equal(t, 1, o.Value)
		}

		eu, err := ring.Conn("eu")
		require.NoError(t, err)
		servers["eu"].Partition(true)
		var attempt region.Attempt
		_, err = eu.Dynamic().Resource(configMaps).Namespace("default").Get(region.WithAttempt(ctx, &attempt), "a", metav1.GetOptions{})
		require.ErrorIs(t, err, region.ErrUnavailable)
		require.False(t, apierrors.IsNotFound(err))
		require.False(t, attempt.Sent())
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, region.Unhealthy, eu.Health().State)
		require.Equal(t, 2, ring.Snapshot().Len(), "absence is not deletion")
		servers["eu"].Partition(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, region.Healthy, eu.Health().State)
		cancel()
		require.NoError(t, <-ended)
	})
}
