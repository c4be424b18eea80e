// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"context"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/region"
)

const manyRegions = 1000

func keyOf(i int) region.Key {
	return region.Key{Provider: "loodse", Name: fmt.Sprintf("region-%04d", i)}
}

// BenchmarkLookup measures look-ups of 1,000 regions by two Routers: one has the regions from a region.Ring, the other
// from a Cache. The baseline is a bare map of the same Routes behind an atomic pointer. The ratio is the Router's time
// divided by the baseline's time.
func BenchmarkLookup(b *testing.B) {
	var keys []region.Key
	bare := make(map[region.Key]Route)
	var cached []CachedRoute
	for i := range manyRegions {
		keys = append(keys, keyOf(i))
		bare[keyOf(i)] = Route{Region: keyOf(i), Peer: "a"}
		cached = append(cached, CachedRoute{Region: keyOf(i), Peer: "a", At: time.Now()})
	}
	var pointer atomic.Pointer[map[region.Key]Route]
	pointer.Store(&bare)
	baseline := func(_ context.Context, k region.Key) (Route, error) {
		route, ok := (*pointer.Load())[k]
		if !ok {
			return Route{}, region.ErrUnknownRegion
		}
		return route, nil
	}

	creds, err := region.FromConfig(testConfig())
	require.NoError(b, err)
	source, err := region.FromPeers(region.Peer{Name: "a", Regions: keys, Credentials: creds})
	require.NoError(b, err)
	ring, err := region.NewRing(source, region.Options{Probe: region.ProbeOptions{Interval: time.Hour, MaxBackoff: time.Hour}})
	require.NoError(b, err)
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- ring.Start(ctx) }()
	defer func() {
		cancel()
		require.NoError(b, <-ended)
	}()
	<-ring.Synced()
	fromRing, err := New(ring, Options{})
	require.NoError(b, err)
	fromCache, err := New(region.Fixed(), Options{Cache: &FileCache{routes: cached}})
	require.NoError(b, err)

	for name, r := range map[string]*Router{"source": fromRing, "cache": fromCache} {
		for _, goroutines := range []int{1, 2, 8} {
			b.Run(fmt.Sprintf("%s/goroutines=%d", name, goroutines), func(b *testing.B) {
				b.ReportAllocs()
				spread(b, keys, goroutines, 1000, r.Lookup) // warm up
				var ours, plain time.Duration
				b.ResetTimer()
				for n := b.N; n > 0; n -= 100_000 {
					ours += spread(b, keys, goroutines, min(n, 100_000), r.Lookup)
					b.StopTimer()
					plain += spread(b, keys, goroutines, min(n, 100_000), baseline)
					b.StartTimer()
				}
				b.ReportMetric(float64(ours)/float64(plain), "time-ratio")
				b.ReportMetric(float64(plain.Nanoseconds())/float64(b.N), "plain-ns/op")
			})
		}
	}
}

// spread divides n calls of lookup between the goroutines and returns the elapsed time.
func spread(b *testing.B, keys []region.Key, goroutines, n int, lookup func(context.Context, region.Key) (Route, error)) time.Duration {
	b.Helper()
	start := time.Now()
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := range n / goroutines {
				if route, err := lookup(b.Context(), keys[(i*7+g)%len(keys)]); err != nil || route.Peer != "a" {
					b.Error(route, err)
					return
				}
			}
		})
	}
	wg.Wait()
	return time.Since(start)
}

// BenchmarkColdStart opens a file of 1,000 saved routes, makes a Router from it, and looks up one region.
func BenchmarkColdStart(b *testing.B) {
	path := filepath.Join(b.TempDir(), "routes")
	var cached []CachedRoute
	for i := range manyRegions {
		cached = append(cached, CachedRoute{Region: keyOf(i), Peer: "a", UID: "6f2c1f5e-2f0e-4b0c-9b34-1b8f6f0f7a11", At: time.Now()})
	}
	require.NoError(b, (&FileCache{path: path}).Save(cached))
	for b.Loop() {
		cache, err := OpenCache(path)
		require.NoError(b, err)
		r, err := New(region.Fixed(), Options{Cache: cache})
		require.NoError(b, err)
		_, err = r.Lookup(b.Context(), keyOf(500))
		require.NoError(b, err)
	}
}

// listing answers every request with an empty list.
func listing(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprint(w, `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`)
}

// BenchmarkIdlePeer measures by how many bytes heap and stacks grow per peer. Each of 1,000 peers has a Client that
// has made one request and keeps a TLS connection open. The growth includes the server's half of the connection, which
// is in the same process. The baseline is one bare dynamic client per peer. The ratio is the bytes of the Router's
// Clients divided by the baseline's bytes.
func BenchmarkIdlePeer(b *testing.B) {
	const n = 1000
	s := httptest.NewUnstartedServer(http.HandlerFunc(listing))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	round := 0
	config := func(i int) *rest.Config {
		// A different CA gives each peer its own connection.
		return &rest.Config{Host: s.URL, BearerToken: "library", QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: fmt.Appendf(slices.Clone(ca), "\n%d-%d\n", round, i)}}
	}
	ask := func(client dynamic.Interface) {
		_, err := client.Resource(configMaps).List(b.Context(), metav1.ListOptions{})
		require.NoError(b, err)
	}
	var ours, bare int64
	for b.Loop() {
		round++
		before := alive()
		conns := make([]*region.Conn, n)
		for i := range n {
			creds, err := region.FromConfig(config(i))
			require.NoError(b, err)
			conns[i], err = region.NewConn(region.Peer{Name: region.PeerName(fmt.Sprintf("p%04d", i)), Regions: []region.Key{keyOf(i)}, Credentials: creds}, region.ConnOptions{})
			require.NoError(b, err)
		}
		r, err := New(region.Fixed(conns...), Options{})
		require.NoError(b, err)
		clients := make([]*Client, n)
		for i := range n {
			clients[i], err = r.Client(keyOf(i), alice)
			require.NoError(b, err)
			ask(clients[i].Dynamic())
		}
		ours = alive() - before
		runtime.KeepAlive(clients)
		for _, conn := range conns {
			conn.Close()
		}

		round++
		before = alive()
		dynamics := make([]dynamic.Interface, n)
		for i := range n {
			dynamics[i], err = dynamic.NewForConfig(config(i))
			require.NoError(b, err)
			ask(dynamics[i])
		}
		bare = alive() - before
		runtime.KeepAlive(dynamics)
	}
	b.ReportMetric(float64(ours)/n, "B/peer")
	b.ReportMetric(float64(bare)/n, "plain-B/peer")
	b.ReportMetric(float64(ours)/float64(bare), "bytes-ratio")
}

// alive returns the bytes of live heap and of stacks after garbage collection.
func alive() int64 {
	for range 4 { // each garbage collection shrinks stacks by half
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// BenchmarkBesideAStoppedPeer measures requests to one region while the peer of another region accepts requests
// without answering, and 500 callers wait for that peer. The baseline has no such callers; the ratios compare the
// 99th percentiles and the medians.
func BenchmarkBesideAStoppedPeer(b *testing.B) {
	stop := make(chan struct{})
	well := httptest.NewServer(http.HandlerFunc(listing))
	defer well.Close()
	stopped := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-stop:
		case <-r.Context().Done():
		}
	}))
	defer stopped.Close()
	defer close(stop)
	var conns []*region.Conn
	for name, server := range map[region.PeerName]*httptest.Server{"well": well, "stopped": stopped} {
		creds, err := region.FromConfig(&rest.Config{Host: server.URL, BearerToken: "library"})
		require.NoError(b, err)
		k := map[region.PeerName]region.Key{"well": us, "stopped": eu}[name]
		conn, err := region.NewConn(region.Peer{Name: name, Regions: []region.Key{k}, Credentials: creds}, region.ConnOptions{})
		require.NoError(b, err)
		defer conn.Close()
		conns = append(conns, conn)
	}
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	r, err := New(region.Fixed(conns...), Options{Budget: Budget{QPS: -1}})
	require.NoError(b, err)
	client := func(k region.Key) dynamic.ResourceInterface {
		c, err := r.Client(k, alice)
		require.NoError(b, err)
		return c.Dynamic().Resource(configMaps)
	}
	measure := func() (times []time.Duration) {
		c := client(us)
		runtime.GC() // do not measure the garbage of earlier callers
		for range 300 {
			start := time.Now()
			_, err := c.List(b.Context(), metav1.ListOptions{})
			require.NoError(b, err)
			times = append(times, time.Since(start))
		}
		return times
	}
	var callers []dynamic.ResourceInterface
	for range 500 {
		callers = append(callers, client(eu))
	}
	var alone, beside []time.Duration
	measure()
	for b.Loop() {
		for range 10 {
			alone = append(alone, measure()...)
			ctx, cancel := context.WithCancel(b.Context())
			var wg sync.WaitGroup
			for _, c := range callers {
				wg.Go(func() {
					for ctx.Err() == nil {
						patience, cancel := context.WithTimeout(ctx, 5*time.Second)
						_, _ = c.List(patience, metav1.ListOptions{})
						cancel()
					}
				})
			}
			require.Eventually(b, func() bool { return r.Explain(ctx, eu).Waiting == 400 }, timeLimit, time.Millisecond)
			beside = append(beside, measure()...)
			cancel()
			wg.Wait()
		}
	}
	slices.Sort(alone)
	slices.Sort(beside)
	at := func(times []time.Duration, percent int) float64 {
		return float64(times[len(times)*percent/100].Microseconds())
	}
	b.ReportMetric(at(beside, 99), "p99-µs")
	b.ReportMetric(at(alone, 99), "plain-p99-µs")
	b.ReportMetric(at(beside, 99)/at(alone, 99), "p99-ratio")
	b.ReportMetric(at(beside, 50)/at(alone, 50), "median-ratio")
}
