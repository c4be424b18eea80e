// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router"
)

// BenchmarkIsolation measures how one user's attack on one region affects bob, who uses other regions. It uses real
// connections with TLS and HTTP/2. It reports the share of bob's requests that succeed, and their median duration
// with and without the attack. Peers take 50 ms for an answer, without using a core.
// TestOneRegionDoesNotTakeDownTheOthers measures the same in virtual time, exactly.
func BenchmarkIsolation(b *testing.B) {
	const there = "/regions/attacked.loodse/api/v1/pods"
	for _, tt := range []struct {
		name    string
		frozen  bool
		workers int
		stall   bool
	}{{"frozen", true, 450, false}, {"healthy", false, 450, false}, {"stalled-bodies", false, 400, true}} {
		b.Run(tt.name, func(b *testing.B) {
			i := newMainland(b, tt.frozen)
			_, alone := i.measure(10, 20, "quiet.loodse", "calm.loodse")
			end := i.attack(tt.workers, there, tt.stall)
			defer end()
			time.Sleep(2 * time.Second) // until the attack is at full strength
			var least float64 = 1
			var worst time.Duration
			for b.Loop() {
				ratio, median := i.measure(10, 100, "quiet.loodse", "calm.loodse")
				least, worst = min(least, ratio), max(worst, median)
			}
			b.ReportMetric(100*least, "%-succeed")
			b.ReportMetric(float64(alone.Microseconds())/1000, "alone-ms")
			b.ReportMetric(float64(worst.Microseconds())/1000, "attacked-ms")
			b.ReportMetric(float64(worst)/float64(alone), "median-ratio")
		})
	}
}

// newMainland returns an island whose peers and front are servers with real connections.
func newMainland(b *testing.B, frozen bool) *island {
	b.Helper()
	var conns []*region.Conn
	for n, name := range names {
		peer := serve(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if frozen && n == 0 {
				<-r.Context().Done()
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			time.Sleep(takes)
			_, _ = io.WriteString(w, "{}")
		}))
		creds, err := region.FromConfig(&rest.Config{Host: peer.URL, BearerToken: "library", TLSClientConfig: rest.TLSClientConfig{CAData: authority(peer)}})
		require.NoError(b, err)
		conn, err := region.NewConn(region.Peer{Name: region.PeerName(name), Regions: []region.Key{{Provider: "loodse", Name: name}}, Credentials: creds}, region.ConnOptions{})
		require.NoError(b, err)
		b.Cleanup(conn.Close)
		conns = append(conns, conn)
	}
	routes, err := router.New(region.Fixed(conns...), router.Options{Budget: router.Budget{QPS: -1}})
	require.NoError(b, err)
	p, err := New(routes, func(r *http.Request) (router.Identity, error) {
		return router.Impersonate(router.User{Name: bearer(r)}), nil
	}, Options{})
	require.NoError(b, err)
	front := serve(b, p)
	return &island{proxy: p, transport: transport(b, front), base: front.URL}
}
