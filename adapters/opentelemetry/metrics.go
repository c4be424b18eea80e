// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package atollopentelemetry

import (
	"context"
	"fmt"
	"sync/atomic"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/internal/observer"
	"github.com/atoll-dev/atoll/region"
)

// MetricsOptions configure Metrics. The zero value works, but without the metrics of peers.
type MetricsOptions struct {
	// MeterProvider provides the Meter that creates the gauges. Nil means the global one, otel.GetMeterProvider.
	MeterProvider metric.MeterProvider

	// Directory returns the peers whose credentials are measured. It is called at each collection, so it must return
	// quickly. Its result may be nil while there are no peers, and may change.
	Directory func() region.Directory
}

// Metrics are gauges by which a person can act in time: when credentials expire, and since when an operation is open.
// Package adapters/prometheus has all metrics. Use NewMetrics to create it. It is safe for concurrent use.
type Metrics struct {
	opts         MetricsOptions
	expiry       metric.Float64ObservableGauge
	open         metric.Int64ObservableGauge
	oldest       metric.Float64ObservableGauge
	backlog      atomic.Pointer[fanout.BacklogEvent]
	registration metric.Registration
}

// NewMetrics registers these gauges in the scope github.com/atoll-dev/atoll. Times are in seconds since 1970.
//
//   - atoll.peer.credentials.expiry_time: when the credential for a peer that expires first does so. The attribute
//     k8s.cluster.name is the peer. There is no value for credential plugins, and for tokens that do not show their expiry.
//   - atoll.fanout.open_operations: the number of operations that are open in the log.
//   - atoll.fanout.oldest_open_operation_time: when the oldest of them began. There is no value if none is open.
//
// The gauges of fanout have values only if a Coordinator has the Observer of Fanout. NewMetrics returns the error of the
// MeterProvider. Call Unregister when the metrics are no longer wanted.
func NewMetrics(opts MetricsOptions) (*Metrics, error) {
	if opts.MeterProvider == nil {
		opts.MeterProvider = otel.GetMeterProvider()
	}
	m := &Metrics{opts: opts}
	meter := opts.MeterProvider.Meter(scope)
	var err error
	if m.expiry, err = meter.Float64ObservableGauge("atoll.peer.credentials.expiry_time", metric.WithUnit("s"),
		metric.WithDescription("When the first of the credentials for the peer expires.")); err != nil {
		return nil, fmt.Errorf("atollopentelemetry: metrics: %w", err)
	}
	if m.open, err = meter.Int64ObservableGauge("atoll.fanout.open_operations", metric.WithUnit("{operation}"),
		metric.WithDescription("Operations that are open in the log after the last recovery.")); err != nil {
		return nil, fmt.Errorf("atollopentelemetry: metrics: %w", err)
	}
	if m.oldest, err = meter.Float64ObservableGauge("atoll.fanout.oldest_open_operation_time", metric.WithUnit("s"),
		metric.WithDescription("When the oldest operation that is open in the log began.")); err != nil {
		return nil, fmt.Errorf("atollopentelemetry: metrics: %w", err)
	}
	if m.registration, err = meter.RegisterCallback(m.observe, m.expiry, m.open, m.oldest); err != nil {
		return nil, fmt.Errorf("atollopentelemetry: metrics: %w", err)
	}
	return m, nil
}

// Unregister ends the collection. It returns the error of the MeterProvider.
func (m *Metrics) Unregister() error { return m.registration.Unregister() }

// Fanout returns an Observer for fanout.Options, from which Metrics get the open operations of the log. The Observer also
// calls next, which may be nil. Use it for one Coordinator: the values of a second one would replace those of the first.
func (m *Metrics) Fanout(next *fanout.Observer) *fanout.Observer {
	o := observer.Copy(next)
	o.Backlog = observer.Chain(func(_ context.Context, e fanout.BacklogEvent) { m.backlog.Store(&e) }, o.Backlog)
	return o
}

func (m *Metrics) observe(_ context.Context, o metric.Observer) error {
	if e := m.backlog.Load(); e != nil {
		o.ObserveInt64(m.open, int64(e.Open))
		if !e.Oldest.IsZero() {
			o.ObserveFloat64(m.oldest, float64(e.Oldest.Unix()))
		}
	}
	if m.opts.Directory == nil {
		return nil
	}
	d := m.opts.Directory()
	if d == nil {
		return nil
	}
	for peer := range d.Snapshot().Peers() {
		conn, err := d.Conn(peer.Name)
		if err != nil {
			continue // the peer has just left, or has no credentials
		}
		if expires := conn.Health().Expires; !expires.IsZero() {
			o.ObserveFloat64(m.expiry, float64(expires.Unix()), metric.WithAttributes(attribute.String("k8s.cluster.name", string(peer.Name))))
		}
	}
	return nil
}
