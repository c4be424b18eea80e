// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router/proxy"
)

// Metrics are the metrics of one gateway. It is safe for concurrent use.
type Metrics struct {
	ring     *region.Ring
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	inFlight *prometheus.GaugeVec
}

// Values are values that are read at each scrape.
type Values struct {
	AuditFailed func() int64     // audit events that could not be written
	Kept        func() bool      // the peers come from the cache
	Expiry      func() time.Time // of the serving certificate
}

// New makes the metrics of a gateway with the peers of ring. Its Handler also serves those of packages, which the Observers
// of the gateway's parts update.
func New(ring *region.Ring, packages prometheus.Collector, values Values) *Metrics {
	m := &Metrics{
		ring: ring, registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "atoll_gateway_requests_total",
			Help: "Requests that have ended, by region (* for all regions, unknown for a region that is not served here, empty for other paths), verb and status code (0: the client disconnected).",
		}, []string{"region", "verb", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "atoll_gateway_request_duration_seconds",
			Help:    "Duration of requests that are not long-running.",
			Buckets: []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60},
		}, []string{"region", "verb"}),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "atoll_gateway_requests_in_flight",
			Help: "Requests under way; kind is request, or stream for watches, logs and other long-running requests.",
		}, []string{"kind"}),
	}
	m.registry.MustRegister(m.requests, m.duration, m.inFlight, &peers{ring}, packages,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "atoll_gateway_audit_events_lost_total", Help: "Audit events that could not be written.",
		}, func() float64 { return float64(values.AuditFailed()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "atoll_gateway_peers_from_cache", Help: "1 if the source cannot be read and the peers come from the cache.",
		}, func() float64 {
			if values.Kept() {
				return 1
			}
			return 0
		}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "atoll_gateway_certificate_expiry_timestamp_seconds", Help: "When the serving certificate expires.",
		}, func() float64 { return float64(values.Expiry().Unix()) }),
	)
	return m
}

// Handler serves the metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// Began counts a request that has begun. The caller calls end when it has ended.
func (m *Metrics) Began(longRunning bool) (end func()) {
	kind := "request"
	if longRunning {
		kind = "stream"
	}
	gauge := m.inFlight.WithLabelValues(kind)
	gauge.Inc()
	return gauge.Dec
}

// Served counts a request that has ended.
func (m *Metrics) Served(e proxy.Event, longRunning bool) {
	place, verb := m.region(e), verb(e.Verb)
	m.requests.WithLabelValues(place, verb, strconv.Itoa(e.Code)).Inc()
	if !longRunning {
		m.duration.WithLabelValues(place, verb).Observe(e.Elapsed.Seconds())
	}
}

func (m *Metrics) region(e proxy.Event) string {
	if e.All {
		return "*"
	}
	if e.Region.Name == "" {
		return ""
	}
	if _, ok := m.ring.Snapshot().Locate(e.Region); ok {
		return e.Region.String()
	}
	if _, ok := m.ring.Snapshot().Peer(region.PeerName(e.Region.Name)); ok && e.Region.Provider == "peer" {
		return e.Region.String()
	}
	return "unknown"
}

var verbs = map[string]bool{
	"get": true, "list": true, "watch": true, "create": true, "update": true, "patch": true, "delete": true,
	"deletecollection": true, "proxy": true, "post": true, "put": true, "head": true, "options": true,
}

func verb(v string) string {
	if verbs[v] {
		return v
	}
	return "other"
}

// peers collects the state of each region and its peer.
type peers struct{ ring *region.Ring }

var up = prometheus.NewDesc("atoll_gateway_region_up", "1 if the region's peer answers its probes, 0 if it does not.", []string{"region", "peer"}, nil)

// Describe implements prometheus.Collector.
func (*peers) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- up }

// Collect implements prometheus.Collector.
func (p *peers) Collect(metrics chan<- prometheus.Metric) {
	for key, peer := range p.ring.Snapshot().Regions() {
		value := 0.0
		if conn, err := p.ring.Conn(peer.Name); err == nil && conn.Health().State == region.Healthy {
			value = 1
		}
		metrics <- prometheus.MustNewConstMetric(up, prometheus.GaugeValue, value, key.String(), string(peer.Name))
	}
}
