// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/router"
	"github.com/atoll-dev/atoll/router/apiserver"
	"github.com/atoll-dev/atoll/router/proxy"
)

// A client of client-go creates an object in one region and lists the objects of all regions.
func ExampleNew() {
	if err := serveAndList(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// settings@us.loodse
}

func serveAndList(ctx context.Context) error {
	ring := regiontest.NewRing("peer-a", "peer-b")
	defer ring.Close()
	for name, peer := range map[string]region.PeerName{"eu": "peer-a", "us": "peer-b"} {
		if err := ring.Serve(peer, region.Key{Provider: "loodse", Name: name}); err != nil {
			return err
		}
	}
	routes, err := router.New(ring, router.Options{})
	if err != nil {
		return err
	}
	single, err := proxy.New(routes, func(*http.Request) (router.Identity, error) {
		return router.Impersonate(router.User{Name: "alice"}), nil // a real program identifies the caller
	}, proxy.Options{})
	if err != nil {
		return err
	}
	handler, err := apiserver.New(routes, single, apiserver.Options{})
	if err != nil {
		return err
	}
	server := httptest.NewServer(handler)
	defer server.Close()

	client, err := dynamic.NewForConfig(&rest.Config{Host: server.URL + "/regions/*"})
	if err != nil {
		return err
	}
	configMaps := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("default")
	settings := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "settings@us.loodse"},
	}}
	if _, err := configMaps.Create(ctx, settings, metav1.CreateOptions{}); err != nil {
		return err
	}
	list, err := configMaps.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, o := range list.Items {
		fmt.Println(o.GetName())
	}
	return nil
}
