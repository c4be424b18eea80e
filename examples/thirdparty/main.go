// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Thirdparty is a small controller that uses Atoll. For each ConfigMap of a region with the label example.com/wants=cluster
// it adds a ServiceCluster of this name, if no other peer has one, and writes the outcome into the ConfigMap.
package main

import (
	"context"
	"errors"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/v1alpha1"
	"github.com/atoll-dev/atoll/router"
	"github.com/atoll-dev/atoll/wal"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: thirdparty PEERS-FILE STATE-DIRECTORY NAME.PROVIDER")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	if err := run(ctx, os.Args[1], os.Args[2], os.Args[3]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, peers, state, name string) error {
	key, err1 := region.ParseKey(name)
	source, err2 := region.FromFile(peers, region.Trust{})
	journal, err3 := wal.Open(filepath.Join(state, "operations.db"), wal.Options{})
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	defer func() { _ = journal.Close() }()
	ring, err1 := region.NewRing(source, region.Options{})
	ops, err2 := fanout.New(ring, journal, fanout.Options{Kinds: account.Kinds()})
	routes, err3 := router.New(ring, router.Options{})
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, start := range []func(context.Context) error{ring.Start, ops.Start, routes.Start, (&controller{ops, routes, key}).Start} {
		g.Go(func() error { return start(ctx) })
	}
	return g.Wait()
}

type controller struct {
	ops    *fanout.Coordinator
	routes *router.Router
	key    region.Key
}

// Start settles each ConfigMap of the region when it changes, and once a minute.
func (c *controller) Start(ctx context.Context) error {
	self, err := c.routes.Client(c.key, router.Self())
	if err != nil {
		return err
	}
	all := self.Dynamic().Resource(configMaps)
	list := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return all.List(ctx, o) }
	informer := cache.NewSharedIndexInformer(&cache.ListWatch{ListWithContextFunc: list, WatchFuncWithContext: all.Watch}, &unstructured.Unstructured{}, time.Minute, nil)
	settle := func(obj any) {
		if err := c.settle(ctx, obj.(*unstructured.Unstructured)); err != nil {
			log.Print(err)
		}
	}
	if _, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: settle, UpdateFunc: func(_, obj any) { settle(obj) }}); err == nil {
		informer.RunWithContext(ctx)
	}
	return err
}

// settle adds the ServiceCluster in the peer that serves the region, and writes the outcome as the tenant.
func (c *controller) settle(ctx context.Context, wanted *unstructured.Unstructured) error {
	if _, done, _ := unstructured.NestedString(wanted.Object, "data", "outcome"); done || wanted.GetLabels()["example.com/wants"] != "cluster" {
		return nil
	}
	route, err := c.routes.Lookup(ctx, c.key)
	if err != nil {
		return err
	}
	cluster := &v1alpha1.ServiceCluster{ObjectMeta: metav1.ObjectMeta{Namespace: wanted.GetNamespace(), Name: wanted.GetName()}}
	cluster.Spec.KubeconfigSecret.Name = wanted.GetName()
	outcome := "yours"
	if _, err := c.ops.Add(ctx, cluster, fanout.AddOptions{Target: route.Peer}); err != nil {
		if _, held := errors.AsType[*fanout.HeldError](err); !held {
			return err
		}
		outcome = "taken"
	}
	tenant, err := c.routes.Client(c.key, router.Impersonate(router.User{Name: "tenant-" + wanted.GetNamespace()}))
	if err != nil {
		return err
	}
	_, err = tenant.Dynamic().Resource(configMaps).Namespace(wanted.GetNamespace()).Patch(ctx, wanted.GetName(),
		types.MergePatchType, []byte(`{"data":{"outcome":"`+outcome+`"}}`), metav1.PatchOptions{})
	return err
}
