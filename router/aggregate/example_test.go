// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/router"
	"github.com/atoll-dev/atoll/router/aggregate"
)

var (
	euWest = region.Key{Provider: "loodse", Name: "eu-west-1"}
	euEast = region.Key{Provider: "loodse", Name: "eu-east-1"}
)

// exampleRing returns two peers that serve one region each. Each region has CouchDBs in its own API
// group.
func exampleRing() (*regiontest.Ring, error) {
	ring := regiontest.NewRing("west", "east")
	for peer, k := range map[region.PeerName]region.Key{"west": euWest, "east": euEast} {
		if err := ring.Serve(peer, k); err != nil {
			return nil, err
		}
		if err := ring.Server(peer).AddCRD(couchCRD(k)); err != nil {
			return nil, err
		}
	}
	return ring, nil
}

// The API shows CouchDB.eu-west-1.loodse and CouchDB.eu-east-1.loodse as CouchDB.loodse.
func ExampleNew() {
	ring, err := exampleRing()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ring.Close()
	routes, err := router.New(ring, router.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	regions, err := aggregate.Regions(routes, router.Self(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	api, err := aggregate.New(regions, aggregate.Options{Map: aggregate.ByProvider("loodse")})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	couchdbs := api.Dynamic().Resource(schema.GroupVersionResource{Group: "loodse", Version: "v1", Resource: "couchdbs"}).Namespace("default")
	for _, k := range []region.Key{euWest, euEast} {
		if _, err := couchdbs.Create(ctx, in(k, couchDB("orders")), metav1.CreateOptions{}); err != nil {
			fmt.Println(err)
			return
		}
	}
	list, err := couchdbs.List(ctx, metav1.ListOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, o := range list.Items {
		k, _ := aggregate.RegionOf(&o)
		fmt.Println(o.GetAPIVersion(), o.GetKind(), o.GetName(), "in", k)
	}
	_, err = couchdbs.Get(ctx, "orders", metav1.GetOptions{})
	fmt.Println("by its name alone:", apierrors.ReasonForError(err))
	one, err := couchdbs.Get(ctx, "orders@eu-west-1.loodse", metav1.GetOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("by name and region:", one.GetName())
	// Output:
	// loodse/v1 CouchDB orders in eu-east-1.loodse
	// loodse/v1 CouchDB orders in eu-west-1.loodse
	// by its name alone: Conflict
	// by name and region: orders
}

// A server shares the watches of each of its callers. Here two watches of one caller cost the region one watch.
func ExampleNewSharing() {
	ring, err := exampleRing()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ring.Close()
	routes, err := router.New(ring, router.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	sharing, err := aggregate.NewSharing(aggregate.SharingOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error)
	go func() { ended <- sharing.Start(ctx) }()
	<-sharing.Started()
	caller := router.Impersonate(router.User{Name: "jane", Groups: []string{"readers"}})
	regions, err := aggregate.Regions(routes, caller, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	api, err := aggregate.New(regions, aggregate.Options{Sharing: sharing, Identity: caller.Fingerprint()})
	if err != nil {
		fmt.Println(err)
		return
	}
	opts := metav1.ListOptions{SendInitialEvents: new(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true}
	for range 2 {
		w, err := api.Reader("", schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).WatchJSON(ctx, aggregate.Encoding{}, opts)
		if err != nil {
			fmt.Println(err)
			return
		}
		for e := range w.ResultChan() {
			if e.Type == watch.Bookmark {
				fmt.Println("all initial events have arrived")
				break
			}
		}
	}
	watches := 0
	for _, r := range ring.Server("west").Requests() {
		if r.Verb == "watch" && r.Resource == "namespaces" {
			watches++
		}
	}
	fmt.Println("watches of the region west:", watches)
	cancel()
	fmt.Println(<-ended)
	// Output:
	// all initial events have arrived
	// all initial events have arrived
	// watches of the region west: 1
	// <nil>
}

// Two replicas of a server share a key, so a list that began at one of them continues at the other. The second replica
// has already been given the next key.
func ExampleNewKeyring() {
	ring, err := exampleRing()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ring.Close()
	routes, err := router.New(ring, router.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	regions, err := aggregate.Regions(routes, router.Self(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	now, next := []byte("16 random bytes and more"), []byte("other random bytes")
	var token string
	for _, keys := range [][][]byte{{now}, {next, now}} {
		keyring, err := aggregate.NewKeyring(keys...)
		if err != nil {
			fmt.Println(err)
			return
		}
		replica, err := aggregate.New(regions, aggregate.Options{Keys: keyring})
		if err != nil {
			fmt.Println(err)
			return
		}
		page, err := replica.Reader("", namespaces).ListAll(context.Background(), metav1.ListOptions{Limit: 4, Continue: token})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(len(page.Items), "namespaces")
		token = page.GetContinue()
	}
	// Output:
	// 4 namespaces
	// 4 namespaces
}

// If a region is unreachable, the list has the objects of the other regions, and the Report names the missing
// region.
func ExampleWithReport() {
	west, east := regiontest.NewServer(regiontest.Options{}), regiontest.NewServer(regiontest.Options{})
	defer west.Close()
	defer east.Close()
	east.Partition(true)
	set := &aggregate.Members{}
	var members []aggregate.Member
	for k, server := range map[region.Key]*regiontest.Server{euWest: west, euEast: east} {
		client, err := dynamic.NewForConfig(server.Config())
		if err != nil {
			fmt.Println(err)
			return
		}
		members = append(members, aggregate.Member{Region: k, Client: client})
	}
	if err := set.Put(members...); err != nil {
		fmt.Println(err)
		return
	}
	api, err := aggregate.New(set, aggregate.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, report := aggregate.WithReport(aggregate.WithPolicy(context.Background(), aggregate.BestEffort()))
	list, err := api.Dynamic().Resource(namespaces).List(ctx, metav1.ListOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(list.Items), "namespaces, complete:", report.Complete())
	fmt.Println(report.Warnings())
	// Output:
	// 4 namespaces, complete: false
	// [region eu-east-1.loodse: Unreachable]
}

// A program can give the regions and their clients itself. Each region may occur once.
func ExampleFixed() {
	server := regiontest.NewServer(regiontest.Options{})
	defer server.Close()
	client, err := dynamic.NewForConfig(server.Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = aggregate.Fixed(aggregate.Member{Region: euWest, Client: client}, aggregate.Member{Region: euWest, Client: client})
	fmt.Println(err)
	set, err := aggregate.Fixed(aggregate.Member{Region: euWest, Client: client})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(set.Members()), "region")
	// Output:
	// aggregate: region eu-west-1.loodse is given twice
	// 1 region
}

// ExampleRegions selects the regions of a caller by a filter.
func ExampleRegions() {
	ring, err := exampleRing()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ring.Close()
	routes, err := router.New(ring, router.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	set, err := aggregate.Regions(routes, router.Caller("token-of-alice"), func(k region.Key) bool { return k != euWest })
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range set.Members() {
		fmt.Println(m.Region)
	}
	_, err = aggregate.Regions(routes, router.Identity{}, nil)
	fmt.Println("nobody is refused:", err != nil)
	// Output:
	// eu-east-1.loodse
	// nobody is refused: true
}

// An object's annotation names its region.
func ExampleRegionOf() {
	o := &unstructured.Unstructured{}
	o.SetAnnotations(map[string]string{aggregate.RegionAnnotation: "eu-west-1.loodse"})
	fmt.Println(aggregate.RegionOf(o))
	// Output:
	// eu-west-1.loodse true
}

// The callers of one server share a budget; each may take a quarter of it.
func ExampleNewBudget() {
	budget, err := aggregate.NewBudget(64 << 20)
	if err != nil {
		fmt.Println(err)
		return
	}
	ring, err := exampleRing()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ring.Close()
	routes, err := router.New(ring, router.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, token := range []string{"token-of-alice", "token-of-bob"} {
		regions, err := aggregate.Regions(routes, router.Caller(token), nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		if _, err = aggregate.New(regions, aggregate.Options{Budget: budget}); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println("two callers of one budget")
	// Output: two callers of one budget
}
