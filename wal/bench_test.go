// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wal_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/atoll-dev/atoll/wal"
)

// BenchmarkBegin compares Begin with one synced bbolt.Update per call of the same bytes, in the same number of goroutines
// on the same disk, and reports calls per second of both and their ratio.
func BenchmarkBegin(b *testing.B) {
	for _, goroutines := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("goroutines=%d", goroutines), func(b *testing.B) {
			f, err := wal.Open(filepath.Join(b.TempDir(), "wal.db"), wal.Options{})
			if err != nil {
				b.Fatal(err)
			}
			db, err := bbolt.Open(filepath.Join(b.TempDir(), "plain.db"), 0o600, &bbolt.Options{
				NoFreelistSync: true, FreelistType: bbolt.FreelistMapType, InitialMmapSize: 16 << 20,
			})
			if err != nil {
				b.Fatal(err)
			}
			if err := db.Update(func(tx *bbolt.Tx) error { _, err := tx.CreateBucket([]byte("ops")); return err }); err != nil {
				b.Fatal(err)
			}
			data := make([]byte, 512)
			b.ResetTimer()
			ours := spread(b, goroutines, func(n int64) error {
				_, err := f.Begin(b.Context(), wal.Entry{ID: fmt.Sprintf("%012d", n), Kind: "bench", Data: data})
				return err
			})
			b.StopTimer()
			plain := spread(b, goroutines, func(n int64) error {
				return db.Update(func(tx *bbolt.Tx) error {
					return tx.Bucket([]byte("ops")).Put(fmt.Appendf(nil, "%012d", n), data)
				})
			})
			b.ReportMetric(ours, "calls/s")
			b.ReportMetric(plain, "plain-calls/s")
			b.ReportMetric(ours/plain, "ratio")
			if err := f.Verify(b.Context()); err != nil {
				b.Fatal(err)
			}
			if err := f.Close(); err != nil {
				b.Fatal(err)
			}
			if err := db.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// spread makes b.N calls in some goroutines and returns calls per second.
func spread(b *testing.B, goroutines int, call func(int64) error) float64 {
	b.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	start := time.Now()
	for range goroutines {
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
