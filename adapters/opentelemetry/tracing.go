// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package atollopentelemetry

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/internal/observer"
	"github.com/atoll-dev/atoll/region"
)

// scope is the name of the instrumentation.
const scope = "github.com/atoll-dev/atoll"

// Options configure a Tracing. The zero value works.
type Options struct {
	// TracerProvider makes the spans. Nil means the global one, otel.GetTracerProvider.
	TracerProvider trace.TracerProvider
}

// Tracing records requests to peers and commands of fan-out in traces. Use New. It is safe for concurrent use.
type Tracing struct{ tracer trace.Tracer }

// New returns a Tracing. It does no I/O and starts no goroutine.
func New(opts Options) *Tracing {
	if opts.TracerProvider == nil {
		opts.TracerProvider = otel.GetTracerProvider()
	}
	return &Tracing{opts.TracerProvider.Tracer(scope)}
}

// Region returns an Observer for region.Options and region.ConnOptions. Each request to a peer is a span of the kind
// client below the span of the request's context. It has the attributes k8s.cluster.name (the peer),
// http.request.method and http.response.status_code. It ends when the peer has answered, which for a watch is before the
// first event. The Observer calls next too; next may be nil.
func (t *Tracing) Region(next *region.Observer) *region.Observer {
	o := observer.Copy(next)
	inner := o.Call
	o.Call = func(ctx context.Context, e region.CallEvent) (context.Context, func(int, error)) {
		ctx, span := t.tracer.Start(ctx, e.Method, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
			attribute.String("k8s.cluster.name", string(e.Peer)), attribute.String("http.request.method", e.Method),
		))
		var done func(int, error)
		if inner != nil {
			ctx, done = inner(ctx, e)
		}
		return ctx, func(status int, err error) {
			if status > 0 {
				span.SetAttributes(attribute.Int("http.response.status_code", status))
			}
			if cause := causeOf(status, err); cause != "" {
				span.SetAttributes(attribute.String("error.type", cause))
				span.SetStatus(codes.Error, cause)
			}
			span.End()
			if done != nil {
				done(status, err)
			}
		}
	}
	return o
}

// causeOf returns why a request failed, without names of objects; empty if the peer answered it. An answer such as 404
// or 409 is no failure: it is an ordinary result of a protocol that compares before it writes.
func causeOf(status int, err error) string {
	switch {
	case err != nil && region.CauseOf(err) != region.CauseUnknown:
		return string(region.CauseOf(err))
	case err != nil:
		return "other"
	case status >= 500:
		return string(region.CauseServer)
	default:
		return ""
	}
}

// Fanout returns an Observer for fanout.Options. It adds an event to the span of the operation's context for each command
// of the protocol, with its verb, peer and answer, and one for the end of the operation, with its ID and state. The
// Observer calls next too; next may be nil.
func (t *Tracing) Fanout(next *fanout.Observer) *fanout.Observer {
	o := observer.Copy(next)
	step, end := o.Step, o.End
	o.Step = func(ctx context.Context, e fanout.StepEvent) {
		if span := trace.SpanFromContext(ctx); e.Done && span.IsRecording() {
			span.AddEvent("atoll.fanout.command", trace.WithAttributes(
				attribute.String("atoll.operation", e.Operation), attribute.String("atoll.action", e.Action), attribute.String("atoll.verb", e.Verb),
				attribute.String("k8s.cluster.name", string(e.Peer)), attribute.String("atoll.stage", e.Stage), attribute.String("atoll.code", e.Code),
			))
		}
		if step != nil {
			step(ctx, e)
		}
	}
	o.End = func(ctx context.Context, e fanout.EndEvent) {
		if span := trace.SpanFromContext(ctx); span.IsRecording() {
			span.AddEvent("atoll.fanout.end", trace.WithAttributes(
				attribute.String("atoll.operation", e.Operation), attribute.String("atoll.kind", e.Kind.String()), attribute.String("atoll.state", string(e.State)),
				attribute.String("k8s.namespace.name", e.Key.Namespace), attribute.String("atoll.name", e.Key.Name), attribute.Bool("atoll.durable", e.Durable),
			))
		}
		if end != nil {
			end(ctx, e)
		}
	}
	return o
}
