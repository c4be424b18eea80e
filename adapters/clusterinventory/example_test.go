// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterinventory_test

import (
	"context"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	inventory "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"github.com/atoll-dev/atoll/adapters/clusterinventory"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// profileCRD serves ClusterProfiles. A real hub has the CRD of the inventory API.
func profileCRD() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "clusterprofiles.multicluster.x-k8s.io"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: inventory.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Kind: "ClusterProfile", ListKind: "ClusterProfileList", Plural: "clusterprofiles", Singular: "clusterprofile",
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: inventory.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)},
				},
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			}},
		},
	}
}

// A ring has a peer for each ClusterProfile. The region comes from a property, and the provider is the same for all.
func ExampleNew() {
	if err := fromProfiles(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// eu [europe-west1.google] eu.example.com
}

func fromProfiles(ctx context.Context) error {
	server := regiontest.NewServer(regiontest.Options{CRDs: []*apiextensionsv1.CustomResourceDefinition{profileCRD()}})
	defer server.Close()
	hub, err := region.APIFor(server.Config()) // a real program has a rest.Config of its hub
	if err != nil {
		return err
	}
	profiles := hub.Dynamic().Resource(inventory.ClusterProfileSchemeGroupVersionResource).Namespace("default")
	profile, err := profiles.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ClusterProfile", "metadata": map[string]any{"name": "eu"},
		"spec": map[string]any{"clusterManager": map[string]any{"name": "google"}},
	}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	profile.Object["status"] = map[string]any{
		"accessProviders": []any{map[string]any{"name": "google", "cluster": map[string]any{"server": "https://eu.example.com"}}},
		"properties":      []any{map[string]any{"name": "location", "value": "europe-west1"}},
	}
	if _, err := profiles.UpdateStatus(ctx, profile, metav1.UpdateOptions{}); err != nil {
		return err
	}
	source, err := clusterinventory.New(hub, clusterinventory.Options{
		Namespace: "default",
		Plugins: []clusterinventory.Plugin{{Name: "google", Exec: clientcmdv1.ExecConfig{
			Command: "/usr/local/bin/gke-gcloud-auth-plugin", APIVersion: "client.authentication.k8s.io/v1beta1", ProvideClusterInfo: true,
		}}},
		Provider: clusterinventory.Field{Value: "google"},
		Region:   clusterinventory.Field{Property: "location"},
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return source.Run(ctx, func(s *region.Snapshot) { // a real program passes the source to region.NewRing
		for peer := range s.Peers() {
			var host string
			_, _ = fmt.Sscan(peer.Credentials.String(), &host)
			fmt.Println(peer.Name, peer.Regions, host)
		}
		cancel()
	})
}

// Each peer of a ring has a ClusterProfile.
func ExampleNewPublisher() {
	if err := toProfiles(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// eu-west managed by atoll
}

func toProfiles(ctx context.Context) error {
	server := regiontest.NewServer(regiontest.Options{CRDs: []*apiextensionsv1.CustomResourceDefinition{profileCRD()}})
	defer server.Close()
	hub, err := region.APIFor(server.Config())
	if err != nil {
		return err
	}
	ring := regiontest.NewRing("eu-west") // a real program makes a region.Ring
	defer ring.Close()
	publisher, err := clusterinventory.NewPublisher(hub, ring, clusterinventory.PublisherOptions{Namespace: "default", Manager: "atoll"})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	ended := make(chan error, 1)
	go func() { ended <- publisher.Start(ctx) }()
	profiles, err := hub.Dynamic().Resource(inventory.ClusterProfileSchemeGroupVersionResource).Namespace("default").Watch(ctx, metav1.ListOptions{})
	if err != nil {
		cancel()
		return err
	}
	event := <-profiles.ResultChan()
	profiles.Stop()
	cancel()
	if p, ok := event.Object.(*unstructured.Unstructured); ok {
		fmt.Println(p.GetName(), "managed by", p.GetLabels()[inventory.LabelClusterManagerKey])
	}
	return <-ended
}
