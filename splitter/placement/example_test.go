// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/atoll-dev/atoll/config"
	atollregion "github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/placement"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
	syncerv1alpha1 "github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// Choose selects two clusters in different zones. When one of them drains, only that one is
// replaced.
func ExampleChoose() {
	policy := v1alpha1.PlacementPolicySpec{MaxClusters: 2, SpreadBy: []string{"topology.kubernetes.io/zone"}}
	in := func(zone string) map[string]string { return map[string]string{"topology.kubernetes.io/zone": zone} }
	clusters := []splitter.Cluster{{Name: "a", Labels: in("1")}, {Name: "b", Labels: in("1")}, {Name: "c", Labels: in("2")}}
	chosen, err := placement.Choose(policy, "web", clusters, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(chosen)

	clusters[0].State = splitter.Draining
	chosen, err = placement.Choose(policy, "web", clusters, chosen)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(chosen)
	// Output:
	// [a c]
	// [b c]
}

// Tolerate changes the State of a cluster that objects of a policy have to leave because of a taint.
func ExampleTolerate() {
	added := metav1.NewTime(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	clusters := []splitter.Cluster{{Name: "a", Taints: []syncerv1alpha1.Taint{{Key: "repair", Effect: corev1.TaintEffectNoExecute, TimeAdded: &added}}}}
	tolerations := []v1alpha1.Toleration{{Key: "repair", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))}}

	during, again := placement.Tolerate(tolerations, clusters, added.Add(time.Minute))
	fmt.Printf("after a minute: %s, for another %s\n", during[0].State, again)
	after, _ := placement.Tolerate(tolerations, clusters, added.Add(5*time.Minute))
	fmt.Printf("after 5 minutes: %s\n", after[0].State)
	// Output:
	// after a minute: Holding, for another 4m0s
	// after 5 minutes: Draining
}

// A Deployment is placed in two clusters, with the ConfigMap that its pods refer to.
func ExampleNew() {
	if err := placeInMemory(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output:
	// Deployment web: cluster-1,cluster-2
	// ConfigMap settings: cluster-1,cluster-2
}

func placeInMemory(ctx context.Context) error {
	crd, err := config.CRD("placementpolicies.splitter.atoll.dev")
	if err != nil {
		return err
	}
	server := regiontest.NewServer(regiontest.Options{CRDs: []*apiextensionsv1.CustomResourceDefinition{crd}})
	defer server.Close()
	api, err := atollregion.APIFor(server.Config())
	if err != nil {
		return err
	}
	placed, err := placement.New(api, splitter.StaticClusters("cluster-1", "cluster-2"), placement.Options{})
	if err != nil {
		return err
	}
	split, err := splitter.New(api, splitter.StaticClusters("cluster-1", "cluster-2"), splitter.Options{Place: placement.Place})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var running errgroup.Group
	running.Go(func() error { return placed.Start(ctx) })
	running.Go(func() error { return split.Start(ctx) })
	err = placesOverTime(ctx, api)
	cancel()
	return errors.Join(err, running.Wait())
}

func placesOverTime(ctx context.Context, api atollregion.API) error {
	named := func(apiVersion, kind, name string, spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name}, "spec": spec}}
	}
	app := map[string]any{"app": "web"}
	web := named("apps/v1", "Deployment", "web", map[string]any{
		"replicas": int64(6), "selector": map[string]any{"matchLabels": app},
		"template": map[string]any{"metadata": map[string]any{"labels": app}, "spec": map[string]any{
			"containers": []any{map[string]any{"name": "web", "image": "web"}},
			"volumes":    []any{map[string]any{"name": "settings", "configMap": map[string]any{"name": "settings"}}},
		}},
	})
	settings := named("v1", "ConfigMap", "settings", nil)
	delete(settings.Object, "spec")
	policy := named("splitter.atoll.dev/v1alpha1", "PlacementPolicy", "everywhere", map[string]any{"dependents": true})
	if _, err := api.Dynamic().Resource(policies).Namespace("default").Create(ctx, policy, metav1.CreateOptions{}); err != nil {
		return err
	}
	if _, err := api.Dynamic().Resource(configMaps).Namespace("default").Create(ctx, settings, metav1.CreateOptions{}); err != nil {
		return err
	}
	if _, err := api.Dynamic().Resource(deployments).Namespace("default").Create(ctx, web, metav1.CreateOptions{}); err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		// The Controller places the ConfigMap after the Deployment that refers to it.
		settings, err := api.Dynamic().Resource(configMaps).Namespace("default").Get(ctx, "settings", metav1.GetOptions{})
		if err != nil || settings.GetAnnotations()[v1alpha1.PlacementAnnotation] == "" {
			return false, err
		}
		web, err := api.Dynamic().Resource(deployments).Namespace("default").Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		fmt.Println("Deployment web:", web.GetAnnotations()[v1alpha1.PlacementAnnotation])
		fmt.Println("ConfigMap settings:", settings.GetAnnotations()[v1alpha1.PlacementAnnotation])
		return true, nil
	})
}
