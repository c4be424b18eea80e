// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package atollprometheus

import (
	"github.com/prometheus/client_golang/prometheus"
)

var _ prometheus.Collector = (*Metrics)(nil)

// Metrics are the metrics of the Observers that its methods return. Register it on a prometheus.Registerer. The
// metrics of a package are collected once the method for its Observer was called. A program uses one Metrics for all
// its Observers. It is safe for concurrent use.
type Metrics struct {
	opts   Options
	groups []*group

	region           regionMetrics
	fanout           fanoutMetrics
	router           routerMetrics
	proxy            proxyMetrics
	aggregate        aggregateMetrics
	account          accountMetrics
	syncer           syncerMetrics
	splitter         splitterMetrics
	placement        placementMetrics
	clusterDaemonSet clusterDaemonSetMetrics
	wal              walMetrics
	claim            claimMetrics
	central          centralMetrics
	shard            shardMetrics
	serviceCluster   serviceClusterMetrics
	join             joinMetrics
}

// New makes Metrics. It fails if an entry of Options.Buckets is not valid. It registers nothing and starts no
// goroutine.
func New(opts Options) (*Metrics, error) {
	b := &buckets{given: opts.Buckets, taken: map[string]bool{}}
	m := &Metrics{opts: opts}
	m.groups = []*group{
		m.region.init(b), m.fanout.init(b), m.router.init(b), m.proxy.init(b), m.aggregate.init(b), m.account.init(),
		m.syncer.init(), m.splitter.init(), m.placement.init(), m.clusterDaemonSet.init(), m.wal.init(b), m.claim.init(), m.central.init(), m.shard.init(),
		m.serviceCluster.init(b), m.join.init(),
	}
	if opts.Directory != nil {
		health := &group{collectors: []prometheus.Collector{newHealth(opts.Directory)}}
		health.used.Store(true)
		m.groups = append(m.groups, health)
	}
	if err := b.check(); err != nil {
		return nil, err
	}
	return m, nil
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(descriptions chan<- *prometheus.Desc) {
	for _, g := range m.groups {
		for _, c := range g.collectors {
			c.Describe(descriptions)
		}
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(values chan<- prometheus.Metric) {
	for _, g := range m.groups {
		if !g.used.Load() {
			continue
		}
		for _, c := range g.collectors {
			c.Collect(values)
		}
	}
}
