// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package atollprometheus

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-dev/atoll/internal/observer"
	"github.com/atoll-dev/atoll/splitter/placement"
)

type placementMetrics struct {
	group
	writes *prometheus.CounterVec
}

func (p *placementMetrics) init() *group {
	p.writes = p.counters("atoll_placement_writes_total", "Writes of the placement of objects, by resource and outcome.", "resource", "outcome")
	return &p.group
}

// Placement returns an Observer for placement.Options, which counts the writes of placements. It calls next after each
// update; next may be nil.
func (m *Metrics) Placement(next *placement.Observer) *placement.Observer {
	p := &m.placement
	p.used.Store(true)
	o := observer.Copy(next)
	o.Placed = observer.Chain(func(_ context.Context, e placement.PlacedEvent) {
		p.writes.WithLabelValues(e.Resource.String(), outcome(e.Err)).Inc()
	}, o.Placed)
	return o
}
