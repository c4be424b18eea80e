// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/account"
	accountv1alpha1 "github.com/atoll-dev/atoll/account/v1alpha1"
	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/region/v1alpha1"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// ring makes three peers in memory that know one another. A program has a
// region.Ring and a wal.File instead.
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
	op, err = ops.Add(ctx, db, fanout.AddOptions{Target: "eu-west"})
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
