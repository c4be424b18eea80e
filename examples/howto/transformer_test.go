// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package howto_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/syncer"
)

// pullFrom returns a Transformer. It makes the pods of Deployments pull their images from registry, and keeps the
// Deployments with the annotation example.com/hold out of the cluster.
func pullFrom(registry string) syncer.Transformer {
	return func(obj *unstructured.Unstructured) error {
		if obj.GetKind() != "Deployment" {
			return nil
		}
		if obj.GetAnnotations()["example.com/hold"] == "true" {
			return syncer.Skip
		}
		path := []string{"spec", "template", "spec", "containers"}
		containers, _, err := unstructured.NestedSlice(obj.Object, path...)
		if err != nil {
			return err
		}
		for i := range containers {
			container, ok := containers[i].(map[string]any)
			if !ok {
				return fmt.Errorf("container %d is not an object", i)
			}
			container["image"] = fmt.Sprintf("%s/%s", registry, container["image"])
		}
		return unstructured.SetNestedSlice(obj.Object, containers, path...)
	}
}

// The upstream keeps the image of the author. The cluster gets the image of its own registry.
func Example_transformer() {
	upstream, downstream := regiontest.NewServer(regiontest.Options{Name: "up"}), regiontest.NewServer(regiontest.Options{Name: "down"})
	defer upstream.Close()
	defer downstream.Close()
	up, err1 := region.APIFor(upstream.Config())
	down, err2 := region.APIFor(downstream.Config())
	wrote := make(chan syncer.WriteEvent, 10)
	s, err3 := syncer.New(up, down, syncer.Options{
		Target:    "eu-1",
		Transform: []syncer.Transformer{pullFrom("registry.eu-1.example.com")},
		Observer:  &syncer.Observer{Wrote: func(_ context.Context, e syncer.WriteEvent) { wrote <- e }},
	})
	if err := errors.Join(err1, err2, err3); err != nil {
		log.Panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()

	deployments := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	if _, err := up.Dynamic().Resource(deployments).Namespace("default").Create(ctx, webDeployment(), metav1.CreateOptions{}); err != nil {
		log.Panic(err)
	}
	for e := range wrote {
		if e.Write == syncer.WriteCreate && e.Resource == deployments.GroupResource() {
			break
		}
	}
	for _, side := range []region.API{up, down} {
		web, err := side.Dynamic().Resource(deployments).Namespace("default").Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			log.Panic(err)
		}
		fmt.Println(imageOf(web))
	}

	held := webDeployment()
	held.SetAnnotations(map[string]string{"example.com/hold": "true"})
	fmt.Println(pullFrom("registry.eu-1.example.com")(held))

	cancel()
	if err := <-ended; err != nil {
		log.Panic(err)
	}
	// Output:
	// web:1
	// registry.eu-1.example.com/web:1
	// skipped by a transformer
}

func webDeployment() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": "web", "labels": map[string]any{"workloads.kcp.io/cluster": "eu-1"}},
		"spec": map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
			"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"app": "web"}},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "web", "image": "web:1"}}},
			},
		},
	}}
}

func imageOf(deployment *unstructured.Unstructured) any {
	containers, _, _ := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	for _, c := range containers {
		return c.(map[string]any)["image"]
	}
	return nil
}
