// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/events"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/central"
	"github.com/atoll-dev/atoll/region/claim"
	"github.com/atoll-dev/atoll/region/servicecluster"
	"github.com/atoll-dev/atoll/region/shard"
	"github.com/atoll-dev/atoll/syncer/join"
	workloadv1alpha1 "github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// metrics are the metrics, updated by the Observers of the loops.
type metrics struct {
	registry *prometheus.Registry
	replicas prometheus.Gauge
	running  prometheus.Gauge
	requests *prometheus.HistogramVec
	decided  prometheus.Counter
	accounts *prometheus.CounterVec
	probes   *prometheus.CounterVec
	changes  *prometheus.CounterVec
	joins    *prometheus.CounterVec
}

func newMetrics(ring func() *region.Ring, dropped func() uint64) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		replicas: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "atoll_shard_replicas", Help: "Replicas that share the work as this one sees it; 0 if it owns nothing.",
		}),
		running: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "atoll_master_running", Help: "1 while the loops of a master run.",
		}),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "atoll_peer_request_seconds", Help: "Time until a peer answered; code is 0 if it did not.",
		}, []string{"peer", "method", "code"}),
		decided: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "atoll_regions_decided_total", Help: "Decisions about which peer serves a region.",
		}),
		accounts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "atoll_account_writes_total", Help: "Actions on Accounts, by action and outcome.",
		}, []string{"action", "outcome"}),
		probes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "atoll_servicecluster_probes_total", Help: "Probes of the clusters of ServiceClusters, by outcome.",
		}, []string{"outcome"}),
		changes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "atoll_servicecluster_changes_total", Help: "Changes of the condition Ready of ServiceClusters, by its status.",
		}, []string{"ready"}),
		joins: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "atoll_cluster_certificate_requests_total", Help: "Requests of clusters for certificates, by the decision.",
		}, []string{"decision"}),
	}
	m.registry.MustRegister(m.replicas, m.running, m.requests, m.decided, m.accounts, m.probes, m.changes, m.joins, &peers{ring},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "atoll_events_dropped_total", Help: "Events of objects that could not be written.",
		}, func() float64 { return float64(dropped()) }),
	)
	return m
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

func (m *metrics) ofShard() *shard.Observer {
	return &shard.Observer{Changed: func(_ uint64, live []string) { m.replicas.Set(float64(len(live))) }}
}

func (m *metrics) ofCentral() *central.Observer {
	return &central.Observer{Master: func(_ context.Context, e central.MasterEvent) { m.running.Set(oneIf(e.Running)) }}
}

func (m *metrics) ofRegion() *region.Observer {
	return &region.Observer{Call: func(ctx context.Context, e region.CallEvent) (context.Context, func(int, error)) {
		begun := time.Now()
		return ctx, func(status int, _ error) {
			m.requests.WithLabelValues(string(e.Peer), e.Method, strconv.Itoa(status)).Observe(time.Since(begun).Seconds())
		}
	}}
}

func (m *metrics) ofClaim() *claim.Observer {
	return &claim.Observer{Decided: func(context.Context, claim.DecideEvent) { m.decided.Inc() }}
}

func (m *metrics) ofServiceClusters() *servicecluster.Observer {
	return &servicecluster.Observer{
		Probed: func(_ context.Context, e servicecluster.ProbeEvent) { m.probes.WithLabelValues(outcome(e.Err)).Inc() },
		Reported: func(_ context.Context, e servicecluster.ReportEvent) {
			if e.Before != e.Ready {
				m.changes.WithLabelValues(string(e.Ready)).Inc()
			}
		},
	}
}

// ofClusters also records an Event of the SyncTarget whose token or certificate was refused.
func (m *metrics) ofClusters(recorder *events.Recorder, plane region.API) *join.Observer {
	report := func(target string, uid types.UID, reason, message string) {
		if uid == "" {
			return // the token is not known, or the SyncTarget is gone; the log has the requester
		}
		recorder.Record(plane, events.Event{
			About: events.Object{APIVersion: workloadv1alpha1.GroupVersion.String(), Kind: "SyncTarget", Name: target, UID: uid}, Type: events.Warning, Reason: reason, Message: message,
		})
	}
	return &join.Observer{
		Approved: func(context.Context, join.DecideEvent) { m.joins.WithLabelValues("approved").Inc() },
		Denied: func(_ context.Context, e join.DecideEvent) {
			m.joins.WithLabelValues("denied").Inc()
			report(e.Target, e.TargetUID, "CertificateDenied", e.Message)
		},
		Expired: func(_ context.Context, e join.ExpireEvent) {
			report(e.Target, e.TargetUID, "TokenExpired", "a token to join expired before it was used")
		},
	}
}

func (m *metrics) ofAccount() *account.Observer {
	return &account.Observer{
		Replicated: func(_ context.Context, e account.ReplicateEvent) {
			m.accounts.WithLabelValues(e.Action, outcome(e.Err)).Inc()
		},
		Repaired: func(_ context.Context, e account.RepairEvent) {
			m.accounts.WithLabelValues("repair", outcome(e.Err)).Inc()
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

// peers collects the health of each peer of the running loops.
type peers struct{ ring func() *region.Ring }

var healthy = prometheus.NewDesc("atoll_peer_healthy", "1 if the peer answers its probes.", []string{"peer"}, nil)

// Describe implements prometheus.Collector.
func (*peers) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- healthy }

// Collect implements prometheus.Collector.
func (p *peers) Collect(values chan<- prometheus.Metric) {
	ring := p.ring()
	if ring == nil {
		return // not a master
	}
	for peer := range ring.Snapshot().Peers() {
		conn, err := ring.Conn(peer.Name)
		values <- prometheus.MustNewConstMetric(healthy, prometheus.GaugeValue,
			oneIf(err == nil && conn.Health().State == region.Healthy), string(peer.Name))
	}
}
