// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package atollprometheus

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-dev/atoll/internal/observer"
	"github.com/atoll-dev/atoll/router/aggregate"
)

type aggregateMetrics struct {
	group
	lists    *prometheus.CounterVec
	duration *prometheus.HistogramVec
	steps    *prometheus.CounterVec
}

func (a *aggregateMetrics) init(b *buckets) *group {
	a.lists = a.counters("atoll_aggregate_lists_total", "Parts of regions in merged lists, by state.", "region", "state")
	a.duration = a.histograms(b, "atoll_aggregate_list_duration_seconds", "Time until a region answered its part of a merged list.", requestBounds(), "region")
	a.steps = a.counters("atoll_aggregate_watch_steps_total", "Steps of merged watches in a region, by step and state.", "region", "step", "state")
	return &a.group
}

// Aggregate returns an Observer for aggregate.Options, which counts merged lists and the steps of merged watches by
// region. The regions are those of the Set. The Observer calls next after each update; next may be nil.
func (m *Metrics) Aggregate(next *aggregate.Observer) *aggregate.Observer {
	a := &m.aggregate
	a.used.Store(true)
	o := observer.Copy(next)
	o.Listed = observer.Chain(func(_ context.Context, outcomes []aggregate.Outcome) {
		for _, out := range outcomes {
			a.lists.WithLabelValues(out.Region.String(), string(out.State)).Inc()
			a.duration.WithLabelValues(out.Region.String()).Observe(out.Elapsed.Seconds())
		}
	}, o.Listed)
	o.Followed = observer.Chain(func(_ context.Context, e aggregate.FollowEvent) {
		a.steps.WithLabelValues(e.Region.String(), string(e.Step), string(e.State)).Inc()
	}, o.Followed)
	return o
}
