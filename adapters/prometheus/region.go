// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package atollprometheus

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-dev/atoll/internal/observer"
	"github.com/atoll-dev/atoll/region"
)

type regionMetrics struct {
	group
	requests      *prometheus.HistogramVec
	failures      *prometheus.CounterVec
	probes        *prometheus.HistogramVec
	probeFailures *prometheus.CounterVec
	rotations     *prometheus.CounterVec
}

func (r *regionMetrics) init(b *buckets) *group {
	r.requests = r.histograms(b, "atoll_peer_request_seconds", "Time until a peer answered; code is 0 if it did not.", prometheus.DefBuckets, "peer", "method", "code")
	r.failures = r.counters("atoll_peer_request_failures_total", "Requests that a peer did not answer, by cause.", "peer", "cause")
	r.probes = r.histograms(b, "atoll_peer_probe_duration_seconds", "Duration of health probes of a peer.", requestBounds(), "peer", "outcome")
	r.probeFailures = r.counters("atoll_peer_probe_failures_total", "Health probes of a peer that failed, by cause.", "peer", "cause")
	r.rotations = r.counters("atoll_peer_rotations_total", "Attempts to replace the credentials of a peer, by outcome.", "peer", "outcome")
	return &r.group
}

// Region returns an Observer for region.Options, which counts and measures requests to peers, probes and rotations. It
// calls next after each update; next may be nil.
func (m *Metrics) Region(next *region.Observer) *region.Observer {
	m.region.used.Store(true)
	o := observer.Copy(next)
	o.Probed = observer.Chain(m.region.probed, o.Probed)
	o.Rotated = observer.Chain(m.region.rotated, o.Rotated)
	o.Call = m.region.call(o.Call)
	return o
}

func (r *regionMetrics) probed(_ context.Context, e region.ProbeEvent) {
	r.probes.WithLabelValues(string(e.Peer), outcome(e.Err)).Observe(e.Elapsed.Seconds())
	if e.Err != nil {
		r.probeFailures.WithLabelValues(string(e.Peer), cause(e.Err)).Inc()
	}
}

func (r *regionMetrics) rotated(_ context.Context, e region.RotateEvent) {
	r.rotations.WithLabelValues(string(e.Peer), outcome(e.Err)).Inc()
}

func (r *regionMetrics) call(next func(context.Context, region.CallEvent) (context.Context, func(int, error))) func(context.Context, region.CallEvent) (context.Context, func(int, error)) {
	return func(ctx context.Context, e region.CallEvent) (context.Context, func(int, error)) {
		var done func(int, error)
		if next != nil {
			ctx, done = next(ctx, e)
		}
		begun := time.Now()
		return ctx, func(status int, err error) {
			r.requests.WithLabelValues(string(e.Peer), method(e.Method), code(status)).Observe(time.Since(begun).Seconds())
			if err != nil {
				r.failures.WithLabelValues(string(e.Peer), cause(err)).Inc()
			}
			if done != nil {
				done(status, err)
			}
		}
	}
}
