// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package atollopentelemetry records the work of Atoll in traces of OpenTelemetry, and measures when credentials expire and
// how long operations stay open.
//
//	tracing := atollopentelemetry.New(atollopentelemetry.Options{})
//	ring, err := region.NewRing(source, region.Options{Observer: tracing.Region(nil)})
//	...
//	ops, err := fanout.New(ring, log, fanout.Options{Observer: tracing.Fanout(nil)})
//	...
//	ctx, span := tracer.Start(ctx, "create database")
//	_, err = ops.Add(ctx, db, fanout.AddOptions{Target: "eu-west"})
//	span.End()
//
// The span then has one child for each request to each peer, and one event for each command of the protocol and for the
// end of the operation: one trace of a fan-out across all peers.
//
// NewMetrics registers the gauges. Package adapters/prometheus has these and all other metrics; a bridge of OpenTelemetry
// can read them from its registry.
//
// # Guaranteed
//
//   - No span and no event has a token, the content of an object, or the text of an error.
//   - An Observer that is passed on gets every event.
//   - Nothing is recorded, and no attribute is computed for commands, if the trace is not sampled.
//
// # Not guaranteed
//
//   - That work in the background is in the trace: the span of the caller may have ended, and recovery and sweeps have no
//     caller. Their requests are spans of their own.
//   - That the spans of API servers join the trace: requests to peers carry no header traceparent.
package atollopentelemetry
