// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/cmd/atoll-gateway/config"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// Pages of the allowed origins can use the gateway from a browser, and no other pages can.
func TestCORS(t *testing.T) {
	s := newSite(t, regiontest.Options{})
	const console, stranger = "https://console.example.com", "https://console.example.com.evil.example"
	p := s.start(s.config(func(c *config.Configuration) { c.Serving.AllowedOrigins = []string{console} }))
	p.ready()
	client, err := rest.HTTPClientFor(p.client("", ""))
	require.NoError(t, err)
	defer client.CloseIdleConnections()
	do := func(method, origin string, headers map[string]string) http.Header {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, p.address+"/regions/*/api/v1/configmaps", http.NoBody)
		require.NoError(t, err)
		req.Header.Set("Origin", origin)
		for name, value := range headers {
			req.Header.Set(name, value)
		}
		resp, err := client.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		resp.Header.Set("code", resp.Status)
		return resp.Header
	}
	preflight := map[string]string{"Access-Control-Request-Method": "PATCH", "Access-Control-Request-Headers": "authorization,content-type"}
	got := do(http.MethodOptions, console, preflight)
	require.Equal(t, "204 No Content", got.Get("code"), "a preflight has no credentials")
	require.Equal(t, console, got.Get("Access-Control-Allow-Origin"))
	require.Equal(t, "PATCH", got.Get("Access-Control-Allow-Methods"))
	require.Equal(t, "authorization,content-type", got.Get("Access-Control-Allow-Headers"))
	require.Contains(t, got.Values("Vary"), "Origin, Access-Control-Request-Method, Access-Control-Request-Headers")

	got = do(http.MethodGet, console, map[string]string{"Authorization": "Bearer t-alice"})
	require.Equal(t, "200 OK", got.Get("code"))
	require.Equal(t, console, got.Get("Access-Control-Allow-Origin"))
	require.Contains(t, got.Get("Access-Control-Expose-Headers"), "Retry-After")
	got = do(http.MethodGet, console, nil)
	require.Equal(t, "401 Unauthorized", got.Get("code"))
	require.Equal(t, console, got.Get("Access-Control-Allow-Origin"), "the page can read why")

	for _, origin := range []string{stranger, "null", "http://console.example.com", "https://console.example.com:444"} {
		for method, headers := range map[string]map[string]string{http.MethodOptions: preflight, http.MethodGet: {"Authorization": "Bearer t-alice"}} {
			require.Empty(t, do(method, origin, headers).Get("Access-Control-Allow-Origin"), "%s %s", method, origin)
		}
	}

	// Without the option there are no such headers.
	p = s.start(s.config(nil))
	p.ready()
	require.Empty(t, do(http.MethodGet, console, map[string]string{"Authorization": "Bearer t-alice"}).Get("Access-Control-Allow-Origin"))
}
