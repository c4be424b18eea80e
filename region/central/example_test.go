// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package central_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/central"
	masterv1alpha1 "github.com/atoll-dev/atoll/region/master/v1alpha1"
	"github.com/atoll-dev/atoll/region/regiontest"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// newPlane returns a central plane in memory.
func newPlane(names ...string) *regiontest.Server {
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, name := range names {
		crd, err := config.CRD(name)
		check(err)
		crds = append(crds, crd)
	}
	return regiontest.NewServer(regiontest.Options{Name: "plane", CRDs: crds})
}

func apply(ctx context.Context, api region.API, manifest string) {
	obj := &unstructured.Unstructured{}
	check(yaml.Unmarshal([]byte(manifest), &obj.Object))
	gvr := map[string]schema.GroupVersionResource{
		"Peer":        masterv1alpha1.GroupVersion.WithResource("peers"),
		"KubeCarrier": {Group: "operator.kubecarrier.io", Version: "v1alpha1", Resource: "kubecarriers"},
	}[obj.GetKind()]
	_, err := api.Dynamic().Resource(gvr).Apply(ctx, obj.GetName(), obj, metav1.ApplyOptions{FieldManager: "example"})
	check(err)
}

const (
	peers    = "peers.master.kubecarrier.io"
	carriers = "kubecarriers.operator.kubecarrier.io"
	claims   = "regionclaims.kubecarrier.io"
)

// With a KubeCarrier that is a master, the Peer local is created and accepted, and its status is Ready.
func ExampleNewMaster() {
	plane := newPlane(peers, carriers, claims)
	defer plane.Close()
	api, err := region.APIFor(plane.Config())
	check(err)
	local, err := region.FromConfig(plane.Config()) // rest.InClusterConfig() in a real program
	check(err)

	master, err := central.NewMaster(api, func(ctx context.Context) error {
		source, err := central.New(api, central.Options{Local: local})
		if err != nil {
			return err
		}
		ring, err := region.NewRing(source, region.Options{})
		if err != nil {
			return err
		}
		keeper, err := central.NewPeers(source, ring, central.PeersOptions{})
		if err != nil {
			return err
		}
		var loops sync.WaitGroup
		defer loops.Wait()
		loops.Go(func() { _ = keeper.Start(ctx) })
		return ring.Start(ctx)
	}, central.MasterOptions{})
	check(err)

	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = master.Start(ctx) })
	apply(ctx, api, `
apiVersion: operator.kubecarrier.io/v1alpha1
kind: KubeCarrier
metadata:
  name: kubecarrier
spec:
  master: true
`)
	for phase := ""; phase != "Ready"; time.Sleep(10 * time.Millisecond) {
		peer, err := api.Dynamic().Resource(masterv1alpha1.GroupVersion.WithResource("peers")).Get(ctx, "local", metav1.GetOptions{})
		if err == nil {
			phase, _, _ = unstructured.NestedString(peer.Object, "status", "phase")
		}
	}
	fmt.Println("local is Ready")
	cancel()
	wg.Wait()
	// Output: local is Ready
}

// A program that only routes reads the decisions of Peers.
func ExampleNew() {
	plane := newPlane(peers)
	defer plane.Close()
	api, err := region.APIFor(plane.Config())
	check(err)
	ctx, cancel := context.WithCancel(context.Background())
	apply(ctx, api, `
apiVersion: master.kubecarrier.io/v1alpha1
kind: Peer
metadata:
  name: eu-west
spec:
  kubeconfigSecret:
    name: eu-west-kubeconfig
`)
	source, err := central.New(api, central.Options{Trust: region.Trust{}})
	check(err)
	ring, err := region.NewRing(source, region.Options{})
	check(err)
	var wg sync.WaitGroup
	wg.Go(func() { _ = ring.Start(ctx) })
	<-ring.Synced()
	for peer := range ring.Snapshot().Peers() {
		_, err := ring.Conn(peer.Name)
		fmt.Println(err)
	}
	cancel()
	wg.Wait()
	// Output: peer eu-west: connect: the Peer was not accepted yet
}

// Peers reports the condition Ready of each Peer.
func ExampleNewPeers() {
	plane := newPlane(peers, carriers, claims)
	defer plane.Close()
	api, err := region.APIFor(plane.Config())
	check(err)
	source, err := central.New(api, central.Options{})
	check(err)
	ring, err := region.NewRing(source, region.Options{})
	check(err)
	ctx, cancel := context.WithCancel(context.Background())
	events := make(chan central.ReadyEvent, 10)
	keeper, err := central.NewPeers(source, ring, central.PeersOptions{Observer: &central.Observer{
		Ready: func(_ context.Context, e central.ReadyEvent) { events <- e },
	}})
	check(err)
	var wg sync.WaitGroup
	wg.Go(func() { _ = ring.Start(ctx) })
	wg.Go(func() { _ = keeper.Start(ctx) })
	apply(ctx, api, `
apiVersion: master.kubecarrier.io/v1alpha1
kind: Peer
metadata:
  name: eu-west
`)
	e := <-events
	fmt.Println(e.Peer, e.Status, e.Reason)
	fmt.Println(e.Message)
	cancel()
	wg.Wait()
	// Output:
	// eu-west False KubeconfigInvalid
	// spec.kubeconfigSecret is missing; name the Secret that holds the kubeconfig of eu-west
}

// A program with its own kubeconfigs reads from the plane which peer serves a region.
func ExampleNewResolver() {
	ctx := context.Background()
	server := newPlane(peers)
	defer server.Close()
	plane, err := region.APIFor(server.Config())
	check(err)
	resolver, err := central.NewResolver(plane)
	check(err)
	_, err = resolver.Resolve(ctx, region.Key{Provider: "loodse", Name: "eu-west-1"})
	fmt.Println(err)
	// Output: region eu-west-1.loodse: list Peers: unknown region
}
