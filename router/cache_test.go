// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// silent is a Source that never publishes a Snapshot, as if its central plane were down.
type silent struct{}

func (silent) Run(ctx context.Context, _ func(*region.Snapshot)) error {
	<-ctx.Done()
	return nil
}

// run starts r. The returned func stops it.
func run(t *testing.T, r *Router) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Start(ctx) }()
	return func() {
		cancel()
		require.NoError(t, <-ended)
	}
}

func openCache(t *testing.T, path string) *FileCache {
	t.Helper()
	c, err := OpenCache(path)
	require.NoError(t, err)
	require.Empty(t, c.Damaged())
	return c
}

// A program's Directory lists the peers but no regions, and its Resolver asks a central plane which peer serves a
// region. While the plane does not answer, the restarted program routes by the answer that its Cache has saved. Once
// the plane names another peer, the program routes to that peer.
func TestRoutingWithoutTheCentralPlane(t *testing.T) {
	path := filepath.Join(t.TempDir(), "routes")
	synctest.Test(t, func(t *testing.T) {
		ring := regiontest.NewRing("a", "b")
		defer ring.Close()
		p := &plane{peer: "b"}
		first := newRouter(t, ring, Options{Resolver: p, Cache: openCache(t, path)})
		stop := run(t, first)
		route, err := first.Lookup(t.Context(), eu)
		require.NoError(t, err)
		require.Equal(t, FromResolver, route.From)
		stop()

		time.Sleep(48 * time.Hour)
		p.say("", errDown)
		second := newRouter(t, ring, Options{Resolver: p, Cache: openCache(t, path)})
		defer run(t, second)()
		route, err = second.Lookup(t.Context(), eu)
		require.NoError(t, err)
		require.Equal(t, FromCache, route.From)
		require.Equal(t, 48*time.Hour, route.Age())
		client, err := second.Client(eu, Self())
		require.NoError(t, err)
		_, err = client.Dynamic().Resource(configMaps).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		require.NotEmpty(t, ring.Server("b").Requests())
		require.Empty(t, ring.Server("a").Requests())
		for _, r := range []region.PeerName{"a"} {
			p.say(r, nil)
			time.Sleep(2 * time.Minute)
			_, err = second.Lookup(t.Context(), eu)
			require.NoError(t, err)
			synctest.Wait()
			route, err = second.Lookup(t.Context(), eu)
			require.NoError(t, err)
			require.Equal(t, r, route.Peer)
			require.Equal(t, FromResolver, route.From)
		}
	})
}

// A cached route that came from the Directory is valid only until the Directory has its first Snapshot.
func TestRoutesBeforeTheFirstSnapshot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "routes")
	us := region.Key{Provider: "loodse", Name: "us"}
	synctest.Test(t, func(t *testing.T) {
		d := newDirectory(t)
		d.conns["a"] = nil
		d.serve(t, map[region.Key]region.PeerName{eu: "a", us: "a"})
		stop := run(t, newRouter(t, d, Options{Cache: openCache(t, path)}))
		synctest.Wait()
		stop()
		time.Sleep(time.Hour)

		ring, err := region.NewRing(silent{}, region.Options{})
		require.NoError(t, err)
		early := newRouter(t, ring, Options{Cache: openCache(t, path)})
		route, err := early.Lookup(t.Context(), eu)
		require.NoError(t, err)
		require.Equal(t, region.PeerName("a"), route.Peer)
		require.Equal(t, FromCache, route.From)
		require.Equal(t, time.Hour, route.Age())
		client, err := early.Client(eu, Self())
		require.NoError(t, err)
		_, err = client.Dynamic().Resource(configMaps).List(t.Context(), metav1.ListOptions{})
		require.ErrorIs(t, err, region.ErrUnavailable)
		require.NotErrorIs(t, err, region.ErrUnknownRegion)
		run(t, early)() // saves both routes, though no Snapshot has confirmed them
		require.Len(t, openCache(t, path).routes, 2)

		d.serve(t, map[region.Key]region.PeerName{us: "a"})
		late := newRouter(t, d, Options{Cache: openCache(t, path)})
		_, err = late.Lookup(t.Context(), eu)
		require.ErrorIs(t, err, region.ErrUnknownRegion, "a region that was removed is not raised from the cache")
		route, err = late.Lookup(t.Context(), us)
		require.NoError(t, err)
		require.Equal(t, Route{Region: us, Peer: "a"}, route)
	})
}

func TestARouteToAnotherClusterOfThatName(t *testing.T) {
	for _, tt := range []struct {
		cached, present string
		known           bool
	}{{"1", "1", true}, {"1", "2", false}, {"", "2", true}, {"1", "", true}} {
		t.Run(fmt.Sprintf("%q %q", tt.cached, tt.present), func(t *testing.T) {
			d := newDirectory(t)
			var err error
			d.snapshot, err = region.NewSnapshot(region.Peer{Name: "a", UID: types.UID(tt.present)})
			require.NoError(t, err)
			cache := &FileCache{routes: []CachedRoute{{Region: eu, Peer: "a", UID: types.UID(tt.cached), At: time.Now()}}}
			_, err = newRouter(t, d, Options{Cache: cache}).Lookup(t.Context(), eu)
			require.Equal(t, tt.known, err == nil, "%v", err)
		})
	}
}

// broken is a Cache whose Save always fails.
type broken struct{ FileCache }

func (*broken) Save([]CachedRoute) error { return errors.New("no space left on device") }

func TestACacheThatCannotBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var saved []SaveEvent
		r := newRouter(t, newDirectory(t), Options{Cache: &broken{}, Observer: &Observer{Saved: func(_ context.Context, e SaveEvent) { saved = append(saved, e) }}})
		stop := run(t, r)
		time.Sleep(time.Minute)
		stop()
		require.InDelta(t, 7, len(saved), 2)
		require.Error(t, saved[0].Err)
	})
}

func TestCacheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "routes")
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	want := []CachedRoute{{Region: eu, Peer: "a", UID: "1", At: at}, {Region: region.Key{Provider: "loodse", Name: "us.east"}, Peer: "b", Source: true, At: at}}
	c := openCache(t, path)
	require.Empty(t, c.routes)
	require.NoError(t, c.Save(want))
	got, err := openCache(t, path).Load()
	require.NoError(t, err)
	require.Equal(t, want, got)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, left, 1)

	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	for i := range whole {
		// If the file is cut, or one of its bits changes, decodeRoutes returns an error or exactly the saved routes.
		for name, damaged := range map[string][]byte{"cut": whole[:i], "changed": append(append(append([]byte{}, whole[:i]...), whole[i]^1), whole[i+1:]...)} {
			got, err := decodeRoutes(damaged)
			if err == nil {
				require.Equal(t, want, got, "%s at %d: %s", name, i, damaged)
			}
		}
	}
	require.NoError(t, os.WriteFile(path, whole[:len(whole)/2], 0o600))
	c, err = OpenCache(path)
	require.NoError(t, err)
	require.Empty(t, c.routes)
	require.Equal(t, path+".damaged", c.Damaged())
	require.FileExists(t, c.Damaged())
	require.NoFileExists(t, path)

	require.NoError(t, os.WriteFile(path, []byte(`{"format":"atoll.dev/routes","version":2,"sha256":"","routes":[]}`), 0o600))
	_, err = OpenCache(path)
	require.ErrorContains(t, err, "later version")
	require.FileExists(t, path)
	_, err = OpenCache(filepath.Join(path, "x"))
	require.ErrorContains(t, err, "cache")
	_, err = OpenCache(filepath.Join(filepath.Dir(path), "none", "x"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestNothingIsKnownOfTheFuture(t *testing.T) {
	data, err := encodeRoutes([]CachedRoute{{Region: eu, Peer: "a", At: time.Now().Add(time.Hour)}})
	require.NoError(t, err)
	routes, err := decodeRoutes(data)
	require.NoError(t, err)
	require.False(t, routes[0].At.After(time.Now()))
}

func FuzzDecodeRoutes(f *testing.F) {
	whole, err := encodeRoutes([]CachedRoute{{Region: eu, Peer: "a", UID: "1", At: time.Unix(1, 0)}})
	require.NoError(f, err)
	f.Add(whole)
	f.Add([]byte(`{"format":"atoll.dev/routes","version":1,"sha256":"","routes":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		routes, err := decodeRoutes(data)
		if err != nil {
			return
		}
		for _, c := range routes {
			require.NoError(t, c.Region.Validate())
			require.NoError(t, c.Peer.Validate())
		}
		again, err := encodeRoutes(routes)
		require.NoError(t, err)
		same, err := decodeRoutes(again)
		require.NoError(t, err)
		require.Len(t, same, len(routes))
	})
}
