// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package atollprometheus

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-dev/atoll/internal/observer"
	"github.com/atoll-dev/atoll/wal"
)

type walMetrics struct {
	group
	commits     *prometheus.HistogramVec
	calls       *prometheus.CounterVec
	compactions *prometheus.HistogramVec
	size        prometheus.Gauge
}

func (w *walMetrics) init(b *buckets) *group {
	w.commits = w.histograms(b, "atoll_wal_commit_duration_seconds", "Time that storage needed for a commit of the log, by outcome.",
		[]float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10}, "outcome")
	w.calls = w.counters("atoll_wal_calls_total", "Calls that wrote to the log, by the outcome of their commit. Calls share commits.", "outcome")
	w.compactions = w.histograms(b, "atoll_wal_compaction_duration_seconds", "Duration of rewrites of the log's file, by outcome.", requestBounds(), "outcome")
	w.size = w.gauge("atoll_wal_compacted_size_bytes", "Size of the log's file after its last successful rewrite.")
	return &w.group
}

// WAL returns an Observer for wal.Options, which measures commits and rewrites of the file. It calls next after each
// update; next may be nil.
func (m *Metrics) WAL(next *wal.Observer) *wal.Observer {
	w := &m.wal
	w.used.Store(true)
	o := observer.Copy(next)
	committed, compacted := o.Committed, o.Compacted
	o.Committed = func(e wal.CommitEvent) {
		w.commits.WithLabelValues(outcome(e.Err)).Observe(e.Elapsed.Seconds())
		w.calls.WithLabelValues(outcome(e.Err)).Add(float64(e.Calls))
		if committed != nil {
			committed(e)
		}
	}
	o.Compacted = func(e wal.CompactEvent) {
		w.compactions.WithLabelValues(outcome(e.Err)).Observe(e.Elapsed.Seconds())
		if e.Err == nil {
			w.size.Set(float64(e.After))
		}
		if compacted != nil {
			compacted(e)
		}
	}
	return o
}
