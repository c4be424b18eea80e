// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package atollopentelemetry_test

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	atollopentelemetry "github.com/atoll-dev/atoll/adapters/opentelemetry"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// Each request to a peer is a span below the span of its caller.
func ExampleNew() {
	spans := tracetest.NewSpanRecorder() // a real program exports them
	provider := trace.NewTracerProvider(trace.WithSpanProcessor(spans))
	tracing := atollopentelemetry.New(atollopentelemetry.Options{TracerProvider: provider})
	if err := readIdentity(context.Background(), provider, tracing); err != nil {
		fmt.Println(err)
	}
	for _, span := range spans.Ended() {
		fmt.Println(span.Name(), span.Parent().IsValid())
	}
	// Output:
	// GET true
	// caller false
}

func readIdentity(ctx context.Context, provider *trace.TracerProvider, tracing *atollopentelemetry.Tracing) error {
	server := regiontest.NewServer(regiontest.Options{})
	defer server.Close()
	credentials, err := region.FromConfig(server.Config())
	if err != nil {
		return err
	}
	eu, err := region.NewConn(region.Peer{Name: "eu", Credentials: credentials}, region.ConnOptions{Observer: tracing.Region(nil)})
	if err != nil {
		return err
	}
	defer eu.Close()
	ctx, span := provider.Tracer("example").Start(ctx, "caller")
	defer span.End()
	_, err = eu.UID(ctx)
	return err
}

// A program passes the Observer to its Coordinator, and its ring as the Directory.
func ExampleNewMetrics() {
	reader := metric.NewManualReader() // a real program exports periodically
	metrics, err := atollopentelemetry.NewMetrics(atollopentelemetry.MetricsOptions{MeterProvider: metric.NewMeterProvider(metric.WithReader(reader))})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = metrics.Unregister() }()
	observer := metrics.Fanout(nil)

	observer.Backlog(context.Background(), fanout.BacklogEvent{Open: 1, Oldest: time.Unix(1767225600, 0)}) // as the Coordinator does
	var data metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &data); err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range data.ScopeMetrics[0].Metrics {
		fmt.Println(m.Name)
	}
	// Output:
	// atoll.fanout.open_operations
	// atoll.fanout.oldest_open_operation_time
}
