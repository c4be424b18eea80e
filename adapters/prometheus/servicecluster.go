// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package atollprometheus

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-dev/atoll/internal/observer"
	"github.com/atoll-dev/atoll/region/servicecluster"
)

type serviceClusterMetrics struct {
	group
	probes   *prometheus.CounterVec
	duration *prometheus.HistogramVec
	changes  *prometheus.CounterVec
}

func (s *serviceClusterMetrics) init(b *buckets) *group {
	s.probes = s.counters("atoll_servicecluster_probes_total", "Probes of the clusters of ServiceClusters, by outcome.", "outcome")
	s.duration = s.histograms(b, "atoll_servicecluster_probe_duration_seconds", "Duration of probes of the clusters of ServiceClusters, by outcome.", requestBounds(), "outcome")
	s.changes = s.counters("atoll_servicecluster_changes_total", "Changes of the condition Ready of ServiceClusters, by its status.", "ready")
	return &s.group
}

// ServiceCluster returns an Observer for servicecluster.Options, which counts and measures probes, and counts changes
// of the condition Ready. It calls next after each update; next may be nil.
func (m *Metrics) ServiceCluster(next *servicecluster.Observer) *servicecluster.Observer {
	s := &m.serviceCluster
	s.used.Store(true)
	o := observer.Copy(next)
	o.Probed = observer.Chain(func(_ context.Context, e servicecluster.ProbeEvent) {
		s.probes.WithLabelValues(outcome(e.Err)).Inc()
		s.duration.WithLabelValues(outcome(e.Err)).Observe(e.Elapsed.Seconds())
	}, o.Probed)
	o.Reported = observer.Chain(func(_ context.Context, e servicecluster.ReportEvent) {
		if e.Before != e.Ready {
			s.changes.WithLabelValues(string(e.Ready)).Inc()
		}
	}, o.Reported)
	return o
}
