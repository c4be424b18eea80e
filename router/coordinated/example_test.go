// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package coordinated_test

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

	"github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/router"
	"github.com/atoll-dev/atoll/router/apiserver"
	"github.com/atoll-dev/atoll/router/coordinated"
	"github.com/atoll-dev/atoll/router/proxy"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// A client creates an Account at one region, and every region has it.
func ExampleNew() {
	if err := createEverywhere(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// acme@eu.loodse
	// acme@us.loodse
}

func createEverywhere(ctx context.Context) error {
	ring := regiontest.NewRing("peer-a", "peer-b")
	defer ring.Close()
	crds, err := config.TypedCRDs()
	if err != nil {
		return err
	}
	if err := ring.AddCRDs(crds...); err != nil {
		return err
	}
	for name, peer := range map[string]region.PeerName{"eu": "peer-a", "us": "peer-b"} {
		if err := ring.Serve(peer, region.Key{Provider: "loodse", Name: name}); err != nil {
			return err
		}
	}
	ops, err := fanout.New(ring, waltest.NewMemory(), fanout.Options{Kinds: account.Kinds()}) // a real program opens a log with wal.Open
	if err != nil {
		return err
	}
	if err := ops.InitPeers(ctx); err != nil {
		return err
	}
	writes, err := coordinated.New(ring, ops)
	if err != nil {
		return err
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
	handler, err := apiserver.New(routes, single, apiserver.Options{Fanout: writes})
	if err != nil {
		return err
	}
	server := httptest.NewServer(handler)
	defer server.Close()

	accounts := schema.GroupVersionResource{Group: "catalog.kubecarrier.io", Version: "v1alpha1", Resource: "accounts"}
	one, err := dynamic.NewForConfig(&rest.Config{Host: server.URL + "/regions/us.loodse"})
	if err != nil {
		return err
	}
	acme := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "catalog.kubecarrier.io/v1alpha1", "kind": "Account",
		"metadata": map[string]any{"name": "acme"}, "spec": map[string]any{"roles": []any{"Tenant"}},
	}}
	if _, err := one.Resource(accounts).Create(ctx, acme, metav1.CreateOptions{}); err != nil {
		return err
	}
	all, err := dynamic.NewForConfig(&rest.Config{Host: server.URL + "/regions/*"})
	if err != nil {
		return err
	}
	list, err := all.Resource(accounts).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, o := range list.Items {
		fmt.Println(o.GetName())
	}
	return ops.Wait(ctx)
}
