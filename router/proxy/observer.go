// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/atoll-dev/atoll/region"
)

// Observer receives what happens. nil, and any nil field, is fine. Hooks are called synchronously without a lock held,
// possibly from many goroutines, and must return quickly.
type Observer struct {
	// Served is called when a request, watch or stream has ended.
	Served func(ctx context.Context, e Event)
}

// Event is a request that has ended. It holds nothing secret.
type Event struct {
	Region   region.Key // of /peers, the peer's name and the provider "peer"; zero if none was asked for
	Method   string
	AuditID  string // the same in the peer's audit log
	Code     int    // zero if the client was gone before there was one
	Upgraded bool
	Elapsed  time.Duration
	Err      error // why the proxy itself refused; it names peers, and is not for callers
}

func (o *Observer) served(ctx context.Context, e Event) {
	if o != nil && o.Served != nil {
		o.Served(ctx, e)
	}
}

// auditID is the client's, if it is one, or a new one.
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

// loggable is what may be said of r: not the query, since commands are in it.
func loggable(r *http.Request) string { return r.URL.EscapedPath() }

// quiet is where an exchange complains of what went wrong after the answer had begun.
func quiet(logger logr.Logger, e *Event) *log.Logger {
	return log.New(&complaints{logger.V(1), e}, "", 0)
}

type complaints struct {
	logger logr.Logger
	event  *Event
}

// Write notes that there was a complaint, and not its words: they can quote the peer.
func (c *complaints) Write(p []byte) (int, error) {
	c.logger.Info("the exchange was cut short", "audit", c.event.AuditID, "region", fmt.Sprint(c.event.Region))
	return len(p), nil
}
