// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// recordingLog keeps the entry of the latest Advance, which is in the state before the commit.
type recordingLog struct {
	wal.Log
	entry wal.Entry
}

func (l *recordingLog) Advance(ctx context.Context, e wal.Entry) (wal.Entry, error) {
	l.entry = e
	return l.Log.Advance(ctx, e)
}

// interrupted makes the leftovers of adds whose process died just before the commit: a reservation
// in every peer and an entry in the log.
type interrupted struct {
	namespace string
	entry     wal.Entry
	objects   map[string]*unstructured.Unstructured
	clients   map[string]dynamic.ResourceInterface
}

func newInterrupted(t testing.TB, r *regiontest.Ring) *interrupted {
	t.Helper()
	log := &recordingLog{Log: waltest.NewMemory()}
	c := coordinator(t, r, log, fanout.Options{})
	i := &interrupted{namespace: addAccount(t, c), objects: map[string]*unstructured.Unstructured{}, clients: map[string]dynamic.ResourceInterface{}}
	_, err := c.Add(t.Context(), newServiceCluster(i.namespace, "db-000000"), fanout.AddOptions{Target: "us-east"})
	require.NoError(t, err)
	i.entry = log.entry
	for _, peer := range peers {
		conn, err := r.Conn(peer)
		require.NoError(t, err)
		client := conn.Dynamic().Resource(serviceClusterResource).Namespace(i.namespace)
		obj, err := client.Get(t.Context(), "db-000000", metav1.GetOptions{})
		require.NoError(t, err)
		obj.SetFinalizers(nil)
		obj.SetResourceVersion("")
		obj.SetManagedFields(nil)
		require.NoError(t, unstructured.SetNestedField(obj.Object, "Reserved", "spec", "fanout", "stage"))
		i.objects[string(peer)], i.clients[string(peer)] = obj, client
	}
	_, err = c.Remove(t.Context(), serviceClusters, key(i.namespace, "db-000000"), fanout.RemoveOptions{})
	require.NoError(t, err)
	return i
}

// leave makes the leftovers of the n-th add.
func (i *interrupted) leave(t testing.TB, log wal.Log, n int) {
	t.Helper()
	name := fmt.Sprintf("db-%06d", n)
	operation := fmt.Sprintf("%s%06d", i.entry.ID[:len(i.entry.ID)-6], n)
	primary := i.reserve(t, "us-east", name, operation, "")
	for _, peer := range []string{"ap-south", "eu-west"} {
		i.reserve(t, peer, name, operation, primary)
	}
	entry := i.entry
	entry.ID, entry.Key = operation, "operation/"+operation
	for was, is := range map[string]string{
		"db-000000": name, i.entry.ID: operation, string(i.objects["us-east"].GetUID()): primary,
	} {
		entry.Data = bytes.ReplaceAll(entry.Data, []byte(was), []byte(is))
	}
	_, err := log.Begin(t.Context(), entry)
	require.NoError(t, err)
}

// reserve creates a reservation and returns its UID.
func (i *interrupted) reserve(t testing.TB, peer, name, operation, primary string) string {
	t.Helper()
	obj := i.objects[peer].DeepCopy()
	obj.SetName(name)
	obj.SetUID("")
	require.NoError(t, unstructured.SetNestedField(obj.Object, operation, "spec", "fanout", "claim", "operation"))
	if primary != "" {
		require.NoError(t, unstructured.SetNestedField(obj.Object, primary, "spec", "fanout", "claim", "primary", "uid"))
	}
	got, err := i.clients[peer].Create(t.Context(), obj, metav1.CreateOptions{})
	require.NoError(t, err)
	return string(got.GetUID())
}

// gone reports whether no peer holds a leftover.
func (i *interrupted) gone(t testing.TB) bool {
	t.Helper()
	left := 0
	for _, client := range i.clients {
		list, err := client.List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		left += len(list.Items)
	}
	return left == 0
}

// countingLog counts the entries that were yielded and not read again yet.
type countingLog struct {
	wal.Log
	open, most atomic.Int64
}

func (l *countingLog) Open(ctx context.Context) iter.Seq2[wal.Entry, error] {
	return func(yield func(wal.Entry, error) bool) {
		for e, err := range l.Log.Open(ctx) {
			if n := l.open.Add(1); n > l.most.Load() {
				l.most.Store(n)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

func (l *countingLog) Find(ctx context.Context, key string) (wal.Entry, error) {
	l.open.Add(-1)
	return l.Log.Find(ctx, key)
}

// TestRecoveryHoldsFewEntries recovers many operations and counts how many entries are in
// memory at once.
func TestRecoveryHoldsFewEntries(t *testing.T) {
	r := newRing(t)
	left := newInterrupted(t, r)
	log := &countingLog{Log: waltest.NewMemory()}
	for n := range 200 {
		left.leave(t, log, n+1)
	}
	c := coordinator(t, r, log, fanout.Options{MaxInFlight: time.Nanosecond})
	operations, err := c.Recover(t.Context())
	require.NoError(t, err)
	require.Len(t, operations, 200)
	for n, operation := range operations {
		require.Equal(t, fanout.Aborted, operation.State)
		require.True(t, strings.HasSuffix(operation.ID, fmt.Sprintf("%06d", n+1)), "oldest first")
	}
	require.True(t, left.gone(t))
	// 18 are the 16 entries of concurrent recoveries, the next entry, and the first entry, from
	// which checkLog learned the ring of the log.
	require.LessOrEqual(t, log.most.Load(), int64(18), "entries in memory at once")
	require.Positive(t, log.most.Load())
	requireSettled(t, log)
	requireClean(t, c)
}

// BenchmarkRecovery recovers 10,000 adds whose process died just before their commit. The baseline
// reads and deletes the same reservations with bare clients, 16 operations at a time. It measures
// how fast the peers accept such writes.
func BenchmarkRecovery(b *testing.B) {
	const pending = 10_000
	for b.Loop() {
		b.StopTimer()
		r := newRing(b)
		left := newInterrupted(b, r)
		log, err := wal.Open(filepath.Join(b.TempDir(), "operations.db"), wal.Options{})
		require.NoError(b, err)
		for n := range pending {
			left.leave(b, log, n+1)
		}
		c := coordinator(b, r, log, fanout.Options{MaxInFlight: time.Nanosecond, LeaseTimeout: time.Minute})
		b.StartTimer()
		begun := time.Now()
		_, err = c.Recover(b.Context())
		ours := time.Since(begun)
		b.StopTimer()
		require.NoError(b, err)
		require.True(b, left.gone(b))
		require.NoError(b, log.Close())

		memory := waltest.NewMemory()
		for n := range pending {
			left.leave(b, memory, n+1)
		}
		bare := left.discard(b, pending)
		b.ReportMetric(bare.Seconds()/ours.Seconds(), "ratio")
		b.ReportMetric(pending/ours.Seconds(), "ops/s")
		b.ReportMetric(pending/bare.Seconds(), "bare-ops/s")
		b.StartTimer()
	}
}

// take deletes a reservation on the UID and resourceVersion that it read.
func (i *interrupted) take(ctx context.Context, peer region.PeerName, name string) error {
	client := i.clients[string(peer)]
	obj, err := client.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	uid, rv := obj.GetUID(), obj.GetResourceVersion()
	return client.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &rv}})
}

// discard deletes the reservations with bare clients.
func (i *interrupted) discard(b *testing.B, pending int) time.Duration {
	b.Helper()
	var next atomic.Int64
	begun := time.Now()
	workers := make([]func() error, 16)
	for w := range workers {
		workers[w] = func() error {
			for n := next.Add(1); n <= int64(pending); n = next.Add(1) {
				for _, peer := range peers {
					if err := i.take(b.Context(), peer, fmt.Sprintf("db-%06d", n)); err != nil {
						return err
					}
				}
			}
			return nil
		}
	}
	require.NoError(b, allOf(workers...))
	return time.Since(begun)
}
