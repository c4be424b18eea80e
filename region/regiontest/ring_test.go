// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

func TestRingIsADirectoryOfDifferentClusters(t *testing.T) {
	ring := regiontest.NewRing("eu", "us")
	defer ring.Close()
	require.NoError(t, ring.AddCRDs(widgetCRD()))
	results, err := region.Each(t.Context(), ring, "read kube-system", region.All(), uidOf)
	require.NoError(t, err)
	seen := map[string]bool{}
	for o := range results.All() {
		seen[o.Value] = true
	}
	require.Len(t, seen, 2)

	ring.Partition("us", true)
	results, err = region.Each(t.Context(), ring, "read kube-system", region.BestEffort(), uidOf)
	require.NoError(t, err)
	require.False(t, results.Complete())
	ring.Partition("us", false)
	_, err = region.Each(t.Context(), ring, "read kube-system", region.All(), uidOf)
	require.NoError(t, err)

	key := region.Key{Provider: "loodse", Name: "eu-west-1"}
	require.NoError(t, ring.Serve("eu", key))
	require.Error(t, ring.Serve("us", key))
	peer, ok := ring.Snapshot().Locate(key)
	require.True(t, ok)
	require.Equal(t, region.PeerName("eu"), peer.Name)
	_, err = ring.Conn("mars")
	require.ErrorIs(t, err, region.ErrUnknownPeer)
}

func uidOf(ctx context.Context, c *region.Conn) (string, error) {
	ns, err := c.Dynamic().Resource(namespaces).Get(ctx, "kube-system", metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	return string(ns.GetUID()), nil
}

func TestListenServesTLSWithTheKubeconfig(t *testing.T) {
	s := regiontest.NewServer(regiontest.Options{})
	defer s.Close()
	kubeconfig, err := s.Listen(t.Context())
	require.NoError(t, err)
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	require.NoError(t, err)
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	_, err = client.Resource(namespaces).Get(t.Context(), "kube-system", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "system:admin", s.Requests()[0].User.Name)
	s.Inject(regiontest.Fault{Do: regiontest.DropRequest()})
	_, err = client.Resource(namespaces).Create(t.Context(), widget("x", 1), metav1.CreateOptions{})
	require.Error(t, err)
}
