// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package atollprometheus

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-dev/atoll/internal/observer"
	"github.com/atoll-dev/atoll/splitter"
)

type splitterMetrics struct {
	group
	divisions *prometheus.CounterVec
	written   *prometheus.CounterVec
	removed   *prometheus.CounterVec
	faults    prometheus.Counter
}

func (s *splitterMetrics) init() *group {
	s.divisions = s.counters("atoll_splitter_divisions_total", "Divisions that wrote or deleted shards, or failed, by kind of the parent and outcome.", "kind", "outcome")
	s.written = s.counters("atoll_splitter_shards_written_total", "Shards that were written, by kind of the parent.", "kind")
	s.removed = s.counters("atoll_splitter_shards_deleted_total", "Shards that were deleted, by kind of the parent.", "kind")
	s.faults = s.counter("atoll_splitter_weight_faults_total", "Values of the weight label of a cluster that could not be read.")
	return &s.group
}

// Splitter returns an Observer for splitter.Options, which counts divisions and shards. It calls next after each
// update; next may be nil.
func (m *Metrics) Splitter(next *splitter.Observer) *splitter.Observer {
	s := &m.splitter
	s.used.Store(true)
	o := observer.Copy(next)
	o.Divided = observer.Chain(func(_ context.Context, e splitter.DividedEvent) {
		s.divisions.WithLabelValues(e.Kind, outcome(e.Err)).Inc()
		s.written.WithLabelValues(e.Kind).Add(float64(len(e.Written)))
		s.removed.WithLabelValues(e.Kind).Add(float64(len(e.Removed)))
	}, o.Divided)
	o.Cluster = observer.Chain(func(context.Context, splitter.ClusterEvent) { s.faults.Inc() }, o.Cluster)
	return o
}
