// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
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
