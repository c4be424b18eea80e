// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/central"
	"github.com/atoll-dev/atoll/region/claim"
	"github.com/atoll-dev/atoll/region/shard"
)

// numbers are the metrics, updated by the Observers of the loops.
type numbers struct {
	replicas prometheus.Gauge
	running  prometheus.Gauge
	healthy  *prometheus.GaugeVec
	requests *prometheus.HistogramVec
	decided  prometheus.Counter
	accounts *prometheus.CounterVec
}

func newNumbers(registry prometheus.Registerer) (*numbers, error) {
	n := &numbers{
		replicas: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "atoll_shard_replicas", Help: "Replicas that share the work as this one sees it; 0 if it owns nothing."}),
		running: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "atoll_master_running", Help: "1 while the loops of a master run."}),
		healthy: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "atoll_peer_healthy", Help: "1 if the peer answers its probes."}, []string{"peer"}),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "atoll_peer_request_seconds", Help: "Time until a peer answered; code is 0 if it did not."}, []string{"peer", "method", "code"}),
		decided: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "atoll_regions_decided_total", Help: "Decisions about who serves a region."}),
		accounts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "atoll_account_writes_total", Help: "Actions on Accounts, by action and outcome."}, []string{"action", "outcome"}),
	}
	var errs []error
	for _, c := range n.collectors() {
		errs = append(errs, registry.Register(c))
	}
	return n, errors.Join(errs...)
}

func (n *numbers) collectors() []prometheus.Collector {
	return []prometheus.Collector{n.replicas, n.running, n.healthy, n.requests, n.decided, n.accounts}
}

func (n *numbers) ofShard() *shard.Observer {
	return &shard.Observer{Changed: func(_ uint64, live []string) { n.replicas.Set(float64(len(live))) }}
}

func (n *numbers) ofCentral() *central.Observer {
	return &central.Observer{Master: func(_ context.Context, e central.MasterEvent) {
		n.running.Set(oneIf(e.Running))
		if !e.Running {
			n.healthy.Reset()
		}
	}}
}

func (n *numbers) ofRegion() *region.Observer {
	return &region.Observer{
		Probed: func(_ context.Context, e region.ProbeEvent) {
			n.healthy.WithLabelValues(string(e.Peer)).Set(oneIf(e.Health.State == region.Healthy))
		},
		Call: func(ctx context.Context, e region.CallEvent) (context.Context, func(int, error)) {
			begun := time.Now()
			return ctx, func(status int, _ error) {
				n.requests.WithLabelValues(string(e.Peer), e.Method, strconv.Itoa(status)).Observe(time.Since(begun).Seconds())
			}
		},
	}
}

func (n *numbers) ofClaim() *claim.Observer {
	return &claim.Observer{Decided: func(context.Context, claim.DecideEvent) { n.decided.Inc() }}
}

func (n *numbers) ofAccount() *account.Observer {
	return &account.Observer{
		Replicated: func(_ context.Context, e account.ReplicateEvent) {
			n.accounts.WithLabelValues(e.Action, outcome(e.Err)).Inc()
		},
		Repaired: func(_ context.Context, e account.RepairEvent) {
			n.accounts.WithLabelValues("repair", outcome(e.Err)).Inc()
		},
	}
}

func outcome(err error) string {
	if err != nil {
		return "failure"
	}
	return "success"
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
