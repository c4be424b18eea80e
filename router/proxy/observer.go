// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/atoll-dev/atoll/internal/requestinfo"
	"github.com/atoll-dev/atoll/region"
)

// Observer receives events of the Proxy. A nil Observer and nil fields are valid. Hooks are called synchronously
// without a lock held, possibly from many goroutines, and must return quickly.
type Observer struct {
	// Served is called when a request, watch or stream has ended.
	Served func(ctx context.Context, e Event)
	// Began is called when a watch, a log or a stream has begun: its region, or the server of all regions, has accepted it. The
	// Event has no Elapsed yet. Served follows at its end.
	Began func(ctx context.Context, e Event)
}

// Event is a request that has ended, or a stream that has begun. It holds no secret.
type Event struct {
	Region region.Key // for /peers, the peer's name and the provider "peer"; zero if the path names no region
	All    bool       // the request was about all regions: Protect served it
	Method string

	// Path is the path at the region, decoded and without the query, as in /api/v1/pods. The fields that follow are what an
	// API server makes of it. Verb is get, list, watch, create and so on; for a path without a resource, it is the method in
	// lower case, and the other fields are empty.
	Path                         string
	Verb                         string
	Resource                     schema.GroupVersionResource
	Subresource, Namespace, Name string

	AuditID  string // the same in the peer's audit log
	Code     int    // zero if the client disconnected before it got a code
	Upgraded bool
	Elapsed  time.Duration
	Err      error // why the proxy itself refused the request; it names peers, so do not show it to callers

	longRunning bool
}

// newEvent returns the Event of a request that has begun. It ignores the first two segments of the path.
func newEvent(r *http.Request) *Event {
	e := &Event{Method: r.Method, AuditID: auditID(r.Header)}
	_, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	_, path, _ := strings.Cut(rest, "/")
	e.Path, _ = url.PathUnescape("/" + path)                       // no error: the whole path was decoded before
	info, _ := requestinfo.Parse(r.Method, e.Path, r.URL.RawQuery) // an invalid path is left to the peer to refuse
	e.Verb, e.Resource = info.Verb, schema.GroupVersionResource{Group: info.Group, Version: info.Version, Resource: info.Resource}
	e.Subresource, e.Namespace, e.Name = info.Subresource, info.Namespace, info.Name
	e.longRunning = info.IsLongRunning()
	return e
}

func (o *Observer) served(ctx context.Context, e Event) {
	if o != nil && o.Served != nil {
		o.Served(ctx, e)
	}
}

// began reports a request that is long-running and was accepted.
func (o *Observer) began(ctx context.Context, e *Event) {
	accepted := e.Code == http.StatusOK && e.longRunning || e.Upgraded
	if accepted && o != nil && o.Began != nil {
		o.Began(ctx, *e)
	}
}

// auditID returns the audit ID in the client's header if that ID is valid, otherwise a new one.
func auditID(h http.Header) string {
	id := h.Get("Audit-Id")
	plain := !strings.ContainsFunc(id, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-'
	})
	if id == "" || len(id) > 64 || !plain {
		return string(uuid.NewUUID())
	}
	return id
}

// loggable returns the path of r for a log line, without the query, which may contain a command.
func loggable(r *http.Request) string { return r.URL.EscapedPath() }

// quiet returns a logger for errors that occur after the answer has begun.
func quiet(logger logr.Logger, e *Event) *log.Logger {
	return log.New(&complaints{logger.V(1), e}, "", 0)
}

type complaints struct {
	logger logr.Logger
	event  *Event
}

// Write logs that an error occurred, without its text, which may quote the peer.
func (c *complaints) Write(p []byte) (int, error) {
	c.logger.Info("the exchange was cut short", "audit", c.event.AuditID, "region", fmt.Sprint(c.event.Region))
	return len(p), nil
}
