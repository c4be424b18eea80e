// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package atollprometheus

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-dev/atoll/internal/observer"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router"
)

type routerMetrics struct {
	group
	requests *prometheus.CounterVec
	resolves *prometheus.HistogramVec
	saves    *prometheus.CounterVec
	routes   prometheus.Gauge
	waits    *prometheus.HistogramVec
}

func (r *routerMetrics) init(b *buckets) *group {
	r.requests = r.counters("atoll_router_requests_total", "Requests of the router's clients, by peer (empty if none was found) and outcome of the look-up.", "peer", "outcome")
	r.resolves = r.histograms(b, "atoll_router_resolve_duration_seconds", "Duration of questions to the Resolver, by outcome.", requestBounds(), "outcome")
	r.saves = r.counters("atoll_router_cache_writes_total", "Attempts to write the cache of routes, by outcome.", "outcome")
	r.routes = r.gauge("atoll_router_cached_routes", "Routes in the cache after its last successful write.")
	r.waits = r.histograms(b, "atoll_router_budget_wait_seconds", "Time that requests waited for the budget of their region; outcome is success, busy or canceled.", requestBounds(), "region", "outcome")
	return &r.group
}

// Router returns an Observer for router.Options, which counts look-ups and measures waits for budgets. It calls next
// after each update; next may be nil.
func (m *Metrics) Router(next *router.Observer) *router.Observer {
	r := &m.router
	r.used.Store(true)
	o := observer.Copy(next)
	o.Routed = observer.Chain(func(_ context.Context, e router.RouteEvent) {
		peer := e.Peer
		if e.Err != nil {
			peer = ""
		}
		r.requests.WithLabelValues(string(peer), routeOutcome(e.Err)).Inc()
	}, o.Routed)
	o.Resolved = observer.Chain(func(_ context.Context, e router.ResolveEvent) {
		r.resolves.WithLabelValues(routeOutcome(e.Err)).Observe(e.Elapsed.Seconds())
	}, o.Resolved)
	o.Saved = observer.Chain(func(_ context.Context, e router.SaveEvent) {
		r.saves.WithLabelValues(outcome(e.Err)).Inc()
		if e.Err == nil {
			r.routes.Set(float64(e.Routes))
		}
	}, o.Saved)
	o.Waited = observer.Chain(func(_ context.Context, e router.WaitEvent) {
		r.waits.WithLabelValues(m.regionOf(e.Region), waitOutcome(e.Err)).Observe(e.Elapsed.Seconds())
	}, o.Waited)
	return o
}

func routeOutcome(err error) string {
	switch {
	case errors.Is(err, region.ErrUnknownRegion):
		return "unknown_region"
	case errors.Is(err, region.ErrUnknownPeer):
		return "unknown_peer"
	default:
		return outcome(err)
	}
}

func waitOutcome(err error) string {
	switch {
	case err == nil:
		return success
	case errors.Is(err, router.ErrBusy):
		return "busy"
	default:
		return "canceled"
	}
}
