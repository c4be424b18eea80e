// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package atollprometheus

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-dev/atoll/internal/observer"
	"github.com/atoll-dev/atoll/router/proxy"
)

type proxyMetrics struct {
	group
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	streams  *prometheus.CounterVec
}

func (p *proxyMetrics) init(b *buckets) *group {
	p.requests = p.counters("atoll_proxy_requests_total",
		"Requests, watches and streams that have ended, by region (* for all regions, unknown for a region that is not served here), verb and status code (0: the client disconnected).",
		"region", "verb", "code")
	p.duration = p.histograms(b, "atoll_proxy_request_duration_seconds", "Duration of requests that are not watches, logs or upgraded connections.", requestBounds(), "region", "verb")
	p.streams = p.counters("atoll_proxy_streams_total", "Watches, logs and streams that have begun, by region and verb.", "region", "verb")
	return &p.group
}

// Proxy returns an Observer for proxy.Options, which counts and measures requests. Set Options.Directory to get them by
// region. The Observer calls next after each update; next may be nil.
func (m *Metrics) Proxy(next *proxy.Observer) *proxy.Observer {
	p := &m.proxy
	p.used.Store(true)
	o := observer.Copy(next)
	o.Served = observer.Chain(func(_ context.Context, e proxy.Event) {
		at, verb := m.proxied(e), verb(e.Verb)
		p.requests.WithLabelValues(at, verb, code(e.Code)).Inc()
		// A followed log has the verb get, so its subresource decides.
		if verb != "watch" && !e.Upgraded && e.Subresource != "log" {
			p.duration.WithLabelValues(at, verb).Observe(e.Elapsed.Seconds())
		}
	}, o.Served)
	o.Began = observer.Chain(func(_ context.Context, e proxy.Event) {
		p.streams.WithLabelValues(m.proxied(e), verb(e.Verb)).Inc()
	}, o.Began)
	return o
}

func (m *Metrics) proxied(e proxy.Event) string {
	if e.All {
		return "*"
	}
	return m.regionOf(e.Region)
}
