// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/atoll-dev/atoll/region"
)

const (
	recentContact = 10 * time.Second // for which a recent answer of a peer outweighs failed probes
	retryUnwell   = time.Second      // between requests that are sent to a silent peer
	maxUnwell     = 4096             // regions of which last is remembered
)

// silence refuses requests to a peer that its probes find silent, so that callers do not wait for it. Since the
// probes may be stale, one request a second is sent all the same, and its answer ends the refusal.
type silence struct {
	mu   sync.Mutex
	last map[region.Key]time.Time // when a request was sent
}

// broken reports whether a request to k, whose health is h, is refused.
func (s *silence) broken(k region.Key, h region.Health, r *http.Request, path string) bool {
	if h.State != region.Unhealthy || isHealthCheck(r.Method, path) {
		return false
	}
	now := time.Now()
	if now.Sub(h.LastContact) < recentContact {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.last[k]) >= retryUnwell {
		if s.last == nil || len(s.last) >= maxUnwell {
			s.last = map[region.Key]time.Time{}
		}
		s.last[k] = now
		return false
	}
	return true
}

// isHealthCheck reports whether a request asks for the peer's health.
func isHealthCheck(method, path string) bool {
	check, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return (method == http.MethodGet || method == http.MethodHead) && (check == "livez" || check == "readyz" || check == "healthz")
}
