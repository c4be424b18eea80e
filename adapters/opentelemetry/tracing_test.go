// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package atollopentelemetry

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	oteltrace "go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/account/v1alpha1"
	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func provider() (*trace.TracerProvider, *tracetest.SpanRecorder) {
	spans := tracetest.NewSpanRecorder()
	return trace.NewTracerProvider(trace.WithSpanProcessor(spans)), spans
}

func attributes(kvs []attribute.KeyValue) map[string]string {
	all := map[string]string{}
	for _, kv := range kvs {
		all[string(kv.Key)] = kv.Value.String()
	}
	return all
}

// The add of an Account over three peers is one trace: the caller's span has a child for each request to each peer, and the
// events of the protocol.
func TestOneTraceOfAFanout(t *testing.T) {
	tp, spans := provider()
	tracing := New(Options{TracerProvider: tp})
	names := []region.PeerName{"ap", "eu", "us"}
	var conns []*region.Conn
	crds, err := config.TypedCRDs()
	require.NoError(t, err)
	for _, name := range names {
		server := regiontest.NewServer(regiontest.Options{CRDs: crds})
		t.Cleanup(server.Close)
		credentials, err := region.FromConfig(server.Config())
		require.NoError(t, err)
		conn, err := region.NewConn(region.Peer{Name: name, Credentials: credentials}, region.ConnOptions{Observer: tracing.Region(nil)})
		require.NoError(t, err)
		t.Cleanup(conn.Close)
		conns = append(conns, conn)
	}
	log, err := wal.Open(filepath.Join(t.TempDir(), "log.db"), wal.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, log.Close()) })
	ops, err := fanout.New(region.Fixed(conns...), log, fanout.Options{Kinds: account.Kinds(), Observer: tracing.Fanout(nil)})
	require.NoError(t, err)
	require.NoError(t, ops.InitPeers(t.Context()))

	ctx, caller := tp.Tracer("test").Start(t.Context(), "caller")
	acme := &v1alpha1.Account{}
	acme.Name = "acme"
	acme.Spec.Roles = []v1alpha1.AccountRole{v1alpha1.AccountTenant}
	op, err := ops.Add(ctx, acme, fanout.AddOptions{})
	require.NoError(t, err)
	require.NoError(t, ops.Wait(ctx))
	caller.End()

	writes := map[string]int{}
	var whole trace.ReadOnlySpan
	for _, span := range spans.Ended() {
		if span.SpanContext().TraceID() != caller.SpanContext().TraceID() {
			continue
		}
		if span.Name() == "caller" {
			whole = span
			continue
		}
		require.Equal(t, oteltrace.SpanKindClient, span.SpanKind())
		require.Equal(t, caller.SpanContext().SpanID(), span.Parent().SpanID())
		require.Equal(t, codes.Unset, span.Status().Code, "%s %v", span.Name(), span.Attributes())
		if span.Name() == "POST" {
			a := attributes(span.Attributes())
			require.Equal(t, "201", a["http.response.status_code"])
			writes[a["k8s.cluster.name"]]++
		}
	}
	require.NotNil(t, whole)
	for _, name := range names {
		require.Positive(t, writes[string(name)], "the creates in %s", name)
	}
	var verbs []string
	for _, e := range whole.Events() {
		a := attributes(e.Attributes)
		require.Equal(t, op.ID, a["atoll.operation"])
		if e.Name == "atoll.fanout.end" {
			require.Equal(t, []string{"Account.catalog.kubecarrier.io", "acme", string(fanout.Done)}, []string{a["atoll.kind"], a["atoll.name"], a["atoll.state"]})
		}
		verbs = append(verbs, a["atoll.verb"])
	}
	for _, verb := range []string{"begin", "create", "put", ""} {
		require.True(t, slices.Contains(verbs, verb), "%q of %v", verb, verbs)
	}
}

// A request without an answer is an error with its cause. An answer such as 409 is no error.
func TestFailedRequests(t *testing.T) {
	tp, spans := provider()
	o := New(Options{TracerProvider: tp}).Region(nil)
	refused := &net.OpError{Op: "dial", Err: errors.New("secret-host: connection refused")}
	for _, c := range []struct {
		status int
		err    error
		want   string
	}{
		{200, nil, ""}, {409, nil, ""}, {503, nil, "server error"}, {0, errors.New("secret"), "other"}, {0, refused, ""},
	} {
		_, done := o.Call(t.Context(), region.CallEvent{Peer: "eu", Method: "GET"})
		done(c.status, c.err)
		ended := spans.Ended()
		span := ended[len(ended)-1]
		a := attributes(span.Attributes())
		require.Equal(t, "eu", a["k8s.cluster.name"])
		if c.err == nil || c.want != "" {
			require.Equal(t, c.want, a["error.type"])
			require.Equal(t, c.want, span.Status().Description)
		}
		require.Equal(t, c.err != nil || c.status >= 500, span.Status().Code == codes.Error)
		require.NotContains(t, span.Status().Description+a["error.type"], "secret")
	}
}

// Observers that are passed on get each event, and fields that the package does not use.
func TestChain(t *testing.T) {
	tp, _ := provider()
	tracing := New(Options{TracerProvider: tp})
	var got []string
	type key struct{}
	peers := tracing.Region(&region.Observer{
		Probed: func(context.Context, region.ProbeEvent) { got = append(got, "probed") },
		Call: func(ctx context.Context, _ region.CallEvent) (context.Context, func(int, error)) {
			require.True(t, oteltrace.SpanContextFromContext(ctx).IsValid(), "it is called within the span")
			return context.WithValue(ctx, key{}, 1), func(int, error) { got = append(got, "called") }
		},
	})
	peers.Probed(t.Context(), region.ProbeEvent{})
	ctx, done := peers.Call(t.Context(), region.CallEvent{Method: "GET"})
	require.Equal(t, 1, ctx.Value(key{}))
	done(200, nil)
	ops := tracing.Fanout(&fanout.Observer{
		Step:    func(context.Context, fanout.StepEvent) { got = append(got, "step") },
		End:     func(context.Context, fanout.EndEvent) { got = append(got, "end") },
		Durable: func(context.Context, fanout.EndEvent) { got = append(got, "durable") },
	})
	ops.Step(t.Context(), fanout.StepEvent{})
	ops.End(t.Context(), fanout.EndEvent{})
	ops.Durable(t.Context(), fanout.EndEvent{})
	require.Equal(t, []string{"probed", "called", "step", "end", "durable"}, got)
	require.NotNil(t, New(Options{}).Region(nil).Call, "the global provider")
}
