// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview_test

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
	"github.com/atoll-dev/atoll/router/clusterview"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// The syncer of the cluster c1 lists Secrets, and gets those of its cluster.
func ExampleNew() {
	if err := listAsSyncer(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// of-c1
}

func listAsSyncer(ctx context.Context) error {
	ring := regiontest.NewRing("peer-a")
	defer ring.Close()
	if err := ring.Serve("peer-a", region.Key{Provider: "loodse", Name: "eu"}); err != nil {
		return err
	}
	secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	own, err := dynamic.NewForConfig(ring.Server("peer-a").Config())
	if err != nil {
		return err
	}
	for _, cluster := range []string{"c1", "c2"} {
		secret := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{
			"name": "of-" + cluster, "labels": map[string]any{v1alpha1.ClusterLabel: cluster},
		}}}
		if _, err := own.Resource(secrets).Namespace("default").Create(ctx, secret, metav1.CreateOptions{}); err != nil {
			return err
		}
	}

	routes, err := router.New(ring, router.Options{})
	if err != nil {
		return err
	}
	view, err := clusterview.New(routes, func(*http.Request) (router.Identity, error) {
		return router.Impersonate(router.User{Name: "syncer-of-c1"}), nil // a real program identifies the caller
	}, clusterview.Options{})
	if err != nil {
		return err
	}
	server := httptest.NewServer(view)
	defer server.Close()

	client, err := dynamic.NewForConfig(&rest.Config{Host: server.URL + "/synctargets/c1/regions/eu.loodse"})
	if err != nil {
		return err
	}
	list, err := client.Resource(secrets).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		fmt.Println(list.Items[i].GetName())
	}
	return nil
}
