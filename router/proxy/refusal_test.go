// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/router"
)

// If a peer refuses the gateway itself, callers get 503 and a reason without the peer's name; operators get the
// name. If a peer refuses the caller, the caller gets the peer's own answer.
func TestWhoIsRefused(t *testing.T) {
	kinds := map[string]struct {
		query string
		lines []string
	}{
		"request": {}, "watch": {query: "?watch=true"}, "stream": {lines: []string{upgrading, websocket}},
		"stream by SPDY": {lines: []string{upgrading, "Upgrade: SPDY/3.1"}},
	}
	for kind, k := range kinds {
		t.Run(kind, func(t *testing.T) {
			s := newScene(t, Options{})
			send := func(path, token string) *answer {
				got, err := s.send(append([]string{"GET " + euPath + path + k.query + " HTTP/1.1", "Authorization: Bearer " + token}, k.lines...)...)
				require.NoError(t, err)
				return got
			}
			for _, path := range []string{"/unauthorized", "/unimpersonated"} {
				got := send(path, "alice")
				require.Equal(t, http.StatusServiceUnavailable, got.code, path)
				require.Equal(t, "1", got.header.Get("Retry-After"))
				var status metav1.Status
				require.NoError(t, json.Unmarshal([]byte(got.body), &status))
				require.Equal(t, metav1.StatusReasonServiceUnavailable, status.Reason)
				require.Contains(t, status.Message, "does not accept the credentials of this gateway")
				for _, secret := range []string{"peer-a", "library", s.a.server.URL} {
					require.NotContains(t, got.body, secret)
				}
				s.mu.Lock()
				last := s.events[len(s.events)-1]
				s.mu.Unlock()
				require.ErrorIs(t, last.Err, router.ErrCredentials)
				require.ErrorContains(t, last.Err, "peer peer-a: region eu-west-1.loodse: ")
			}
			logged := s.logged()
			require.Equal(t, 2, strings.Count(logged, "A peer refuses the gateway itself"))
			require.Contains(t, logged, "peer peer-a: region eu-west-1.loodse: ")
			require.Contains(t, logged, "cannot impersonate resource")

			got := send("/forbidden", "alice")
			require.Equal(t, http.StatusForbidden, got.code)
			require.JSONEq(t, forbiddenToAlice, got.body)
			for path, code := range map[string]int{"/unauthorized": http.StatusUnauthorized, "/forbidden": http.StatusForbidden, "/unimpersonated": http.StatusForbidden} {
				require.Equal(t, code, send(path, "passed-on").code, path)
			}
			require.Equal(t, 2, strings.Count(s.logged(), "A peer refuses the gateway itself"))
		})
	}
}
