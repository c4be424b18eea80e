// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package atollprometheus

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-dev/atoll/internal/observer"
	"github.com/atoll-dev/atoll/region/central"
)

type centralMetrics struct {
	group
	running  prometheus.Gauge
	failures prometheus.Counter
	ready    *prometheus.CounterVec
}

func (c *centralMetrics) init() *group {
	c.running = c.gauge("atoll_master_running", "1 while the loops of a master run.")
	c.failures = c.counter("atoll_master_failures_total", "Ends of the loops of a master by an error.")
	c.ready = c.counters("atoll_peer_ready_changes_total", "Changes of the condition Ready of Peers, by peer and status.", "peer", "ready")
	return &c.group
}

// Central returns an Observer for central.MasterOptions and central.PeersOptions, which counts changes of Peers and
// shows whether the loops of a master run. It calls next after each update; next may be nil.
func (m *Metrics) Central(next *central.Observer) *central.Observer {
	c := &m.central
	c.used.Store(true)
	o := observer.Copy(next)
	o.Ready = observer.Chain(func(_ context.Context, e central.ReadyEvent) {
		if e.Before != e.Status {
			c.ready.WithLabelValues(string(e.Peer), string(e.Status)).Inc()
		}
	}, o.Ready)
	o.Master = observer.Chain(func(_ context.Context, e central.MasterEvent) {
		c.running.Set(oneIf(e.Running))
		if e.Err != nil {
			c.failures.Inc()
		}
	}, o.Master)
	return o
}
