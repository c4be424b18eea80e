// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package atollprometheus

import (
	"context"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-dev/atoll/internal/observer"
	"github.com/atoll-dev/atoll/region/claim"
)

type claimMetrics struct {
	group
	decided        prometheus.Counter
	phases         *prometheus.CounterVec
	gates          *prometheus.CounterVec
	contradictions *prometheus.CounterVec
}

func (c *claimMetrics) init() *group {
	c.decided = c.counter("atoll_regions_decided_total", "Decisions about which peer serves a region.")
	c.phases = c.counters("atoll_regionclaim_changes_total", "Changes of the phase of RegionClaims, by peer and new phase.", "peer", "phase")
	c.gates = c.counters("atoll_servicecluster_gates_total", "Writes of the gate of ServiceClusters, by peer and whether the RegionClaim is Bound.", "peer", "bound")
	c.contradictions = c.counters("atoll_regionclaim_contradictions_total", "RegionClaims whose status another client keeps replacing, by peer.", "peer")
	return &c.group
}

// Claim returns an Observer for claim.Options, which counts decisions about regions. It calls next after each update;
// next may be nil.
func (m *Metrics) Claim(next *claim.Observer) *claim.Observer {
	c := &m.claim
	c.used.Store(true)
	o := observer.Copy(next)
	o.Decided = observer.Chain(func(context.Context, claim.DecideEvent) { c.decided.Inc() }, o.Decided)
	o.Reported = observer.Chain(func(_ context.Context, e claim.ReportEvent) {
		if e.Before != e.Phase {
			c.phases.WithLabelValues(string(e.Peer), string(e.Phase)).Inc()
		}
	}, o.Reported)
	o.Gated = observer.Chain(func(_ context.Context, e claim.GateEvent) {
		c.gates.WithLabelValues(string(e.Peer), strconv.FormatBool(e.Bound)).Inc()
	}, o.Gated)
	o.Contradicted = observer.Chain(func(_ context.Context, e claim.ContradictEvent) {
		c.contradictions.WithLabelValues(string(e.Peer)).Inc()
	}, o.Contradicted)
	return o
}
