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
	recentContact = 10 * time.Second // for which an answer of a peer outweighs the verdict of its probes
	retryUnwell   = time.Second      // between requests that are let through to a peer that is silent
	maxUnwell     = 4096             // regions of which the last such request is remembered
)

// silence refuses requests to peers that are known not to answer, so that they are not waited for. What is known may be
// stale: one request a second goes through all the same, and an answer ends the refusal.
type silence struct {
	mu   sync.Mutex
	last map[region.Key]time.Time // when a request was let through
}

// broken reports whether a request to k, of which h is known, is refused.
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
