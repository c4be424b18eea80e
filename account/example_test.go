// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/account/v1alpha1"
	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// An Account is added to all peers. Then each peer has the Account's namespace.
func ExampleKinds() {
	if err := addAccount(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output:
	// operation: Done
	// eu: namespace acme of account acme
	// us: namespace acme of account acme
}

func addAccount(ctx context.Context) error {
	ring := regiontest.NewRing("eu", "us")
	defer ring.Close()
	crds, err := config.TypedCRDs()
	if err != nil {
		return err
	}
	if err := ring.AddCRDs(crds...); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "atoll")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	journal, err := wal.Open(filepath.Join(dir, "operations.db"), wal.Options{})
	if err != nil {
		return err
	}
	defer func() { _ = journal.Close() }()

	ops, err := fanout.New(ring, journal, fanout.Options{Kinds: account.Kinds()})
	if err != nil {
		return err
	}
	if err := ops.InitPeers(ctx); err != nil {
		return err
	}
	acme := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "catalog.kubecarrier.io/v1alpha1", "kind": "Account",
		"metadata": map[string]any{"name": "acme"},
		"spec":     map[string]any{"roles": []any{"Tenant"}},
	}}
	op, err := ops.Add(ctx, acme, fanout.AddOptions{})
	if err != nil {
		return err
	}
	fmt.Println("operation:", op.State)
	for peer := range ring.Snapshot().Peers() {
		conn, err := ring.Conn(peer.Name)
		if err != nil {
			return err
		}
		namespaces := conn.Dynamic().Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
		ns, err := namespaces.Get(ctx, "acme", metav1.GetOptions{})
		if err != nil {
			return err
		}
		fmt.Printf("%s: namespace %s of account %s\n", peer.Name, ns.GetName(), ns.GetLabels()[account.Label])
	}
	return nil
}

func ExampleKind() {
	kind := account.Kind()
	fmt.Println(kind.GroupKind(), "exists", kind.Mode)
	// Output: Account.catalog.kubecarrier.io exists Everywhere
}

func ExampleValidateName() {
	fmt.Println(account.ValidateName("acme"))
	fmt.Println(account.ValidateName("acme.corp") != nil)
	// Output:
	// <nil>
	// true
}

// A Controller runs beside the coordinator, or in each region by itself. It restores the objects
// of an Account that are edited or deleted.
func ExampleNewController() {
	controller, err := account.NewController(regiontest.NewRing("eu", "us"), account.ControllerOptions{})
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // at once, in this example
	fmt.Println(controller.Start(ctx))
	// Output: <nil>
}

func ExampleKindWith() {
	rights := account.DefaultRights()
	rights[v1alpha1.AccountTenant] = append(rights[v1alpha1.AccountTenant], rbacv1.PolicyRule{
		APIGroups: []string{"eu-west-1.loodse"}, Resources: []string{"couchdbs"}, Verbs: []string{"create", "get", "list"},
	})
	kind := account.KindWith(rights)
	fmt.Println(kind.Kind, account.RoleName(v1alpha1.AccountTenant))
	// Output: Account kubecarrier-tenant
}

// An Account that is applied in the central plane soon exists in all peers.
func ExampleNewReplicator() {
	if err := replicate(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output:
	// Ready: 2 of 2 peers hold the latest revision
}

func replicate(ctx context.Context) error {
	crds, err := config.TypedCRDs()
	if err != nil {
		return err
	}
	central := regiontest.NewServer(regiontest.Options{Name: "central", CRDs: crds})
	defer central.Close()
	plane, err := region.APIFor(central.Config())
	if err != nil {
		return err
	}
	ring := regiontest.NewRing("eu", "us")
	defer ring.Close()
	if err := ring.AddCRDs(crds...); err != nil {
		return err
	}
	ops, err := fanout.New(ring, waltest.NewMemory(), fanout.Options{Kinds: account.Kinds()})
	if err != nil {
		return err
	}
	if err := ops.InitPeers(ctx); err != nil {
		return err
	}
	complete := make(chan account.Presence, 1)
	replicator, err := account.NewReplicator(plane, ring, ops, account.Options{Observer: &account.Observer{
		Changed: func(_ context.Context, p account.Presence) {
			if p.Complete() {
				complete <- p
			}
		},
	}})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var running errgroup.Group
	running.Go(func() error { return replicator.Start(ctx) })
	acme := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "catalog.kubecarrier.io/v1alpha1", "kind": "Account",
		"metadata": map[string]any{"name": "acme"},
		"spec":     map[string]any{"roles": []any{"Tenant"}},
	}}
	accounts := account.Kind().Resource
	if _, err := plane.Dynamic().Resource(accounts).Create(ctx, acme, metav1.CreateOptions{}); err != nil {
		cancel()
		return errors.Join(err, running.Wait())
	}
	p := <-complete
	fmt.Printf("Ready: %d of %d peers hold the latest revision\n", p.Present, p.Total)
	cancel()
	return running.Wait()
}

// A label selector selects the tenants. The function May selects the regions that are published to
// a tenant.
func ExampleNewCatalog() {
	ring := regiontest.NewRing("eu", "us")
	defer ring.Close()
	plane, err := ring.Conn("eu")
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = account.NewCatalog(plane, ring, account.CatalogOptions{
		Tenants: labels.SelectorFromSet(labels.Set{"tier": "gold"}),
		May:     func(_ *v1alpha1.Account, k region.Key) bool { return k.Provider == "loodse" },
	})
	fmt.Println(err)
	// Output: <nil>
}

func ExampleGather() {
	ring := regiontest.NewRing("eu", "us")
	defer ring.Close()
	if err := ring.Serve("eu", region.Key{Provider: "loodse", Name: "eu-west-1"}); err != nil {
		fmt.Println(err)
		return
	}
	ring.Partition("eu", true)
	offers := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	catalogue, err := account.Gather(context.Background(), ring, []schema.GroupVersionResource{offers},
		account.GatherOptions{Policy: region.BestEffort()})
	fmt.Println(len(catalogue.Entries), "entries, no answer from", catalogue.Unanswered, err)
	// Output: 0 entries, no answer from [eu-west-1.loodse] <nil>
}
