// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package observability_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"

	atollprometheus "github.com/atoll-dev/atoll/adapters/prometheus"
	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/placement"
	"github.com/atoll-dev/atoll/syncer"
)

// startCluster syncs ConfigMaps and Deployments of an upstream to a cluster, and runs a splitter and placement in the
// upstream. It returns the address of their metrics.
func startCluster(t *testing.T, upstream, downstream *plane.Plane) (address string) {
	t.Helper()
	up, err := region.APIFor(upstream.Config())
	require.NoError(t, err)
	down, err := region.APIFor(downstream.Config())
	require.NoError(t, err)
	metrics, err := atollprometheus.New(atollprometheus.Options{})
	require.NoError(t, err)
	registry := prometheus.NewRegistry()
	require.NoError(t, registry.Register(metrics))
	ctx, cancel := context.WithCancel(logr.NewContext(context.WithoutCancel(t.Context()), logr.Discard()))

	sync, err := syncer.New(up, down, syncer.Options{
		Target: cluster, Heartbeat: time.Second, Discovery: time.Second, Observer: metrics.Syncer(ctx, nil),
		Types: func(gr schema.GroupResource) bool { return gr.Resource == "configmaps" || gr.Resource == "deployments" },
	})
	require.NoError(t, err)
	places, err := placement.New(up, splitter.SyncTargets(up), placement.Options{Observer: metrics.Placement(nil)})
	require.NoError(t, err)
	splits, err := splitter.New(up, splitter.SyncTargets(up), splitter.Options{Place: placement.Place, Rejoin: time.Second, Observer: metrics.Splitter(nil)})
	require.NoError(t, err)

	var running errgroup.Group
	for _, start := range []func(context.Context) error{sync.Start, places.Start, splits.Start} {
		running.Go(func() error { return start(ctx) })
	}
	served := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	t.Cleanup(func() {
		served.Close()
		cancel()
		require.NoError(t, running.Wait())
	})
	return strings.TrimPrefix(served.URL, "http://")
}
