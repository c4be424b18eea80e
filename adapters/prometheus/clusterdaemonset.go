// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package atollprometheus

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-dev/atoll/internal/observer"
	"github.com/atoll-dev/atoll/splitter/clusterdaemonset"
)

type clusterDaemonSetMetrics struct {
	group
	reconciles *prometheus.CounterVec
}

func (p *clusterDaemonSetMetrics) init() *group {
	p.reconciles = p.counters("atoll_clusterdaemonset_writes_total", "Reconciles of ClusterDaemonSets that wrote or removed Deployments or failed, by outcome.", "outcome")
	return &p.group
}

// ClusterDaemonSet returns an Observer for clusterdaemonset.Options, which counts the reconciles that wrote or failed. It
// calls next after each update; next may be nil.
func (m *Metrics) ClusterDaemonSet(next *clusterdaemonset.Observer) *clusterdaemonset.Observer {
	p := &m.clusterDaemonSet
	p.used.Store(true)
	o := observer.Copy(next)
	o.Carried = observer.Chain(func(_ context.Context, e clusterdaemonset.CarriedEvent) {
		p.reconciles.WithLabelValues(outcome(e.Err)).Inc()
	}, o.Carried)
	return o
}
