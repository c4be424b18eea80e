// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package howto_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/atoll-dev/atoll/account"
	accountv1alpha1 "github.com/atoll-dev/atoll/account/v1alpha1"
	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// tenants is the controller. A ConfigMap with the label example.com/tenant, in any peer, stands for a tenant. The
// controller adds an Account of its name to all peers.
type tenants struct {
	ring  region.Directory
	ops   *fanout.Coordinator
	added func(name string)
}

// Start runs until ctx ends. It watches each peer while the peer is in the ring.
func (t *tenants) Start(ctx context.Context) error { return region.Engage(ctx, t.ring, t.watch) }

func (t *tenants) watch(ctx context.Context, peer *region.Conn) error {
	all := peer.Dynamic().Resource(configMaps)
	only := func(o metav1.ListOptions) metav1.ListOptions { o.LabelSelector = "example.com/tenant"; return o }
	informer := cache.NewSharedInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return all.List(ctx, only(o)) },
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return all.Watch(ctx, only(o))
		},
	}, &unstructured.Unstructured{}, time.Minute) // an Account that could not be added is retried each minute
	reconcile := func(obj any) {
		if err := t.reconcile(ctx, obj.(*unstructured.Unstructured).GetName()); err != nil {
			log.Printf("peer %s: %v", peer.Peer(), err)
		}
	}
	handler := cache.ResourceEventHandlerFuncs{AddFunc: reconcile, UpdateFunc: func(_, obj any) { reconcile(obj) }}
	if _, err := informer.AddEventHandler(handler); err != nil {
		return err
	}
	informer.RunWithContext(ctx)
	return nil
}

func (t *tenants) reconcile(ctx context.Context, name string) error {
	tenant := &accountv1alpha1.Account{ObjectMeta: metav1.ObjectMeta{Name: name}}
	tenant.Spec.Roles = []accountv1alpha1.AccountRole{accountv1alpha1.AccountTenant}
	_, err := t.ops.Add(ctx, tenant, fanout.AddOptions{})
	if _, held := errors.AsType[*fanout.HeldError](err); held {
		return nil // the Account exists
	}
	if err == nil {
		t.added(name)
	}
	return err
}

// run runs the controller and the parts of Atoll that it needs, until ctx ends or one of them fails.
func run(ctx context.Context, ring region.Directory, journal wal.Log, added func(string)) error {
	ops, err := fanout.New(ring, journal, fanout.Options{Identity: "tenants", Kinds: account.Kinds()})
	if err != nil {
		return err
	}
	if err := ops.InitPeers(ctx); err != nil { // once for each installation; later calls change nothing
		return err
	}
	accounts, err := account.NewController(ring, account.ControllerOptions{})
	if err != nil {
		return err
	}
	controller := &tenants{ring, ops, added}
	running, ctx := errgroup.WithContext(ctx)
	for _, start := range []func(context.Context) error{ops.Start, accounts.Start, controller.Start} {
		running.Go(func() error { return start(ctx) })
	}
	return running.Wait()
}

// A user creates the ConfigMap in one peer. All peers get the Account.
func Example_embed() {
	ring := regiontest.NewRing("eu-west", "us-east", "ap-south") // in memory; region.NewRing connects to real peers
	defer ring.Close()
	dir, err1 := os.MkdirTemp("", "tenants")
	defer func() { _ = os.RemoveAll(dir) }()
	journal, err2 := wal.Open(filepath.Join(dir, "operations.db"), wal.Options{})
	crds, err3 := config.TypedCRDs()
	if err := errors.Join(err1, err2, err3, ring.AddCRDs(crds...)); err != nil {
		log.Panic(err)
	}
	defer func() { _ = journal.Close() }()

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	added := make(chan string, 1)
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, ring, journal, func(name string) { added <- name }) }()

	acme := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "acme", "labels": map[string]any{"example.com/tenant": ""}},
	}}
	usEast, err := ring.Conn("us-east")
	if err != nil {
		log.Panic(err)
	}
	if _, err := usEast.Dynamic().Resource(configMaps).Namespace("default").Create(ctx, acme, metav1.CreateOptions{}); err != nil {
		log.Panic(err)
	}
	select {
	case name := <-added:
		fmt.Println("added:", name)
	case err := <-ended:
		log.Panic(err)
	}
	accounts := accountv1alpha1.GroupVersion.WithResource("accounts")
	for peer := range ring.Snapshot().Peers() {
		conn, err := ring.Conn(peer.Name)
		if err != nil {
			log.Panic(err)
		}
		account, err := conn.Dynamic().Resource(accounts).Get(ctx, "acme", metav1.GetOptions{})
		if err != nil {
			log.Panic(err)
		}
		fmt.Println(peer.Name, account.GetName())
	}
	cancel()
	if err := <-ended; err != nil {
		log.Panic(err)
	}
	// Unordered output:
	// added: acme
	// eu-west acme
	// us-east acme
	// ap-south acme
}
