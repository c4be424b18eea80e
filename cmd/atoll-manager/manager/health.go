// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"

	"github.com/atoll-dev/atoll/region"
)

// serveHealth serves /livez, /readyz and /metrics until ctx ends.
func (m *Manager) serveHealth(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler: m.healthHandler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(logr.ToSlogHandler(logr.FromContextOrDiscard(ctx).WithName("http").V(1)), slog.LevelInfo),
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (m *Manager) healthHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		text, ready := m.readiness(time.Now())
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		if !ready {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = w.Write([]byte(text))
	})
	mux.Handle("GET /metrics", m.metrics.handler())
	return mux
}

// readiness returns the answer of /readyz. A peer that does not answer does not make the replica unready: another replica
// would not reach it either.
func (m *Manager) readiness(now time.Time) (text string, ready bool) {
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
	check("member", len(m.members.Live()) > 0, "this replica is not a member of its group, so it owns no work")
	ring := m.loops.ring.Load()
	if ring == nil {
		b.WriteString("[+]peers: the installation is not a master\n")
		return b.String(), ready
	}
	check("peers", isClosed(ring.Synced()), "the Peers of the central plane were not read yet")
	for p := range ring.Snapshot().Peers() {
		fmt.Fprintf(&b, "%s\n", peerLine(ring, p.Name, now))
	}
	return b.String(), ready
}

// peerLine returns the line of a peer, without its address.
func peerLine(ring *region.Ring, name region.PeerName, now time.Time) string {
	conn, err := ring.Conn(name)
	if err != nil {
		return fmt.Sprintf("[!]peer %s: no connection", name)
	}
	health := conn.Health()
	if health.State == region.Healthy {
		return fmt.Sprintf("[+]peer %s ok", name)
	}
	return fmt.Sprintf("[!]peer %s: %s for %v", name, health.State, now.Sub(health.Since).Truncate(time.Second))
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
