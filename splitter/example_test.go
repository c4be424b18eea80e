// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/splitter"
)

// Fifteen replicas are divided over two clusters in the ratio two to three. Then the second
// cluster is full, and ten more replicas are desired.
func ExampleDivide() {
	clusters := []splitter.Share{{Name: "cluster-1", Weight: new(int64(2))}, {Name: "cluster-2", Weight: new(int64(3))}}
	plan, err := splitter.Divide(splitter.Demand{Replicas: 15}, clusters)
	if err != nil {
		log.Fatal(err)
	}
	for i, a := range plan.Shards {
		fmt.Println(a.Cluster, a.Replicas)
		clusters[i].Present = a.Replicas
	}

	clusters[1].Capacity = new(int64(10))
	plan, err = splitter.Divide(splitter.Demand{Replicas: 25}, clusters)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(plan.Shards, plan.Reasons)
	// Output:
	// cluster-1 6
	// cluster-2 9
	// [{cluster-1 15} {cluster-2 10}] [{cluster-2 Capacity 5}]
}

// Two zones have equal claims, whatever their numbers of clusters.
func ExampleShare() {
	plan, err := splitter.Divide(splitter.Demand{Replicas: 12}, []splitter.Share{
		{Name: "zone-a", Group: true, Members: []splitter.Share{{Name: "a1"}, {Name: "a2"}, {Name: "a3"}}},
		{Name: "zone-b", Group: true, Members: []splitter.Share{{Name: "b1"}}},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(plan.Shards)
	// Output: [{a1 2} {a2 2} {a3 2} {b1 6}]
}

// A Deployment is divided over two clusters. Its status is the sum of the statuses of its two
// shards.
func ExampleNew() {
	if err := divideInMemory(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output:
	// web--cluster-1: 1 of 6 ready
	// web--cluster-2: 7 of 9 ready
	// web: 8 of 15 ready
}

func divideInMemory(ctx context.Context) error {
	server := regiontest.NewServer(regiontest.Options{})
	defer server.Close()
	api, err := region.APIFor(server.Config())
	if err != nil {
		return err
	}
	split, err := splitter.New(api, splitter.StaticClusters("cluster-1", "cluster-2"), splitter.Options{
		Place: func(_ *unstructured.Unstructured, _ []splitter.Cluster) (splitter.Demand, []splitter.Share, error) {
			return splitter.Demand{}, []splitter.Share{{Name: "cluster-1", Weight: new(int64(2))}, {Name: "cluster-2", Weight: new(int64(3))}}, nil
		},
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var running errgroup.Group
	running.Go(func() error { return split.Start(ctx) })
	err = readyOverTime(ctx, api.Dynamic().Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}).Namespace("default"))
	cancel()
	return errors.Join(err, running.Wait())
}

func readyOverTime(ctx context.Context, c dynamic.ResourceInterface) error {
	web := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web"},
		"spec": map[string]any{
			"replicas": int64(15), "selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
			"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"app": "web"}},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "web", "image": "web"}}},
			},
		},
	}}
	if _, err := c.Create(ctx, web, metav1.CreateOptions{}); err != nil {
		return err
	}
	// Report the status of the shards, as syncers would.
	for _, shard := range []struct {
		name  string
		ready int
	}{{"web--cluster-1", 1}, {"web--cluster-2", 7}, {"web", 8}} {
		err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
			obj, err := c.Get(ctx, shard.name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return false, nil
			}
			if err != nil {
				return false, err
			}
			if shard.name != "web" {
				report := fmt.Appendf(nil, `{"status":{"readyReplicas":%d,"observedGeneration":%d}}`, shard.ready, obj.GetGeneration())
				if obj, err = c.Patch(ctx, shard.name, types.MergePatchType, report, metav1.PatchOptions{}, "status"); err != nil {
					return false, err
				}
			}
			wanted, _, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas")
			ready, _, _ := unstructured.NestedInt64(obj.Object, "status", "readyReplicas")
			if ready != int64(shard.ready) {
				return false, nil
			}
			fmt.Printf("%s: %d of %d ready\n", shard.name, ready, wanted)
			return true, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// An Argo Rollout has its number of replicas in the same field as a Deployment.
func ExampleByPaths() {
	kind, err := splitter.ByPaths(schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "rollouts"}, splitter.Paths{
		Counters: []string{"status.readyReplicas", "status.updatedReplicas"},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(kind.Resource().GroupResource())
	// Output: rollouts.argoproj.io
}

// The clusters of a Deployment share the autoscaler that targets it.
func ExampleAutoscalers() {
	opts := splitter.Options{Followers: []splitter.Follower{splitter.Autoscalers()}}
	fmt.Println(opts.Followers[0].Resource().GroupResource())
	// Output: horizontalpodautoscalers.autoscaling
}

// The clusters of a Deployment share the disruption budgets that select its pods.
func ExampleDisruptionBudgets() {
	opts := splitter.Options{Followers: []splitter.Follower{splitter.DisruptionBudgets()}}
	fmt.Println(opts.Followers[0].Resource().GroupResource())
	// Output: poddisruptionbudgets.policy
}
