// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/router"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

func create(t *testing.T, conn *region.Conn, name string) {
	t.Helper()
	_, err := conn.Dynamic().Resource(configMaps).Namespace("default").Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
}

func informer(api dynamic.Interface) cache.SharedIndexInformer {
	client := api.Resource(configMaps).Namespace("default")
	return cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return client.List(ctx, o) },
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return client.Watch(ctx, o)
		},
	}, api), &unstructured.Unstructured{}, 0, nil)
}

// An informer over a Client caches the objects of the region's present peer, also after the region has
// moved.
func TestInformerFollowsARegion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := region.Key{Provider: "loodse", Name: "eu-west-1"}
		ring := regiontest.NewRing("a", "b")
		defer ring.Close()
		require.NoError(t, ring.Serve("a", k))
		for _, name := range []region.PeerName{"a", "b"} {
			conn, err := ring.Conn(name)
			require.NoError(t, err)
			create(t, conn, "of-"+string(name))
		}
		routes, err := router.New(ring, router.Options{})
		require.NoError(t, err)
		alice, err := routes.Client(k, router.Impersonate(router.User{Name: "alice", Groups: []string{"dev"}}))
		require.NoError(t, err)
		objects := informer(alice.Dynamic())
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			objects.RunWithContext(ctx)
		}()
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, []string{"default/of-a"}, objects.GetStore().ListKeys())

		require.NoError(t, ring.Serve("a"))
		require.NoError(t, ring.Serve("b", k))
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		require.Equal(t, []string{"default/of-b"}, objects.GetStore().ListKeys())
		for _, r := range ring.Server("b").Requests() {
			if r.Verb == "watch" || r.Verb == "list" {
				require.Equal(t, "alice", r.User.Name)
				require.Equal(t, "system:admin", r.Impersonator.Name)
			}
		}
		cancel()
		<-ended
	})
}

// A peer's 401 or 403 reaches the caller unchanged.
func TestForbiddenIsThePeersAnswer(t *testing.T) {
	k := region.Key{Provider: "loodse", Name: "eu-west-1"}
	s := regiontest.NewServer(regiontest.Options{
		Tokens: map[string]regiontest.User{"of-alice": {Name: "alice"}, "of-library": {Name: "library"}},
		Authorize: func(r regiontest.Request) error {
			if r.User.Name == "alice" && r.Resource == "configmaps" {
				return errors.New("not hers")
			}
			return nil
		},
	})
	defer s.Close()
	config := s.Config()
	config.BearerToken = "of-library"
	creds, err := region.FromConfig(config)
	require.NoError(t, err)
	conn, err := region.NewConn(region.Peer{Name: "a", Regions: []region.Key{k}, Credentials: creds}, region.ConnOptions{})
	require.NoError(t, err)
	routes, err := router.New(region.Fixed(conn), router.Options{})
	require.NoError(t, err)
	for _, tt := range []struct {
		id   router.Identity
		want func(error) bool
	}{
		{router.Self(), func(err error) bool { return err == nil }},
		{router.Caller("of-alice"), apierrors.IsForbidden},
		{router.Impersonate(router.User{Name: "alice"}), apierrors.IsForbidden},
		{router.Caller("of-nobody"), apierrors.IsUnauthorized},
	} {
		client, err := routes.Client(k, tt.id)
		require.NoError(t, err)
		_, err = client.Dynamic().Resource(configMaps).Namespace("default").List(t.Context(), metav1.ListOptions{})
		require.True(t, tt.want(err), "%s: %v", tt.id, err)
	}
}
