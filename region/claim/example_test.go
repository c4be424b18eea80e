// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package claim_test

import (
	"context"
	"fmt"
	"log"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/claim"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/region/v1alpha1"
)

// The region us-east-1 of loodse is claimed in two peers.
func ExampleNew() {
	if err := arbitrate(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output:
	// eu-west: Conflict, us-east holds it
	// us-east: Bound, us-east holds it
}

func arbitrate(ctx context.Context) error {
	ring := regiontest.NewRing("eu-west", "us-east")
	defer ring.Close()
	crds, err := config.TypedCRDs()
	if err != nil {
		return err
	}
	if err := ring.AddCRDs(crds...); err != nil {
		return err
	}
	plane := regiontest.NewServer(regiontest.Options{})
	defer plane.Close()
	central, err := region.APIFor(plane.Config())
	if err != nil {
		return err
	}

	told := make(chan claim.ReportEvent, 16)
	arbiter, err := claim.New(central, ring, claim.Options{
		Namespace: "default", // in the central plane
		Settle:    10 * time.Millisecond,
		Observer:  &claim.Observer{Reported: func(_ context.Context, e claim.ReportEvent) { told <- e }},
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		if err := arbiter.Start(ctx); err != nil {
			log.Print(err)
		}
	})
	defer running.Wait()
	defer cancel()

	for _, peer := range []region.PeerName{"us-east", "eu-west"} {
		if err := claimRegion(ctx, ring, peer); err != nil {
			return err
		}
		for e := range told {
			if e.Peer == peer && e.Phase != v1alpha1.RegionClaimPending {
				break
			}
		}
	}
	return printClaims(ctx, ring)
}

var claims = v1alpha1.GroupVersion.WithResource("regionclaims")

func claimRegion(ctx context.Context, d region.Directory, peer region.PeerName) error {
	conn, err := d.Conn(peer)
	if err != nil {
		return err
	}
	namespaces := conn.Dynamic().Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	if _, err := namespaces.Create(ctx, object("v1", "Namespace", "loodse"), metav1.CreateOptions{}); err != nil {
		return err
	}
	obj := object("kubecarrier.io/v1alpha1", "RegionClaim", "us-east-1")
	_, err = conn.Dynamic().Resource(claims).Namespace("loodse").Create(ctx, obj, metav1.CreateOptions{})
	return err
}

func printClaims(ctx context.Context, d region.Directory) error {
	for peer := range d.Snapshot().Peers() {
		conn, err := d.Conn(peer.Name)
		if err != nil {
			return err
		}
		obj, err := conn.Dynamic().Resource(claims).Namespace("loodse").Get(ctx, "us-east-1", metav1.GetOptions{})
		if err != nil {
			return err
		}
		phase, _, _ := unstructured.NestedString(obj.Object, "status", "phase")
		holder, _, _ := unstructured.NestedString(obj.Object, "status", "holder", "peer")
		fmt.Printf("%s: %s, %s holds it\n", peer.Name, phase, holder)
	}
	return nil
}

func object(apiVersion, kind, name string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetAPIVersion(apiVersion)
	obj.SetKind(kind)
	obj.SetName(name)
	return obj
}

func ExampleKind() {
	kind := claim.Kind()
	fmt.Println(kind.GroupKind(), "exists", kind.Mode)
	// Output: RegionClaim.kubecarrier.io exists Once
}
