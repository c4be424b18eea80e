// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientevents "k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/atoll-dev/atoll/adapters/controllerruntime"
	"github.com/atoll-dev/atoll/events"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/central"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/router"
	"github.com/atoll-dev/atoll/router/apiserver"
	"github.com/atoll-dev/atoll/router/proxy"
)

// Each peer of a ring has a cluster.Cluster, whose typed client reads and writes the objects of this peer.
func ExampleNew() {
	if err := inEachPeer(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// eu-west engaged
	// us-east engaged
	// us-east has settings
}

func inEachPeer(ctx context.Context) error {
	ring := regiontest.NewRing("eu-west", "us-east") // a real program makes a region.Ring
	defer ring.Close()
	clusters, err := controllerruntime.New(ring, controllerruntime.Options{})
	if err != nil {
		return err
	}
	stop, err := start(ctx, clusters)
	if err != nil {
		return err
	}
	for _, peer := range []region.PeerName{"eu-west", "us-east"} {
		for {
			_, err := clusters.Get(peer)
			if err == nil {
				break
			} else if !errors.Is(err, controllerruntime.ErrNotEngaged) {
				return err
			}
			time.Sleep(time.Millisecond)
		}
		fmt.Println(peer, "engaged")
	}
	us, err := clusters.Get("us-east")
	if err != nil {
		return err
	}
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}}
	if err := us.GetClient().Create(ctx, settings); err != nil {
		return err
	}
	var all corev1.ConfigMapList
	if err := us.GetAPIReader().List(ctx, &all); err != nil {
		return err
	}
	for _, o := range all.Items {
		fmt.Println("us-east has", o.Name)
	}
	return stop()
}

// start runs the clusters in a manager, beside the controllers of a program. stop ends the manager.
func start(ctx context.Context, clusters *controllerruntime.Clusters) (stop func() error, err error) {
	host := regiontest.NewServer(regiontest.Options{})
	mgr, err := manager.New(host.Config(), manager.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return nil, err
	}
	if err := mgr.Add(clusters); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	return func() error {
		defer host.Close()
		cancel()
		return <-done
	}, nil
}

// One client and one cache have the objects of all regions.
func ExampleConfig() {
	if err := inAllRegions(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// settings@eu.loodse
	// settings@us.loodse
}

// handlerOf returns a handler for the regions eu and us of two peers.
func handlerOf(ring *regiontest.Ring) (http.Handler, error) {
	for name, peer := range map[string]region.PeerName{"eu": "peer-a", "us": "peer-b"} {
		if err := ring.Serve(peer, region.Key{Provider: "loodse", Name: name}); err != nil {
			return nil, err
		}
	}
	routes, err := router.New(ring, router.Options{})
	if err != nil {
		return nil, err
	}
	single, err := proxy.New(routes, func(*http.Request) (router.Identity, error) {
		return router.Impersonate(router.User{Name: "alice"}), nil // only this program reaches the handler
	}, proxy.Options{})
	if err != nil {
		return nil, err
	}
	return apiserver.New(routes, single, apiserver.Options{})
}

func inAllRegions(ctx context.Context) error {
	ring := regiontest.NewRing("peer-a", "peer-b")
	defer ring.Close()
	handler, err := handlerOf(ring)
	if err != nil {
		return err
	}
	all, err := cluster.New(controllerruntime.Config(handler)) // its cache runs after all.Start
	if err != nil {
		return err
	}
	for _, name := range []string{"settings@eu.loodse", "settings@us.loodse"} {
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		if err := all.GetClient().Create(ctx, o); err != nil {
			return err
		}
	}
	var list corev1.ConfigMapList
	if err := all.GetAPIReader().List(ctx, &list, client.InNamespace("default")); err != nil {
		return err
	}
	for _, o := range list.Items {
		fmt.Println(o.Name)
	}
	return nil
}

// The cache of all regions starts while a region is unreachable.
func ExamplePartialStart() {
	if err := withoutARegion(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// the cache has synced
	// missing: [us.loodse]
}

func withoutARegion(ctx context.Context) error {
	ring := regiontest.NewRing("peer-a", "peer-b")
	defer ring.Close()
	handler, err := handlerOf(ring)
	if err != nil {
		return err
	}
	ring.Partition("peer-b", true)
	var start controllerruntime.PartialStart
	all, err := cluster.New(controllerruntime.Config(handler), func(o *cluster.Options) { o.NewCache = start.NewCache })
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- all.Start(ctx) }()
	if _, err = all.GetCache().GetInformer(ctx, &corev1.ConfigMap{}); err == nil && all.GetCache().WaitForCacheSync(ctx) {
		fmt.Println("the cache has synced")
		fmt.Println("missing:", start.Missing())
	}
	cancel()
	return errors.Join(err, <-done)
}

// The recorder of a manager writes the Events about objects in the manager's API server.
func ExampleEmit() {
	server := regiontest.NewServer(regiontest.Options{})
	defer server.Close()
	plane, err := region.APIFor(server.Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	ofManager := clientevents.NewFakeRecorder(100) // a real program calls mgr.GetEventRecorder("my-operator")
	recorder := events.New(events.Options{Emit: controllerruntime.Emit(ofManager, plane)})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- recorder.Start(ctx) }() // mgr.Add(controllerruntime.Loop(recorder.Start))

	observer := recorder.Peers(plane, nil) // for central.PeersOptions
	for len(ofManager.Events) == 0 {       // Events before Start are dropped
		observer.Ready(ctx, central.ReadyEvent{Peer: "eu", Before: "True", Status: "False", Reason: "Unreachable", Message: "dial: timeout"})
		time.Sleep(time.Millisecond)
	}
	fmt.Println(<-ofManager.Events)
	cancel()
	if err := <-done; err != nil {
		fmt.Println(err)
	}
	// Output: Warning Unreachable dial: timeout
}
