// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

var (
	us   = region.Key{Provider: "loodse", Name: "us-east-1"}
	asia = region.Key{Provider: "loodse", Name: "asia-1"}
)

// twoPeers returns a ring in which one peer serves eu and asia, and another serves us.
func twoPeers(t *testing.T) *regiontest.Ring {
	t.Helper()
	ring := regiontest.NewRing("a", "b")
	require.NoError(t, ring.Serve("a", eu, asia))
	require.NoError(t, ring.Serve("b", us))
	return ring
}

// list lists ConfigMaps in region k and returns the elapsed time.
func list(ctx context.Context, t *testing.T, r *Router, k region.Key) (time.Duration, error) {
	t.Helper()
	c, err := r.Client(k, Self())
	require.NoError(t, err)
	start := time.Now()
	_, err = c.Dynamic().Resource(configMaps).List(ctx, metav1.ListOptions{})
	return time.Since(start), err
}

// A flood of requests to one region causes no delays or errors in other regions, even if the same peer serves them. A
// peer that hangs causes no delays or errors in the regions of other peers.
func TestTroubleStaysInItsRegion(t *testing.T) {
	for name, hang := range map[string]bool{"flood": false, "outage": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ring := twoPeers(t)
				defer ring.Close()
				var waits, refused atomic.Int64
				r := newRouter(t, ring, Options{
					Budget: Budget{QPS: 10, Burst: 10, InFlight: 5, Waiting: 20},
					Observer: &Observer{Waited: func(_ context.Context, e WaitEvent) {
						if e.Region != eu {
							t.Errorf("region %s waited", e.Region)
						}
						waits.Add(1)
						if errors.Is(e.Err, ErrBusy) {
							refused.Add(1)
						}
					}},
				})
				others := []region.Key{us, asia}
				if hang {
					ring.Server("a").Inject(regiontest.Fault{Times: -1, Do: regiontest.Hang()})
					others = []region.Key{us}
				} else {
					for range 10 { // use up the burst, so that the next callers wait
						_, err := list(t.Context(), t, r, eu)
						require.NoError(t, err)
					}
				}
				var wg sync.WaitGroup
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				var done, busy, late atomic.Int64
				for range 500 {
					wg.Go(func() {
						_, err := list(ctx, t, r, eu)
						switch {
						case err == nil:
							done.Add(1)
						case errors.Is(err, ErrBusy):
							busy.Add(1)
						case errors.Is(err, context.DeadlineExceeded):
							late.Add(1)
						default:
							t.Error(err)
						}
					})
				}
				synctest.Wait()
				for range 5 {
					for _, k := range others {
						took, err := list(t.Context(), t, r, k)
						require.NoError(t, err)
						require.Zero(t, took)
					}
					time.Sleep(time.Second)
				}
				wg.Wait()
				require.Equal(t, refused.Load(), busy.Load())
				if hang {
					require.EqualValues(t, 25, late.Load(), "those that were sent, and those that waited")
				} else {
					require.EqualValues(t, 20, done.Load(), "those that waited")
				}
				require.EqualValues(t, 500, done.Load()+busy.Load()+late.Load())
				require.Positive(t, waits.Load())
				e := r.Explain(t.Context(), eu)
				require.Zero(t, e.InFlight)
				require.Zero(t, e.Waiting)
			})
		})
	}
}

func TestTheRateOfARegion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ring := twoPeers(t)
		defer ring.Close()
		r := newRouter(t, ring, Options{Budget: Budget{QPS: 10, Burst: 1}})
		start := time.Now()
		for range 21 {
			_, err := list(t.Context(), t, r, eu)
			require.NoError(t, err)
		}
		require.InDelta(t, 2*time.Second, time.Since(start), float64(50*time.Millisecond))
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		took, err := list(ctx, t, r, eu)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.LessOrEqual(t, took, time.Millisecond, "a request whose deadline is before its turn does not wait")

		free := newRouter(t, ring, Options{Budget: Budget{QPS: -1, InFlight: -1, Waiting: -1, Streams: -1}})
		for range 2000 {
			took, err := list(t.Context(), t, free, eu)
			require.NoError(t, err)
			require.Zero(t, took)
		}
	})
}

func TestStreamsTakeNoPlaceAndAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ring := twoPeers(t)
		defer ring.Close()
		var refused []WaitEvent
		r := newRouter(t, ring, Options{
			Budget:   Budget{InFlight: 1, Streams: 3},
			Observer: &Observer{Waited: func(_ context.Context, e WaitEvent) { refused = append(refused, e) }},
		})
		c, err := r.Client(eu, Self())
		require.NoError(t, err)
		open := func(path string) (*http.Response, error) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.Config().Host+path, http.NoBody)
			require.NoError(t, err)
			return c.HTTPClient().Do(req)
		}
		watch := func() (*http.Response, error) { return open("/api/v1/configmaps?watch=true") }
		first, err := watch()
		require.NoError(t, err)
		second, err := open("/api/v1/configmaps?watch=yes")
		require.NoError(t, err)
		end, err := c.BeginStream(t.Context())
		require.NoError(t, err)
		_, err = watch() //nolint:bodyclose // no response
		require.ErrorIs(t, err, ErrBusy)
		_, err = c.BeginStream(t.Context())
		require.ErrorIs(t, err, ErrBusy)
		require.Len(t, refused, 2, "the Observer is called for each refused stream")
		for _, e := range refused {
			require.Equal(t, eu, e.Region)
			require.ErrorIs(t, e.Err, ErrBusy)
		}
		require.EqualValues(t, 3, r.Explain(t.Context(), eu).Streams)
		_, err = list(t.Context(), t, r, eu)
		require.NoError(t, err, "streams take no place of other requests")
		end()
		end()
		require.NoError(t, first.Body.Close())
		require.NoError(t, second.Body.Close())
		require.Zero(t, r.Explain(t.Context(), eu).Streams)
		for _, long := range []string{
			"/api/v1/configmaps?watch", "/api/v1/watch/configmaps", "/api/v1/namespaces/default/pods/p/log?follow=yes", "/api/v1/namespaces/default/services/s/proxy/",
		} {
			third, err := open(long)
			require.NoError(t, err)
			require.EqualValues(t, 1, r.Explain(t.Context(), eu).Streams, long)
			require.NoError(t, third.Body.Close())
		}
	})
}

// A response takes one of the Budget.InFlight places until it is read to its end or closed. Closing a response twice
// releases one place only.
func TestPlacesAreGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ring := twoPeers(t)
		defer ring.Close()
		r := newRouter(t, ring, Options{Budget: Budget{InFlight: 1}})
		c, err := r.Client(eu, Self())
		require.NoError(t, err)
		for range 3 {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.Config().Host+"/api/v1/configmaps", http.NoBody)
			require.NoError(t, err)
			resp, err := c.HTTPClient().Do(req)
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			took, err := list(ctx, t, r, eu)
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, time.Second, took)
			require.NoError(t, resp.Body.Close())
			require.NoError(t, resp.Body.Close())
			_, err = list(t.Context(), t, r, eu)
			require.NoError(t, err)
		}
		// Reading a response to its end releases the place, even before the response is closed.
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.Config().Host+"/api/v1/configmaps", http.NoBody)
		require.NoError(t, err)
		resp, err := c.HTTPClient().Do(req)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, resp.Body)
		require.NoError(t, err)
		_, err = list(t.Context(), t, r, eu)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())

		// Failed requests release their place.
		ring.Partition("a", true)
		for range 3 {
			_, err = list(t.Context(), t, r, eu)
			require.ErrorIs(t, err, region.ErrUnavailable)
		}
		ring.Partition("a", false)
		_, err = list(t.Context(), t, r, eu)
		require.NoError(t, err)
	})
}
