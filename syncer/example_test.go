// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/syncer"
)

// A ConfigMap that is labelled for a cluster is created there, and is deleted there when it is deleted upstream.
func ExampleNew() {
	upstream, downstream := regiontest.NewServer(regiontest.Options{Name: "up"}), regiontest.NewServer(regiontest.Options{Name: "down"})
	defer upstream.Close()
	defer downstream.Close()
	up, err := region.APIFor(upstream.Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	down, err := region.APIFor(downstream.Config())
	if err != nil {
		fmt.Println(err)
		return
	}

	wrote := make(chan syncer.WriteEvent, 10)
	s, err := syncer.New(up, down, syncer.Options{
		Target:   "my-cluster",
		Observer: &syncer.Observer{Wrote: func(_ context.Context, e syncer.WriteEvent) { wrote <- e }},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- s.Start(ctx) }()

	configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	greeting := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"greeting": "hello"},
		"metadata": map[string]any{"name": "hello", "labels": map[string]any{"workloads.kcp.io/cluster": "my-cluster"}},
	}}
	client := up.Dynamic().Resource(configMaps).Namespace("default")
	if _, err := client.Create(ctx, greeting, metav1.CreateOptions{}); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println((<-wrote).Write, (<-wrote).Write)
	copied, err := down.Dynamic().Resource(configMaps).Namespace("default").Get(ctx, "hello", metav1.GetOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(copied.Object["data"])

	if err := client.Delete(ctx, "hello", metav1.DeleteOptions{}); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println((<-wrote).Write, (<-wrote).Write)
	cancel()
	fmt.Println(<-done)
	// Output:
	// Finalizer Create
	// map[greeting:hello]
	// Delete Release
	// <nil>
}

// Diff lists the writes before the syncer makes any of them.
func ExampleSyncer_Diff() {
	upstream, downstream := regiontest.NewServer(regiontest.Options{Name: "up"}), regiontest.NewServer(regiontest.Options{Name: "down"})
	defer upstream.Close()
	defer downstream.Close()
	up, err := region.APIFor(upstream.Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	down, err := region.APIFor(downstream.Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	greeting := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "hello", "labels": map[string]any{"workloads.kcp.io/cluster": "my-cluster"}},
	}}
	if _, err := up.Dynamic().Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("default").Create(ctx, greeting, metav1.CreateOptions{}); err != nil {
		fmt.Println(err)
		return
	}
	s, err := syncer.New(up, down, syncer.Options{Target: "my-cluster"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for change, err := range s.Diff(ctx) {
		fmt.Println(change.Write, change.Resource, change.Object, err)
	}
	// Output:
	// Finalizer configmaps default/hello <nil>
	// Create configmaps default/hello <nil>
}

// A prefix keeps the namespaces of one upstream apart from those of others.
func ExamplePrefixNamespaces() {
	m := syncer.PrefixNamespaces("acme-")
	fmt.Println(m.Down("shop"))
	fmt.Println(m.Up("acme-shop"))
	fmt.Println(m.Up("kube-system"))
	// Output:
	// acme-shop <nil>
	// shop true
	// kube-system false
}

// Each namespace is mapped to the one of the same name.
func ExampleSameNamespaces() {
	fmt.Println(syncer.SameNamespaces().Down("shop"))
	// Output: shop <nil>
}

// ParsePower reads a permit, as from a command line. CheckTypes names the types that need a permit which is missing.
func ExampleParsePower() {
	roles := schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: "roles"}
	fmt.Println(syncer.CheckTypes(nil, roles))
	permit, err := syncer.ParsePower("RBAC")
	fmt.Println(permit, err)
	fmt.Println(syncer.CheckTypes([]syncer.Power{permit}, roles))
	// Output:
	// roles.rbac.authorization.k8s.io needs the permit RBAC: it gives away the rights that the syncer has
	// RBAC <nil>
	// <nil>
}
