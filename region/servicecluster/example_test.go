// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package servicecluster_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/netip"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/account"
	accountv1alpha1 "github.com/atoll-dev/atoll/account/v1alpha1"
	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/claim"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/region/servicecluster"
	"github.com/atoll-dev/atoll/region/v1alpha1"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// The cluster us-east-1 of loodse gets a name in all peers and a region, and is probed.
func ExampleNew() {
	if err := becomeReady(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output:
	// the operation: Done
	// us-east-1.loodse: Ready (Complete)
}

// A kubeconfig that leads to the loopback is refused, whatever the server's name resolves to.
func ExampleNewProbe() {
	const kubeconfig = `{apiVersion: v1, kind: Config, contexts: [{name: c, context: {cluster: c, user: u}}],
		clusters: [{name: c, cluster: {server: "https://127.0.0.1:6443"}}], users: [{name: u, user: {token: t}}]}`
	_, err := servicecluster.NewProbe(servicecluster.Addresses{})(context.Background(), []byte(kubeconfig))
	fmt.Println(errors.Is(err, servicecluster.ErrKubeconfig), errors.Is(err, servicecluster.ErrAddress))
	// Output: true true
}

func becomeReady(ctx context.Context) error {
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
	arbiter, err := claim.New(central, ring, claim.Options{Namespace: "default", Settle: 10 * time.Millisecond})
	if err != nil {
		return err
	}
	told := make(chan servicecluster.ReportEvent, 64)
	controller, err := servicecluster.New(ring, servicecluster.Options{
		// The cluster of this example listens on the loopback. Probe is not set in a program.
		Probe:    servicecluster.NewProbe(servicecluster.Addresses{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}),
		Observer: &servicecluster.Observer{Reported: func(_ context.Context, e servicecluster.ReportEvent) { told <- e }},
	})
	if err != nil {
		return err
	}
	coordinator, err := fanout.New(ring, waltest.NewMemory(), fanout.Options{Kinds: account.Kinds()})
	if err != nil {
		return err
	}
	if err := coordinator.InitPeers(ctx); err != nil {
		return err
	}

	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	for _, start := range []func(context.Context) error{arbiter.Start, controller.Start, coordinator.Start} {
		running.Go(func() {
			if err := start(ctx); err != nil {
				log.Print(err)
			}
		})
	}
	defer running.Wait()
	defer cancel()

	cluster := regiontest.NewServer(regiontest.Options{})
	defer cluster.Close()
	if err := register(ctx, ring, coordinator, cluster); err != nil {
		return err
	}
	for e := range told {
		if e.Ready == metav1.ConditionTrue {
			fmt.Printf("%s: %s (%s)\n", e.Region, e.Phase, e.Reason)
			return nil
		}
	}
	return nil
}

// register adds the Account and its ServiceCluster to all peers, and the kubeconfig of the cluster to the peer us-east.
func register(ctx context.Context, ring region.Directory, coordinator *fanout.Coordinator, cluster *regiontest.Server) error {
	kubeconfig, err := cluster.Listen(ctx)
	if err != nil {
		return err
	}
	loodse := &accountv1alpha1.Account{ObjectMeta: metav1.ObjectMeta{Name: "loodse"}}
	loodse.Spec.Roles = []accountv1alpha1.AccountRole{accountv1alpha1.AccountProvider}
	if _, err := coordinator.Add(ctx, loodse, fanout.AddOptions{Target: "us-east"}); err != nil {
		return err
	}
	conn, err := ring.Conn("us-east")
	if err != nil {
		return err
	}
	secret := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "us-east-1"},
		"stringData": map[string]any{servicecluster.SecretKey: string(kubeconfig)},
	}}
	secrets := conn.Dynamic().Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace("loodse")
	if _, err := secrets.Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		return err
	}
	op, err := coordinator.Add(ctx, &v1alpha1.ServiceCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "loodse", Name: "us-east-1"},
		Spec:       v1alpha1.ServiceClusterSpec{KubeconfigSecret: v1alpha1.ObjectReference{Name: "us-east-1"}},
	}, fanout.AddOptions{Target: "us-east"})
	if err != nil {
		return err
	}
	fmt.Println("the operation:", op.State)
	return nil
}
