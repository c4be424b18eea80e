// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-logr/logr"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/atoll-dev/atoll/cmd/atoll-gateway/internal/audit"
	"github.com/atoll-dev/atoll/cmd/atoll-gateway/internal/authn"
	"github.com/atoll-dev/atoll/internal/requestinfo"
	"github.com/atoll-dev/atoll/router/proxy"
)

// record is what the gateway knows of one request. Its request alone uses it.
type record struct {
	http        *http.Request
	received    time.Time
	longRunning bool
	caller      *authn.Caller // nil: not authenticated
}

type recordKey struct{}

func newRecord(r *http.Request) *record {
	parts := strings.SplitN(r.URL.EscapedPath(), "/", 4)
	path, _ := url.PathUnescape("/" + parts[len(parts)-1])
	info, _ := requestinfo.Parse(r.Method, path, r.URL.RawQuery) // invalid paths are refused later
	return &record{http: r, received: time.Now(), longRunning: info.IsLongRunning() || r.Header.Get("Upgrade") != ""}
}

// recordOf returns the record in ctx. Only requests of ServeHTTP have one.
func recordOf(ctx context.Context) *record {
	if r, ok := ctx.Value(recordKey{}).(*record); ok {
		return r
	}
	return &record{}
}

// audited returns the request as its audit event describes it.
func (r *record) audited(e proxy.Event) audit.Request {
	request := audit.Request{Event: e, HTTP: r.http, Received: r.received}
	if c := r.caller; c != nil {
		request.User, request.Acting = c.User, c.Acting
	}
	return request
}

// began reports a watch or a stream that has begun, in the audit log: it may last for hours.
func (g *Gateway) began(ctx context.Context, e proxy.Event) {
	r := recordOf(ctx)
	e.Elapsed = time.Since(r.received)
	event := audit.EventOf(r.audited(e))
	event.Stage = auditv1.StageResponseStarted
	g.audit.Add(event)
}

// served reports a request that has ended: in the metrics, the audit log and the log.
func (g *Gateway) served(ctx context.Context, e proxy.Event) {
	r := recordOf(ctx)
	g.metrics.Served(e, r.longRunning)
	g.audit.Add(audit.EventOf(r.audited(e)))
	user, acting := "", ""
	if c := r.caller; c != nil {
		acting = c.Acting.Name
		if c.User != nil {
			user = c.User.GetName()
		}
	}
	if !*g.config.Log.Requests {
		return
	}
	line := []any{
		"audit", e.AuditID, "user", user, "acting", acting, "verb", e.Verb, "resource", e.Resource.GroupResource().String(),
		"subresource", e.Subresource, "namespace", e.Namespace, "name", e.Name, "region", audit.Region(e), "code", e.Code,
		"latency", e.Elapsed.String(), "source", r.http.RemoteAddr,
	}
	if e.Err != nil {
		line = append(line, "refused", e.Err.Error())
	}
	logr.FromContextOrDiscard(ctx).WithName("access").Info("request", line...)
}
