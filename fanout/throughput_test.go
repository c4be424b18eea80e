// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal"
)

var (
	accountResource = schema.GroupVersionResource{Group: "catalog.kubecarrier.io", Version: "v1alpha1", Resource: "accounts"}
	peerSetResource = v1alpha1.GroupVersion.WithResource("peersets")
)

// BenchmarkConcurrent adds ServiceClusters, 1, 8 and 64 at once, to three peers in memory, with a
// log in a file. The ratio is the coordinator's rate divided by that of bare clients, which send
// the same requests with the same bodies and the same concurrency, without log or decisions. The
// other figures are operations per second of the coordinator, of the bare clients, and of the log
// alone.
func BenchmarkConcurrent(b *testing.B) {
	for _, concurrent := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("operations=%d", concurrent), func(b *testing.B) {
			r := newRing(b)
			log, err := wal.Open(filepath.Join(b.TempDir(), "operations.db"), wal.Options{})
			require.NoError(b, err)
			defer func() { require.NoError(b, log.Close()) }()
			c := coordinator(b, r, log, fanout.Options{LeaseTimeout: time.Minute})
			acme := addAccount(b, c)
			warm(b, c, acme)
			raw := rawAdd(b, r, c, acme)
			b.ResetTimer()
			ours := spread(b, concurrent, func(n int64) error {
				_, err := c.Add(b.Context(), newServiceCluster(acme, fmt.Sprintf("ours-%d", n)), fanout.AddOptions{Target: "us-east"})
				return err
			})
			b.StopTimer()
			bare := spread(b, concurrent, func(n int64) error { return raw(b.Context(), fmt.Sprintf("bare-%d", n)) })
			journal := spread(b, concurrent, func(n int64) error { return journalled(b.Context(), log, n) })
			b.ReportMetric(ours, "ops/s")
			b.ReportMetric(bare, "bare-ops/s")
			b.ReportMetric(journal, "journal-ops/s")
			b.ReportMetric(ours/bare, "ratio")
		})
	}
}

// rawAdd returns a function that sends the requests of an add, with the bodies of an add that c
// made.
func rawAdd(b *testing.B, r *regiontest.Ring, c *fanout.Coordinator, namespace string) func(context.Context, string) error {
	b.Helper()
	model := unique("model")
	_, err := c.Add(b.Context(), newServiceCluster(namespace, model), fanout.AddOptions{Target: "us-east"})
	require.NoError(b, err)
	clients, bodies := map[string]dynamic.Interface{}, map[string]*unstructured.Unstructured{}
	for _, peer := range peers {
		conn, err := r.Conn(peer)
		require.NoError(b, err)
		clients[string(peer)] = conn.Dynamic()
		obj, err := conn.Dynamic().Resource(serviceClusterResource).Namespace(namespace).Get(b.Context(), model, metav1.GetOptions{})
		require.NoError(b, err)
		bodies[string(peer)] = obj
	}
	configured := bodies["us-east"].DeepCopy()
	for _, body := range bodies {
		body.SetFinalizers(nil)
		body.SetUID("")
		body.SetResourceVersion("")
		body.SetManagedFields(nil)
		require.NoError(b, unstructured.SetNestedField(body.Object, "Reserved", "spec", "fanout", "stage"))
	}
	create := func(ctx context.Context, peer, name string) (*unstructured.Unstructured, error) {
		obj := bodies[peer].DeepCopy()
		obj.SetName(name)
		return clients[peer].Resource(serviceClusterResource).Namespace(namespace).Create(ctx, obj, metav1.CreateOptions{})
	}
	read := func(ctx context.Context, peer string, resource schema.GroupVersionResource, name string) error {
		_, err := clients[peer].Resource(resource).Get(ctx, name, metav1.GetOptions{})
		return err
	}
	return func(ctx context.Context, name string) error {
		primary, err := create(ctx, "us-east", name)
		if err != nil {
			return err
		}
		if err := allOf(
			func() error { return read(ctx, "us-east", accountResource, namespace) },
			func() error { return read(ctx, "us-east", peerSetResource, v1alpha1.PeerSetName) },
			func() error { return read(ctx, "eu-west", peerSetResource, v1alpha1.PeerSetName) },
			func() error { return read(ctx, "ap-south", peerSetResource, v1alpha1.PeerSetName) },
			func() error { _, err := create(ctx, "eu-west", name); return err },
			func() error { _, err := create(ctx, "ap-south", name); return err },
		); err != nil {
			return err
		}
		commit := configured.DeepCopy()
		commit.SetName(name)
		commit.SetUID(primary.GetUID())
		commit.SetResourceVersion(primary.GetResourceVersion())
		_, err = clients["us-east"].Resource(serviceClusterResource).Namespace(namespace).Update(ctx, commit, metav1.UpdateOptions{})
		return err
	}
}

// journalled makes the log's writes of an add.
func journalled(ctx context.Context, log wal.Log, n int64) error {
	entry, err := log.Begin(ctx, wal.Entry{ID: fmt.Sprintf("raw-%d-%d", time.Now().UnixNano(), n), Kind: "raw", Data: make([]byte, 1<<10)})
	if err != nil {
		return err
	}
	if entry, err = log.Advance(ctx, entry); err != nil {
		return err
	}
	return log.End(ctx, entry, make([]byte, 256))
}

func allOf(calls ...func() error) error {
	errs := make([]error, len(calls))
	var wg sync.WaitGroup
	for i, call := range calls {
		wg.Go(func() { errs[i] = call() })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// spread makes b.N calls, of which the given number run at once, and returns calls per second.
func spread(b *testing.B, concurrent int, call func(int64) error) float64 {
	b.Helper()
	var (
		next atomic.Int64
		wg   sync.WaitGroup
	)
	start := time.Now()
	for range concurrent {
		wg.Go(func() {
			for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
				if err := call(n); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return float64(b.N) / time.Since(start).Seconds()
}
