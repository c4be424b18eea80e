// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// BenchmarkThousandPeers looks at one Account in 1,000 peers, two thirds of which are
// exceptions, and makes its status.
func BenchmarkThousandPeers(b *testing.B) {
	sights := thousand()
	obj := newAccount("acme", []any{"Tenant"})
	var content map[string]any
	for b.Loop() {
		var err error
		content, err = reportAccount(obj, presence(keyOf("acme"), sights, wanted{digest: "d", origin: "wish"}))
		require.NoError(b, err)
	}
	text, err := json.Marshal(content)
	require.NoError(b, err)
	b.ReportMetric(float64(len(text)), "status-bytes")
}

// BenchmarkIdlePeers watches 500 peers that hold ten Accounts each, and measures what
// a Replicator remembers of each, connection and watches included. The peers are one
// server under many names, which takes its own part of the figure.
func BenchmarkIdlePeers(b *testing.B) {
	const peers, accounts = 500, 10
	ring, c := newRing(b)
	for i := range accounts {
		_, err := c.Add(b.Context(), newAccount(fmt.Sprintf("acme-%d", i), []any{"Tenant"}), fanout.AddOptions{})
		require.NoError(b, err)
	}
	plane := regiontest.NewServer(regiontest.Options{Name: "plane", CRDs: crds(b)})
	defer plane.Close()
	api, err := region.APIFor(plane.Config())
	require.NoError(b, err)
	creds, err := region.FromConfig(ring.Server(peerNames[0]).Config())
	require.NoError(b, err)
	for b.Loop() {
		before := heap()
		conns := make([]*region.Conn, 0, peers)
		for i := range peers {
			conn, err := region.NewConn(region.Peer{Name: region.PeerName(fmt.Sprintf("peer-%03d", i)), Credentials: creds}, region.ConnOptions{})
			require.NoError(b, err)
			conns = append(conns, conn)
		}
		r, err := NewReplicator(api, region.Fixed(conns...), c, Options{})
		require.NoError(b, err)
		stop := run(b, r.Start)
		eventually(b, func() bool {
			members := r.members()
			for _, m := range members {
				if m.err() != nil {
					return false
				}
			}
			return len(members) == peers
		})
		b.ReportMetric(float64(heap()-before)/peers/1024, "KiB/peer")
		stop()
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
