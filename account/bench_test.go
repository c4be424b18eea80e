// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/atoll-dev/atoll/internal/loop"
)

// BenchmarkThousandPeers judges one Account in 1,000 peers, all but one of which are exceptions,
// and computes its status.
func BenchmarkThousandPeers(b *testing.B) {
	observed := thousand()
	obj := newAccount("acme", []any{"Tenant"})
	var content map[string]any
	for b.Loop() {
		var err error
		content, err = reportAccount(obj, presence(loop.ParseKey("acme"), observed, wanted{digest: "d", origin: "wish"}))
		require.NoError(b, err)
	}
	text, err := json.Marshal(content)
	require.NoError(b, err)
	b.ReportMetric(float64(len(text)), "status-bytes")
}

// BenchmarkIdlePeers measures the memory of heap and stacks for each of 1,000 peers that a
// Replicator watches. Each peer holds ten Accounts and a PeerSet that lists all thousand peers. The
// memory of connections is included, but not that of sockets and their buffers. The baseline is a
// bare dynamic client per peer with client-go's reflectors of the same two resources; the ratio is
// the baseline's bytes divided by the Replicator's.
func BenchmarkIdlePeers(b *testing.B) {
	const peers, accounts = 1000, 10
	w := newWorld(b, Options{})
	for i := range accounts {
		w.create(newAccount(fmt.Sprintf("acme-%d", i), []any{"Tenant"}, alice))
	}
	for i := range accounts {
		w.awaitReady(fmt.Sprintf("acme-%d", i))
	}
	w.stop()
	s := stillOf(w, peers)
	var ours, bare int64
	for b.Loop() {
		before := used()
		directory := s.directory(b, peers)
		r, err := NewReplicator(w.api, directory, slow(b, directory), Options{})
		require.NoError(b, err)
		stop := run(b, r.Start)
		require.Eventually(b, func() bool {
			members := r.members()
			for _, m := range members {
				if m.err() != nil {
					return false
				}
			}
			return len(members) == peers
		}, 10*time.Minute, 100*time.Millisecond)
		ours = used() - before
		stop()

		before = used()
		stop = bareReflectors(b, s, peers)
		bare = used() - before
		stop()
	}
	b.ReportMetric(float64(ours)/peers, "B/peer")
	b.ReportMetric(float64(bare)/float64(ours), "ratio")
}

// bareReflectors watches the resources of a Replicator by client-go alone.
func bareReflectors(b *testing.B, s *idlePeers, peers int) (stop func()) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	var wg sync.WaitGroup
	var reflectors []*cache.Reflector
	for i := range peers {
		client, err := dynamic.NewForConfig(&rest.Config{Host: "http://" + stillName(i) + ".invalid", Transport: s, QPS: -1})
		require.NoError(b, err)
		for _, gvr := range []schema.GroupVersionResource{resource, peerSetsResource} {
			source := &bareSource{ListWatch: &cache.ListWatch{WatchFuncWithContext: client.Resource(gvr).Watch}}
			source.ListWithContextFunc = func(ctx context.Context, opts metav1.ListOptions) (k8sruntime.Object, error) {
				return client.Resource(gvr).List(ctx, opts)
			}
			reflector := cache.NewReflector(source, &unstructured.Unstructured{}, cache.NewStore(cache.MetaNamespaceKeyFunc), 0)
			wg.Go(func() { reflector.RunWithContext(ctx) })
			reflectors = append(reflectors, reflector)
		}
	}
	require.Eventually(b, func() bool {
		return !slices.ContainsFunc(reflectors, func(r *cache.Reflector) bool { return r.LastSyncResourceVersion() == "" })
	}, 10*time.Minute, 100*time.Millisecond)
	return func() {
		cancel()
		wg.Wait()
	}
}

// bareSource does not ask for streamed lists, which the peers do not support.
type bareSource struct{ *cache.ListWatch }

func (*bareSource) IsWatchListSemanticsUnSupported() bool { return true }

// used returns the memory in use by heap and stacks, in bytes.
func used() int64 {
	for range 4 { // each collection shrinks stacks by half
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse) //nolint:gosec // far below the greatest int64
}
