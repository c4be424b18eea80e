// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package logtest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/region"
)

// Unreachable returns an API whose server refuses all connections.
func Unreachable(t testing.TB) region.API {
	t.Helper()
	api, err := region.APIFor(&rest.Config{Host: "https://127.0.0.1:1"})
	require.NoError(t, err)
	return api
}

// Kubeconfig returns a kubeconfig of a server that refuses all connections.
func Kubeconfig() []byte {
	return []byte(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
  clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}], users: [{name: u, user: {token: secret}}]}`)
}

// Run starts a loop. At the end of the test it stops the loop, and requires that it ends without an
// error.
func Run(t testing.TB, start func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- start(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
}
