// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package atollprometheus

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-dev/atoll/internal/observer"
	"github.com/atoll-dev/atoll/region/shard"
)

type shardMetrics struct {
	group
	replicas prometheus.Gauge
	changes  prometheus.Counter
	failures prometheus.Counter
}

func (s *shardMetrics) init() *group {
	s.replicas = s.gauge("atoll_shard_replicas", "Replicas that share the work as this one sees it; 0 if it owns nothing.")
	s.changes = s.counter("atoll_shard_changes_total", "Changes of the replicas that share the work.")
	s.failures = s.counter("atoll_shard_renew_failures_total", "Renewals of this replica's Lease that failed.")
	return &s.group
}

// Shard returns an Observer for shard.Options, which counts the replicas that share the work. The gauge is for one
// group of replicas. The Observer calls next after each update; next may be nil.
func (m *Metrics) Shard(next *shard.Observer) *shard.Observer {
	s := &m.shard
	s.used.Store(true)
	o := observer.Copy(next)
	changed, renewFailed := o.Changed, o.RenewFailed
	o.Changed = func(generation uint64, live []string) {
		s.replicas.Set(float64(len(live)))
		s.changes.Inc()
		if changed != nil {
			changed(generation, live)
		}
	}
	o.RenewFailed = func(err error) {
		s.failures.Inc()
		if renewFailed != nil {
			renewFailed(err)
		}
	}
	return o
}
