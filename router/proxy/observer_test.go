// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router"
)

// An Event describes the request as an API server does, also if the request was refused.
func TestEventsDescribeRequests(t *testing.T) {
	s := newScene(t, Options{})
	all := s.proxy.Protect(func(w http.ResponseWriter, _ *http.Request, _ router.Identity) error {
		w.WriteHeader(http.StatusNoContent)
		return nil
	})
	single := s.handler
	s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/regions/*/") {
			all.ServeHTTP(w, r)
			return
		}
		single.ServeHTTP(w, r)
	})
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	for _, tt := range []struct {
		request, token string
		want           Event
	}{
		{"GET " + euPath + "/api/v1/namespaces/acme/pods/web-0/status?pretty=1", "alice", Event{
			Region: eu, Path: "/api/v1/namespaces/acme/pods/web-0/status", Verb: "get", Resource: pods,
			Namespace: "acme", Name: "web-0", Subresource: "status", Code: 200,
		}},
		{"DELETE " + euPath + "/api/v1/namespaces/acme/pods", "alice", Event{
			Region: eu, Path: "/api/v1/namespaces/acme/pods", Verb: "deletecollection", Resource: pods, Namespace: "acme", Code: 200,
		}},
		{"GET /regions/*/api/v1/pods?watch=1", "alice", Event{All: true, Path: "/api/v1/pods", Verb: "watch", Resource: pods, Code: 204}},
		{"GET " + usPath + "/version", "mallory", Event{Path: "/version", Verb: "get", Code: 401}},
		{"GET /regions", "alice", Event{Path: "/", Verb: "get", Code: 404}},
	} {
		_, err := s.send(tt.request+" HTTP/1.1", "Authorization: Bearer "+tt.token)
		require.NoError(t, err)
		var got Event
		require.Eventually(t, func() bool { // the event comes after the answer
			s.mu.Lock()
			defer s.mu.Unlock()
			if len(s.events) == 1 {
				got, s.events = s.events[0], nil
			}
			return got.Path != ""
		}, s.patience, time.Millisecond)
		got.Method, got.AuditID, got.Elapsed, got.Err, got.longRunning = "", "", 0, nil, false
		require.Equal(t, tt.want, got, tt.request)
	}
}

// If it cannot be checked who makes a request, the answer is 503: the caller may be right, and a 401 would make clients
// throw their credentials away.
func TestAnUncheckedCallerIsAskedToRetry(t *testing.T) {
	s := newScene(t, Options{})
	got, err := s.send("GET "+euPath+"/version HTTP/1.1", "Authorization: Bearer unchecked")
	require.NoError(t, err)
	require.Equal(t, http.StatusServiceUnavailable, got.code)
	require.Equal(t, "1", got.header.Get("Retry-After"))
	require.NotContains(t, got.body, "10.0.0.7")
	require.Empty(t, s.a.received())

	// An identity beside the error is not used.
	_, err = failClosed()(router.Impersonate(router.User{Name: "alice"}), region.ErrUnavailable)
	require.Equal(t, http.StatusServiceUnavailable, explain(err).code)
}

// Watches and streams are reported when they begin, and other requests are not, nor streams that were refused.
func TestStreamsAreReportedWhenTheyBegin(t *testing.T) {
	s := newScene(t, Options{})
	all := s.proxy.Protect(func(w http.ResponseWriter, r *http.Request, _ router.Identity) error {
		if strings.HasSuffix(r.URL.Path, "/secrets") {
			w.WriteHeader(http.StatusForbidden)
			return nil
		}
		_, err := w.Write([]byte("{}\n"))
		return err
	})
	single := s.handler
	s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/regions/*/") {
			all.ServeHTTP(w, r)
			return
		}
		single.ServeHTTP(w, r)
	})
	for request, begins := range map[string]bool{
		"GET " + euPath + "/api/v1/pods?watch=1":          true,
		"GET /regions/*/api/v1/pods?watch=1":              true,
		"GET /regions/*/api/v1/secrets?watch=1":           false,
		"GET /regions/*/api/v1/pods":                      false,
		"GET " + euPath + "/api/v1/pods":                  false,
		"POST " + euPath + execPath + " (upgrade)":        true,
		"GET /regions/unknown.loodse/api/v1/pods?watch=1": false,
	} {
		line, upgrade := strings.CutSuffix(request, " (upgrade)")
		lines := []string{line + " HTTP/1.1", "Authorization: Bearer alice"}
		if upgrade {
			lines = append(lines, upgrading, "Upgrade: SPDY/3.1")
		}
		_, err := s.send(lines...)
		require.NoError(t, err, request)
		s.mu.Lock()
		began := s.began
		s.began = nil
		s.mu.Unlock()
		require.Equal(t, begins, len(began) == 1, "%s: %v", request, began)
		if begins {
			require.NotEmpty(t, began[0].AuditID)
			require.Zero(t, began[0].Elapsed)
			require.Equal(t, upgrade, began[0].Upgraded, request)
		}
	}
}
