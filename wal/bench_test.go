// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wal_test

import (
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/atoll-dev/atoll/wal"
)

// BenchmarkBegin compares Begin with a synced bbolt.Update that stores the same data, with the same number of
// goroutines on the same disk. It reports the calls per second of both and their ratio.
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

// slow is a disk whose fdatasync takes the time latency. bbolt cannot sync through another func, so the File and the
// baselines write without a sync. Instead they wait twice in each commit, while they hold the file: once for the data
// pages and once for the meta page, since bbolt's own commit syncs twice.
type slow struct {
	latency time.Duration
	synced  atomic.Int64 // nanoseconds
	commits atomic.Int64
}

func (d *slow) sync() {
	start := time.Now()
	for range 2 {
		time.Sleep(d.latency)
	}
	d.synced.Add(int64(time.Since(start)))
}

func (d *slow) open(b *testing.B) *wal.File {
	b.Helper()
	f, err := wal.Open(filepath.Join(b.TempDir(), "wal.db"), wal.Options{})
	require.NoError(b, err)
	f.OnCommit(func(tx *bbolt.Tx) error {
		d.commits.Add(1)
		tx.DB().NoSync, tx.DB().NoGrowSync = true, true
		d.sync()
		return tx.Commit()
	})
	b.Cleanup(func() { require.NoError(b, f.Close()) })
	return f
}

func (d *slow) openPlain(b *testing.B) (db *bbolt.DB, put func(*bbolt.Tx, int64) error) {
	b.Helper()
	db, err := bbolt.Open(filepath.Join(b.TempDir(), "plain.db"), 0o600, &bbolt.Options{
		NoFreelistSync: true, FreelistType: bbolt.FreelistMapType, InitialMmapSize: 16 << 20, NoSync: true, NoGrowSync: true,
	})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, db.Close()) })
	require.NoError(b, db.Update(func(tx *bbolt.Tx) error { _, err := tx.CreateBucket([]byte("ops")); return err }))
	data := make([]byte, 512)
	synced := -1 // ID of the last synced transaction: Batch runs several funcs in one transaction. Only the writer uses it.
	return db, func(tx *bbolt.Tx, n int64) error {
		if tx.ID() != synced {
			synced = tx.ID()
			d.sync()
		}
		return tx.Bucket([]byte("ops")).Put(fmt.Appendf(nil, "%012d", n), data)
	}
}

// BenchmarkSlowSync appends on a disk whose fdatasync takes 1 ms or 5 ms. The baselines run with the same number of
// goroutines, in turn with File: ratio compares with one bbolt.Update per call, and batch-ratio with bbolt.Batch.
// sync-ratio is the fraction of File's time in which its disk was syncing.
func BenchmarkSlowSync(b *testing.B) {
	for _, latency := range []time.Duration{time.Millisecond, 5 * time.Millisecond} {
		for _, goroutines := range []int{1, 8, 64} {
			b.Run(fmt.Sprintf("sync=%s/goroutines=%d", latency, goroutines), func(b *testing.B) {
				d, baseline := &slow{latency: latency}, &slow{latency: latency}
				f := d.open(b)
				db, put := baseline.openPlain(b)
				batched, putBatched := baseline.openPlain(b)
				data := make([]byte, 512)
				b.ResetTimer()
				b.StopTimer()
				var ours, plain, batch rate
				for done := 0; done < b.N; { // take turns, so that load on the machine slows all of them
					n := min(b.N-done, 8*goroutines)
					b.StartTimer()
					ours.run(b, n, goroutines, func(i int64) error {
						_, err := f.Begin(b.Context(), wal.Entry{ID: fmt.Sprintf("%012d", int64(done)+i), Kind: "bench", Data: data})
						return err
					})
					b.StopTimer()
					plain.run(b, min(n, 16), goroutines, func(i int64) error {
						return db.Update(func(tx *bbolt.Tx) error { return put(tx, int64(done)+i) })
					})
					batch.run(b, n, goroutines, func(i int64) error {
						return batched.Batch(func(tx *bbolt.Tx) error { return putBatched(tx, int64(done)+i) })
					})
					done += n
				}
				b.ReportMetric(ours.perSecond(), "calls/s")
				b.ReportMetric(float64(b.N)/float64(d.commits.Load()), "calls/commit")
				b.ReportMetric(ours.perSecond()/plain.perSecond(), "ratio")
				b.ReportMetric(ours.perSecond()/batch.perSecond(), "batch-ratio")
				b.ReportMetric(float64(d.synced.Load())/float64(ours.took), "sync-ratio")
			})
		}
	}
}

// rate is a number of calls and the time that has elapsed during these calls.
type rate struct {
	calls int
	took  time.Duration
}

func (r *rate) run(b *testing.B, n, goroutines int, call func(int64) error) {
	b.Helper()
	r.calls += n
	r.took += time.Duration(float64(n) / sample(b, n, goroutines, call) * float64(time.Second))
}

func (r *rate) perSecond() float64 { return float64(r.calls) / r.took.Seconds() }

// BenchmarkOpenList opens a log with pending entries and lists them, as a program does first after a restart. The
// list is paged: memory-ratio compares the peak of live memory with that of a log with a tenth of the entries (1
// means that the peak does not grow).
func BenchmarkOpenList(b *testing.B) {
	const n, size = 10_000, 1024
	large, small := pending(b, n, size), pending(b, n/10, size)
	var peaks [2]uint64
	for b.Loop() {
		peaks[0] = max(peaks[0], listed(b, large, n))
		b.StopTimer()
		peaks[1] = max(peaks[1], listed(b, small, n/10))
		b.StartTimer()
	}
	b.ReportMetric(float64(peaks[0])/(1<<20), "peak-MiB")
	b.ReportMetric(float64(peaks[1])/(1<<20), "tenth-peak-MiB")
	b.ReportMetric(float64(peaks[0])/float64(peaks[1]), "memory-ratio")
}

func pending(b *testing.B, n, size int) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "wal.db")
	f, err := wal.Open(path, wal.Options{})
	require.NoError(b, err)
	sample(b, n, 128, func(i int64) error {
		_, err := f.Begin(b.Context(), wal.Entry{ID: fmt.Sprintf("%012d", i), Key: fmt.Sprint(i), Data: make([]byte, size)})
		return err
	})
	require.NoError(b, f.Close())
	return path
}

// listed opens a log, lists it and returns the peak of live bytes.
func listed(b *testing.B, path string, want int) (peak uint64) {
	b.Helper()
	alive := func() {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		peak = max(peak, m.HeapAlloc)
	}
	f, err := wal.Open(path, wal.Options{})
	require.NoError(b, err)
	n := 0
	for _, err := range f.Open(b.Context()) {
		if err != nil {
			b.Fatal(err)
		}
		if n++; n%(want/10) == 0 {
			alive()
		}
	}
	require.Equal(b, want, n)
	require.NoError(b, f.Close())
	return peak
}

// sample makes n calls, divided between the goroutines, and returns calls per second.
func sample(b *testing.B, n, goroutines int, call func(int64) error) float64 {
	b.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	start := time.Now()
	for range goroutines {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				if err := call(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return float64(n) / time.Since(start).Seconds()
}

// spread makes b.N calls, divided between the goroutines, and returns calls per second.
func spread(b *testing.B, goroutines int, call func(int64) error) float64 {
	b.Helper()
	return sample(b, b.N, goroutines, call)
}
