// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router"
	"github.com/atoll-dev/atoll/router/proxy"
)

// Each call gets a missing or invalid argument. The call does not panic, and its error names the fault.
func TestArguments(t *testing.T) {
	authenticate := func(*http.Request) (router.Identity, error) { return router.Self(), nil }
	routes, err := router.New(region.Fixed(), router.Options{})
	require.NoError(t, err)
	for _, tc := range []struct {
		call, want string
		try        func() error
	}{
		{"New router", "router is nil", func() error { _, err := proxy.New(nil, authenticate, proxy.Options{}); return err }},
		{"New authenticator", "authenticator is nil", func() error { _, err := proxy.New(routes, nil, proxy.Options{}); return err }},
		{"New Operator", "Operator", func() error { _, err := proxy.New(routes, authenticate, proxy.Options{Peers: routes}); return err }},
		{"Peers", "directory is nil", func() error { _, err := router.New(proxy.Peers(nil), router.Options{}); return err }},
		{"Peers typed", "directory is nil", func() error { _, err := router.New(proxy.Peers((*region.Ring)(nil)), router.Options{}); return err }},
	} {
		t.Run(tc.call, func(t *testing.T) {
			require.NotPanics(t, func() { require.ErrorContains(t, tc.try(), tc.want) })
		})
	}
}
