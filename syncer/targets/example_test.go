// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/syncer"
	"github.com/atoll-dev/atoll/syncer/targets"
)

// One process serves all SyncTargets of an upstream.
func ExampleNew() {
	upstream := regiontest.NewServer(regiontest.Options{Name: "up"})
	defer upstream.Close()
	up, err := region.APIFor(upstream.Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	controller, err := targets.New(up, targets.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	fmt.Println(controller.Start(ctx), controller.Syncer("my-cluster") == nil)
	// Output: <nil> true
}

// Manifests returns the objects of an installation in the order in which they can be applied.
func ExampleManifests() {
	manifests, err := targets.Manifests(targets.Install{
		Target: "my-cluster", Upstream: "1d0e2c5a-0000-4000-8000-000000000000", Kubeconfig: []byte("apiVersion: v1\nkind: Config\n"),
		Image: "registry.example.com/atoll-syncer:v1", Types: []schema.GroupResource{{Group: "apps", Resource: "deployments"}},
	})
	for _, obj := range manifests {
		fmt.Println(obj.GetKind(), obj.GetName())
	}
	fmt.Println(err)
	// Output:
	// Namespace atoll-syncer-my-cluster-kv324dy7i4
	// ServiceAccount syncer
	// ClusterRole atoll-syncer-my-cluster-kv324dy7i4
	// ClusterRoleBinding atoll-syncer-my-cluster-kv324dy7i4
	// Secret upstream
	// Deployment syncer
	// <nil>
}

// An Agent inside a cluster syncs for one SyncTarget while the SyncTarget exists.
func ExampleNewAgent() {
	upstream, cluster := regiontest.NewServer(regiontest.Options{Name: "up"}), regiontest.NewServer(regiontest.Options{Name: "down"})
	defer upstream.Close()
	defer cluster.Close()
	up, err := region.APIFor(upstream.Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	down, err := region.APIFor(cluster.Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	agent, err := targets.NewAgent(up, down, syncer.Options{Target: "my-cluster"})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	fmt.Println(agent.Start(ctx), agent.Syncer() == nil)
	// Output: <nil> true
}
