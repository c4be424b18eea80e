// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package atollprometheus_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	atollprometheus "github.com/atoll-dev/atoll/adapters/prometheus"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/syncer"
)

// show prints the lines of an exposition that begin with a prefix.
func show(exposition string, prefixes ...string) {
	for line := range strings.Lines(exposition) {
		for _, prefix := range prefixes {
			if strings.HasPrefix(line, prefix) {
				fmt.Print(line)
			}
		}
	}
}

// A Syncer counts its writes. Its part of the gauges ends with the ctx of Start.
func ExampleMetrics_Syncer() {
	if err := sync(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// atoll_syncer_writes_total{direction="downstream",resource="configmaps",write="Create"} 1
	// atoll_syncer_writes_total{direction="upstream",resource="configmaps",write="Finalizer"} 1
}

func sync(ctx context.Context) error {
	upstream, downstream := regiontest.NewServer(regiontest.Options{Name: "up"}), regiontest.NewServer(regiontest.Options{Name: "down"})
	defer upstream.Close()
	defer downstream.Close()
	up, err := region.APIFor(upstream.Config())
	if err != nil {
		return err
	}
	down, err := region.APIFor(downstream.Config())
	if err != nil {
		return err
	}
	metrics, err := atollprometheus.New(atollprometheus.Options{})
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	if err := registry.Register(metrics); err != nil {
		return err
	}

	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	wrote := make(chan syncer.WriteEvent, 10)
	s, err := syncer.New(up, down, syncer.Options{
		Target:   "my-cluster",
		Observer: metrics.Syncer(ctx, &syncer.Observer{Wrote: func(_ context.Context, e syncer.WriteEvent) { wrote <- e }}),
	})
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- s.Start(ctx) }()
	greeting := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"greeting": "hello"},
		"metadata": map[string]any{"name": "hello", "labels": map[string]any{"workloads.kcp.io/cluster": "my-cluster"}},
	}}
	configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	if _, err := up.Dynamic().Resource(configMaps).Namespace("default").Create(ctx, greeting, metav1.CreateOptions{}); err != nil {
		return err
	}
	<-wrote
	<-wrote

	w := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/metrics", http.NoBody))
	show(w.Body.String(), "atoll_syncer_writes_total{")
	cancel()
	return <-done
}
