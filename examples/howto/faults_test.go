// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package howto_test

import (
	"context"
	"fmt"
	"log"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/region/regiontest"
)

// The first update is refused as a conflict. The second is executed, but its answer is lost. The third round finds the
// greeting and writes nothing.
func Example_faults() {
	server := regiontest.NewServer(regiontest.Options{})
	defer server.Close()
	client, err := dynamic.NewForConfig(server.Config())
	if err != nil {
		log.Panic(err)
	}
	ctx := context.Background()
	objects := client.Resource(configMaps).Namespace("default")
	if _, err := objects.Create(ctx, greetingFor("Ada"), metav1.CreateOptions{}); err != nil {
		log.Panic(err)
	}
	server.Inject(
		regiontest.Fault{Verb: "update", Resource: configMaps.GroupResource(), Do: regiontest.Refuse(http.StatusConflict)},
		regiontest.Fault{Verb: "update", Resource: configMaps.GroupResource(), Do: regiontest.DropReply()},
	)
	for range 3 {
		fmt.Println("failed:", greetOnce(ctx, objects) != nil)
	}
	for _, r := range server.Requests() {
		if r.Verb == "update" {
			fmt.Println(r.Verb, r.Resource, r.Name, r.Code)
		}
	}
	// Output:
	// failed: true
	// failed: true
	// failed: false
	// update configmaps ada 409
	// update configmaps ada 0
}

func greetingFor(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "ada", "namespace": "default"}, "data": map[string]any{"name": name},
	}}
}
