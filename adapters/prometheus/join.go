// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package atollprometheus

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/atoll-dev/atoll/internal/observer"
	"github.com/atoll-dev/atoll/syncer/join"
)

type joinMetrics struct {
	group
	requests *prometheus.CounterVec
	expired  prometheus.Counter
	renewals *prometheus.CounterVec
	expiry   *prometheus.GaugeVec
}

func (j *joinMetrics) init() *group {
	j.requests = j.counters("atoll_cluster_certificate_requests_total", "Requests of clusters for certificates, by the decision.", "decision")
	j.expired = j.counter("atoll_cluster_tokens_expired_total", "Tokens to join that were deleted because they were never used.")
	j.renewals = j.counters("atoll_cluster_certificate_renewals_total", "Attempts of this cluster to get a certificate, by outcome.", "outcome")
	j.expiry = j.gauges("atoll_cluster_certificate_expiry_timestamp_seconds", "When the certificate of this cluster expires, as of the last attempt to get one.")
	return &j.group
}

// Join returns an Observer for join.ApproverOptions and join.RenewerOptions, which counts requests for certificates and
// shows when the certificate of this cluster expires. The gauge is for one Renewer. The Observer calls next after each
// update; next may be nil.
func (m *Metrics) Join(next *join.Observer) *join.Observer {
	j := &m.join
	j.used.Store(true)
	o := observer.Copy(next)
	o.Approved = observer.Chain(func(context.Context, join.DecideEvent) { j.requests.WithLabelValues("approved").Inc() }, o.Approved)
	o.Denied = observer.Chain(func(context.Context, join.DecideEvent) { j.requests.WithLabelValues("denied").Inc() }, o.Denied)
	o.Expired = observer.Chain(func(context.Context, join.ExpireEvent) { j.expired.Inc() }, o.Expired)
	o.Renewed = observer.Chain(func(_ context.Context, e join.RenewEvent) {
		j.renewals.WithLabelValues(outcome(e.Err)).Inc()
		if !e.Expires.IsZero() { // an approver has no certificate, and so no gauge, which would show the year 1970
			j.expiry.WithLabelValues().Set(float64(e.Expires.Unix()))
		}
	}, o.Renewed)
	return o
}
