// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/atoll-dev/atoll/internal/logtest"
)

// controller-runtime starts loops with a context without a logger. The program logs the lines of
// its loops nevertheless.
func TestLogs(t *testing.T) {
	defer klog.SetLogger(logr.Discard())
	defer log.SetLogger(logr.Discard())
	defer unregister(t)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(path, logtest.Kubeconfig(), 0o600))
	lines := logtest.New()
	logtest.Run(t, func(ctx context.Context) error {
		return run(ctx, []string{"-kubeconfig", path, "-identity", "a", "-health-address", "0", "-metrics-address", "0"}, lines)
	})
	lines.Await(t, `"logger":"members"`, "connection refused")
	lines.Await(t, `"logger":"master"`, "connection refused")
}

// unregister removes the program's metrics from the global registry, for the tests that run later.
func unregister(t *testing.T) {
	t.Helper()
	n, err := newNumbers(prometheus.NewRegistry())
	require.NoError(t, err)
	for _, c := range n.collectors() {
		require.True(t, metrics.Registry.Unregister(c))
	}
}
