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

// served reports a request that has ended: in the metrics, the audit log and the log.
func (g *Gateway) served(ctx context.Context, e proxy.Event) {
	r := recordOf(ctx)
	g.metrics.Served(e, r.longRunning)
	request := audit.Request{Event: e, HTTP: r.http, Received: r.received}
	user, acting := "", ""
	if c := r.caller; c != nil {
		request.User, request.Acting, acting = c.User, c.Acting, c.Acting.Name
		if c.User != nil {
			user = c.User.GetName()
		}
	}
	g.audit.Add(audit.EventOf(request))
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
