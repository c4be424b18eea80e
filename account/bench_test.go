// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// BenchmarkConverge brings 1,000 Accounts of a central plane to three peers in
// memory, until every one of them is Ready. The baseline makes the objects that
// stand there in the end with bare clients, as many at once, without reservations,
// log, reading back, status or central plane; the ratio is the baseline's time over
// ours.
func BenchmarkConverge(b *testing.B) {
	const accounts = 1000
	var ours, bare time.Duration
	for b.Loop() {
		w := &world{t: b}
		w.ring, _ = newRing(b)
		var err error
		w.c, err = fanout.New(w.ring, waltest.NewMemory(), fanout.Options{Kinds: Kinds()})
		require.NoError(b, err)
		w.plane = regiontest.NewServer(regiontest.Options{Name: "plane", CRDs: crds(b)})
		w.api, err = region.APIFor(w.plane.Config())
		require.NoError(b, err)
		for i := range accounts {
			w.create(newAccount(fmt.Sprintf("acme-%04d", i), []any{"Tenant"}, alice))
		}
		ready := make(chan struct{})
		var mu sync.Mutex
		done := map[string]bool{}
		r, err := NewReplicator(w.api, w.ring, w.c, Options{Observer: &Observer{Changed: func(_ context.Context, p Presence) {
			mu.Lock()
			defer mu.Unlock()
			if p.Complete() {
				done[p.Key.Name] = true
				if len(done) == accounts {
					close(ready)
				}
			}
		}}})
		require.NoError(b, err)
		start := time.Now()
		stop := run(b, r.Start)
		<-ready
		ours += time.Since(start)
		stop()
		w.plane.Close()
		w.ring.Close()
		bare += bareConverge(b, accounts)
	}
	b.ReportMetric(bare.Seconds()/ours.Seconds(), "ratio")
	b.ReportMetric(float64(accounts*b.N)/ours.Seconds(), "accounts/s")
}

func bareConverge(b *testing.B, accounts int) time.Duration {
	b.Helper()
	ring, _ := newRing(b)
	defer ring.Close()
	start := time.Now()
	var g errgroup.Group
	g.SetLimit(8)
	for i := range accounts {
		g.Go(func() error {
			account := newAccount(fmt.Sprintf("acme-%04d", i), []any{"Tenant"}, alice)
			roles, bindings := DefaultRights().grants(account)
			var peers errgroup.Group
			for _, name := range peerNames {
				peers.Go(func() error {
					conn, err := ring.Conn(name)
					if err != nil {
						return err
					}
					return bareCreate(b.Context(), conn, account, roles[0], bindings[0])
				})
			}
			return peers.Wait()
		})
	}
	require.NoError(b, g.Wait())
	return time.Since(start)
}

func bareCreate(ctx context.Context, c *region.Conn, account, role, binding *unstructured.Unstructured) error {
	name := account.GetName()
	if _, err := c.Dynamic().Resource(resource).Create(ctx, account, metav1.CreateOptions{}); err != nil {
		return err
	}
	if _, err := namespaces(c).Create(ctx, manifest(name), metav1.CreateOptions{}); err != nil {
		return err
	}
	if _, err := c.Dynamic().Resource(rolesResource).Namespace(name).Create(ctx, role, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err := c.Dynamic().Resource(bindingsResource).Namespace(name).Create(ctx, binding, metav1.CreateOptions{})
	return err
}

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
