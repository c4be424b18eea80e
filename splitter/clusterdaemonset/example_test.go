// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterdaemonset_test

import (
	"context"
	"fmt"
	"log"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/clusterdaemonset"
)

// A ClusterDaemonSet runs once in each of two clusters.
func ExampleNew() {
	if err := everywhere(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output:
	// agent--cluster-1 is for cluster-1
	// agent--cluster-2 is for cluster-2
}

func everywhere(ctx context.Context) error {
	server := regiontest.NewServer(regiontest.Options{})
	defer server.Close()
	crd, err := config.CRD("clusterdaemonsets.splitter.atoll.dev")
	if err != nil {
		return err
	}
	if err := server.AddCRD(crd); err != nil {
		return err
	}
	api, err := region.APIFor(server.Config())
	if err != nil {
		return err
	}
	set := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "splitter.atoll.dev/v1alpha1", "kind": "ClusterDaemonSet", "metadata": map[string]any{"name": "agent"},
		"spec": map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"app": "agent"}},
			"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"app": "agent"}},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "agent", "image": "agent:1"}}},
			},
		},
	}}
	if _, err := api.Dynamic().Resource(sets).Namespace("default").Create(ctx, set, metav1.CreateOptions{}); err != nil {
		return err
	}
	controller, err := clusterdaemonset.New(api, splitter.StaticClusters("cluster-1", "cluster-2"), clusterdaemonset.Options{})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { _ = controller.Start(ctx) })
	for {
		list, err := api.Dynamic().Resource(deployments).Namespace("default").List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if len(list.Items) == 2 {
			for _, d := range list.Items {
				fmt.Println(d.GetName(), "is for", d.GetLabels()["workloads.kcp.io/cluster"])
			}
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
}
