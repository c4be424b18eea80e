// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/account"
	accountv1alpha1 "github.com/atoll-dev/atoll/account/v1alpha1"
	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/region/v1alpha1"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// ring returns three peers in memory that are members of one ring. A program has a region.Ring
// and a wal.File instead.
func ring(ctx context.Context) (*regiontest.Ring, error) {
	ring := regiontest.NewRing("ap-south", "eu-west", "us-east")
	crds, err := config.TypedCRDs()
	if err != nil {
		return nil, err
	}
	if err := ring.AddCRDs(crds...); err != nil {
		return nil, err
	}
	c, err := fanout.New(ring, waltest.NewMemory(), fanout.Options{})
	if err != nil {
		return nil, err
	}
	return ring, c.InitPeers(ctx)
}

func ExampleNewProgress() {
	ctx := context.Background()
	ring, err := ring(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ring.Close()
	progress := fanout.NewProgress(func(p fanout.PeerProgress) {
		if p.Peer == "eu-west" {
			fmt.Println(p.Peer, p.State)
		}
	})
	ops, err := fanout.New(ring, waltest.NewMemory(), fanout.Options{
		Kinds:    account.Kinds(),
		Observer: &fanout.Observer{Step: progress.Step, End: progress.End},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	acme := &accountv1alpha1.Account{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}
	acme.Spec.Roles = []accountv1alpha1.AccountRole{accountv1alpha1.AccountTenant}
	if _, err := ops.Add(ctx, acme, fanout.AddOptions{Target: "us-east"}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// eu-west reserving
	// eu-west held
	// eu-west activating
	// eu-west confirmed
}

func ExampleCoordinator_Plan() {
	ctx := context.Background()
	ring, err := ring(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ring.Close()
	ops, err := fanout.New(ring, waltest.NewMemory(), fanout.Options{Kinds: account.Kinds()})
	if err != nil {
		fmt.Println(err)
		return
	}
	acme := &accountv1alpha1.Account{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}
	acme.Spec.Roles = []accountv1alpha1.AccountRole{accountv1alpha1.AccountTenant}
	plan, err := ops.Plan(ctx, acme, fanout.AddOptions{Target: "us-east"})
	if err != nil {
		fmt.Println("it would fail:", err)
		return
	}
	for outcome := range plan.Peers.All() {
		fmt.Println(outcome.Peer, outcome.Value)
	}
	fmt.Println("measured:", plan.Latency > 0)
	// Output:
	// ap-south Replica
	// eu-west Replica
	// us-east Primary
	// measured: true
}

func ExampleCoordinator_ExplainName() {
	ctx := context.Background()
	ring, err := ring(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ring.Close()
	ops, err := fanout.New(ring, waltest.NewMemory(), fanout.Options{Kinds: account.Kinds()})
	if err != nil {
		fmt.Println(err)
		return
	}
	acme := &accountv1alpha1.Account{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}
	acme.Spec.Roles = []accountv1alpha1.AccountRole{accountv1alpha1.AccountTenant}
	if _, err := ops.Add(ctx, acme, fanout.AddOptions{Target: "us-east"}); err != nil {
		fmt.Println(err)
		return
	}
	e, err := ops.ExplainName(ctx, account.Kind().GroupKind(), types.NamespacedName{Name: "acme"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(e.Text)
	for _, p := range e.Peers {
		fmt.Printf("%s: %s (%s): %s\n", p.Peer, p.Judgement, p.Rule, p.Text)
	}
	// Output:
	// it is committed in us-east and confirmed by every peer that answers
	// ap-south: replica (Activation): it is in effect with revision 1, as its primary in us-east
	// eu-west: replica (Activation): it is in effect with revision 1, as its primary in us-east
	// us-east: primary (I3): it is committed and decides for all peers
}

func ExampleAdmissionPolicy() {
	secrets := fanout.Kind{
		Resource:   schema.GroupVersionResource{Version: "v1", Resource: "secrets"},
		Kind:       "Secret",
		Namespaced: true,
		Mode:       fanout.Everywhere,
		Claim:      fanout.InAnnotation("example.com/claim"),
	}
	for _, obj := range fanout.AdmissionPolicy(secrets) {
		fmt.Println(obj.GetKind(), obj.GetName()) // apply it in every peer
	}
	// Output:
	// ValidatingAdmissionPolicy secrets.claims.fanout.atoll.dev
	// ValidatingAdmissionPolicyBinding secrets.claims.fanout.atoll.dev
}

func ExampleNew() {
	ctx := context.Background()
	ring, err := ring(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ring.Close()
	ops, err := fanout.New(ring, waltest.NewMemory(), fanout.Options{Kinds: account.Kinds()})
	if err != nil {
		fmt.Println(err)
		return
	}

	acme := &accountv1alpha1.Account{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}
	acme.Spec.Roles = []accountv1alpha1.AccountRole{accountv1alpha1.AccountTenant}
	op, err := ops.Add(ctx, acme, fanout.AddOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("account", op.State)

	db := &v1alpha1.ServiceCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: "db-1"}}
	db.Spec.KubeconfigSecret.Name = "db-1"
	op, err = ops.Add(ctx, db, fanout.AddOptions{Target: "eu-west", Durable: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	for outcome := range op.Peers.All() {
		fmt.Println(outcome.Peer, outcome.Value)
	}

	_, err = ops.Add(ctx, db, fanout.AddOptions{Target: "us-east"})
	if held, ok := errors.AsType[*fanout.HeldError](err); ok {
		fmt.Println("db-1 is in", held.Holder)
	}
	// Output:
	// account Done
	// ap-south Guard
	// eu-west Primary
	// us-east Guard
	// db-1 is in eu-west
}
