// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region_test

import (
	"context"
	"encoding/pem"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/region"
)

func TestUntrustedClientUsesOnlyTheGivenDialer(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://proxy.invalid:3128")
	credentials, err := region.FromConfig(&rest.Config{Host: "https://cluster.invalid:6443/prefix", BearerToken: "t"})
	require.NoError(t, err)
	refused := errors.New("refused")
	var dialed []string
	client, server, err := credentials.UntrustedClient(func(_ context.Context, _, address string) (net.Conn, error) {
		dialed = append(dialed, address)
		return nil, refused
	})
	require.NoError(t, err)
	require.Equal(t, "https://cluster.invalid:6443/prefix", server.String())
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.String(), nil)
	require.NoError(t, err)
	_, err = client.Do(req) //nolint:bodyclose // there is no response
	require.ErrorIs(t, err, refused)
	require.Equal(t, []string{"cluster.invalid:6443"}, dialed)
}

// TestUntrustedClientRefusesConfigurationsWithFunctions covers all fields that could lead a request elsewhere.
func TestUntrustedClientRefusesConfigurationsWithFunctions(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*rest.Config){
		"Transport":     func(c *rest.Config) { c.Transport = http.DefaultTransport },
		"WrapTransport": func(c *rest.Config) { c.WrapTransport = func(rt http.RoundTripper) http.RoundTripper { return rt } },
		"Dial":          func(c *rest.Config) { c.Dial = (&net.Dialer{}).DialContext },
		"Proxy":         func(c *rest.Config) { c.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: "proxy.invalid"}) },
	} {
		config := &rest.Config{Host: "https://cluster.invalid"}
		set(config)
		credentials, err := region.FromConfig(config)
		require.NoError(t, err)
		_, _, err = credentials.UntrustedClient(nil)
		require.ErrorContains(t, err, name)
	}
	_, _, err := region.Credentials{}.UntrustedClient(nil)
	require.Error(t, err)
}

// TestUntrustedClientBelievesNothing has a server that redirects, and one that sends a large header.
func TestUntrustedClientBelievesNothing(t *testing.T) {
	t.Parallel()
	var followed atomic.Int32
	mux := http.NewServeMux()
	mux.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/target", http.StatusFound) })
	mux.HandleFunc("/target", func(http.ResponseWriter, *http.Request) { followed.Add(1) })
	mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 128<<10)) })
	server := httptest.NewTLSServer(mux)
	defer server.Close()
	credentials, err := region.FromConfig(&rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{
		CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}})
	require.NoError(t, err)
	client, address, err := credentials.UntrustedClient(nil)
	require.NoError(t, err)
	get := func(path string) (*http.Response, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address.JoinPath(path).String(), nil)
		require.NoError(t, err)
		return client.Do(req)
	}
	resp, err := get("away")
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusFound, resp.StatusCode)
	require.Zero(t, followed.Load())
	_, err = get("large") //nolint:bodyclose // there is no response
	require.ErrorContains(t, err, "header")
}
