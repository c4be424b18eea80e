// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal"
)

// BenchmarkAddRemove adds a ServiceCluster to a ring of three peers in memory and removes it. The
// Coordinator keeps its log in a file. The baseline makes the same writes with bare clients, in the
// same order and with the same parallelism, without log, checks or recovery. The ratio is the
// baseline's time divided by that of the Coordinator.
func BenchmarkAddRemove(b *testing.B) {
	r := newRing(b)
	log, err := wal.Open(filepath.Join(b.TempDir(), "operations.db"), wal.Options{})
	require.NoError(b, err)
	defer func() { require.NoError(b, log.Close()) }()
	c := coordinator(b, r, log, fanout.Options{})
	acme := addAccount(b, c)
	var ours, bare time.Duration
	for n := 0; b.Loop(); n++ {
		name := fmt.Sprintf("db-%d", n)
		start := time.Now()
		_, err := c.Add(b.Context(), newServiceCluster(acme, name), fanout.AddOptions{Target: "us-east"})
		require.NoError(b, err)
		_, err = c.Remove(b.Context(), serviceClusters, key(acme, name), fanout.RemoveOptions{})
		require.NoError(b, err)
		ours += time.Since(start)

		start = time.Now()
		bareAddRemove(b, r, acme, "bare-"+name)
		bare += time.Since(start)
	}
	b.ReportMetric(bare.Seconds()/ours.Seconds(), "ratio")
}

func bareAddRemove(b *testing.B, r *regiontest.Ring, namespace, name string) {
	b.Helper()
	clients := make([]dynamic.ResourceInterface, len(peers))
	for i, peer := range peers {
		conn, err := r.Conn(peer)
		require.NoError(b, err)
		clients[i] = conn.Dynamic().Resource(serviceClusterResource).Namespace(namespace)
	}
	target, others := clients[2], clients[:2]
	primary, err := target.Create(b.Context(), newServiceCluster(namespace, name), metav1.CreateOptions{})
	require.NoError(b, err)
	guard := newServiceCluster(namespace, name)
	delete(guard.Object["spec"].(map[string]any), "kubeconfigSecret")
	inParallel(b, others, func(client dynamic.ResourceInterface) error {
		_, err := client.Create(b.Context(), guard.DeepCopy(), metav1.CreateOptions{})
		return err
	})
	primary = put(b, target, primary, "configured")
	primary = put(b, target, primary, "removing")
	require.NotNil(b, primary)
	inParallel(b, others, func(client dynamic.ResourceInterface) error {
		return client.Delete(b.Context(), name, metav1.DeleteOptions{})
	})
	require.NoError(b, target.Delete(b.Context(), name, metav1.DeleteOptions{}))
}

func put(b *testing.B, client dynamic.ResourceInterface, obj *unstructured.Unstructured, label string) *unstructured.Unstructured {
	b.Helper()
	obj.SetLabels(map[string]string{"stage": label})
	obj, err := client.Update(b.Context(), obj, metav1.UpdateOptions{})
	require.NoError(b, err)
	return obj
}

func inParallel(b *testing.B, clients []dynamic.ResourceInterface, do func(dynamic.ResourceInterface) error) {
	b.Helper()
	errs := make([]error, len(clients))
	var wg sync.WaitGroup
	for i, client := range clients {
		wg.Go(func() { errs[i] = do(client) })
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(b, err)
	}
}
