// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package atollprometheus_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	atollprometheus "github.com/atoll-dev/atoll/adapters/prometheus"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/router"
	"github.com/atoll-dev/atoll/router/proxy"
)

// A gateway counts its requests by region. All regions that it does not serve have one series.
func ExampleMetrics_Proxy() {
	if err := serve(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// atoll_proxy_requests_total{code="200",region="eu.loodse",verb="list"} 1
	// atoll_proxy_requests_total{code="404",region="unknown",verb="list"} 2
	// atoll_router_requests_total{outcome="success",peer="peer-a"} 1
}

func serve(ctx context.Context) error {
	ring := regiontest.NewRing("peer-a") // a real program makes a region.Ring
	defer ring.Close()
	if err := ring.Serve("peer-a", region.Key{Provider: "loodse", Name: "eu"}); err != nil {
		return err
	}
	metrics, err := atollprometheus.New(atollprometheus.Options{Directory: func() region.Directory { return ring }})
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	if err := registry.Register(metrics); err != nil {
		return err
	}
	routes, err := router.New(ring, router.Options{Observer: metrics.Router(nil)})
	if err != nil {
		return err
	}
	gateway, err := proxy.New(routes, func(*http.Request) (router.Identity, error) {
		return router.Impersonate(router.User{Name: "alice"}), nil // only this program reaches the handler
	}, proxy.Options{Observer: metrics.Proxy(nil)})
	if err != nil {
		return err
	}
	get := func(h http.Handler, path string) string {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, path, http.NoBody))
		return w.Body.String()
	}
	for _, region := range []string{"eu.loodse", "moon.loodse", "mars.loodse"} {
		get(gateway, "/regions/"+region+"/api/v1/namespaces/default/configmaps")
	}
	show(get(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), "/metrics"), "atoll_proxy_requests_total{", "atoll_router_requests_total{")
	return nil
}
