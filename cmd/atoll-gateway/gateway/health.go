// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/atoll-dev/atoll/region"
)

// healthHandler serves /livez, /readyz and /metrics.
func (g *Gateway) healthHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		text, ready := g.readiness(time.Now())
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		if !ready {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = w.Write([]byte(text))
	})
	mux.Handle("GET /metrics", g.metrics.Handler())
	return mux
}

// readiness returns the answer of /readyz. A region that does not answer does not make the gateway unready: the others
// would lose it too.
func (g *Gateway) readiness(now time.Time) (text string, ready bool) {
	var b strings.Builder
	ready = true
	check := func(name string, ok bool, why string) {
		if ok {
			fmt.Fprintf(&b, "[+]%s ok\n", name)
			return
		}
		ready = false
		fmt.Fprintf(&b, "[-]%s failed: %s\n", name, why)
	}
	check("draining", !isClosed(g.draining), "the gateway is ending")
	check("source", isClosed(g.ring.Synced()), "no peers were read yet")
	reason := ""
	err := g.authn.Ready()
	if err != nil {
		reason = err.Error()
	}
	check("authentication", err == nil, reason)
	if since, stale := g.keptSince(); stale {
		fmt.Fprintf(&b, "[!]source: cannot be read; the peers are those of %s\n", since.UTC().Format(time.RFC3339))
	}
	for key, peer := range g.ring.Snapshot().Regions() {
		fmt.Fprintf(&b, "%s\n", g.regionLine(key, peer, now))
	}
	return b.String(), ready
}

// regionLine returns the line of a region, without addresses.
func (g *Gateway) regionLine(key region.Key, peer *region.Peer, now time.Time) string {
	conn, err := g.ring.Conn(peer.Name)
	if err != nil {
		return fmt.Sprintf("[!]region %s: no connection", key)
	}
	health := conn.Health()
	if health.State == region.Healthy {
		return fmt.Sprintf("[+]region %s ok", key)
	}
	return fmt.Sprintf("[!]region %s: %s for %v", key, health.State, now.Sub(health.Since).Truncate(time.Second))
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
