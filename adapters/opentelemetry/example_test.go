// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package atollopentelemetry_test

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	atollopentelemetry "github.com/atoll-dev/atoll/adapters/opentelemetry"
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
