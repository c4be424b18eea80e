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
	recentContact = 10 * time.Second // how long failed probes are ignored after an answer of the peer
	retryUnwell   = time.Second      // between requests that are sent to a silent peer
	maxUnwell     = 4096             // regions for which last has an entry
)

// silence refuses requests to a peer whose probes fail, so that callers do not wait for the peer. Since the
// probes may be stale, it lets one request a second pass, and the answer to that request ends the refusal.
type silence struct {
	mu   sync.Mutex
	last map[region.Key]time.Time // when a request was last sent
}

// refuses reports whether a request to region k is refused. h is the health of the region's peer.
func (s *silence) refuses(k region.Key, h region.Health, r *http.Request, path string) bool {
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

// isHealthCheck reports whether a request reads a health endpoint of the peer.
func isHealthCheck(method, path string) bool {
	check, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return (method == http.MethodGet || method == http.MethodHead) && (check == "livez" || check == "readyz" || check == "healthz")
}
