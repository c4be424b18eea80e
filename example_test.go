// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package atoll_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/account"
	accountv1alpha1 "github.com/atoll-dev/atoll/account/v1alpha1"
	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region/regiontest"
	regionv1alpha1 "github.com/atoll-dev/atoll/region/v1alpha1"
	"github.com/atoll-dev/atoll/wal"
)

func Example() {
	dir, err := os.MkdirTemp("", "atoll")
	check(err)
	defer func() { check(os.RemoveAll(dir)) }()
	tenancy(context.Background(), filepath.Join(dir, "operations.db"))
	// Output: acme/db-1 belongs to eu-west
}

// tenancy is the program of README.md: an account in every peer, and a name that only one of them may have.
func tenancy(ctx context.Context, path string) {
	ring := regiontest.NewRing("eu-west", "us-east", "ap-south") // in memory; region.NewRing connects to real ones
	defer ring.Close()
	crds, err := config.TypedCRDs()
	check(err)
	check(ring.AddCRDs(crds...))
	journal, err := wal.Open(path, wal.Options{})
	check(err)
	defer journal.Close()
	ops, err := fanout.New(ring, journal, fanout.Options{Kinds: account.Kinds()})
	check(err)
	check(ops.InitPeers(ctx))

	acme := &accountv1alpha1.Account{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}
	acme.Spec.Roles = []accountv1alpha1.AccountRole{accountv1alpha1.AccountTenant}
	_, err = ops.Add(ctx, acme, fanout.AddOptions{}) // the same in all three
	check(err)

	db := &regionv1alpha1.ServiceCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: "db-1"}}
	db.Spec.KubeconfigSecret.Name = "db-1"
	_, err = ops.Add(ctx, db, fanout.AddOptions{Target: "eu-west", Durable: true}) // in one, and its name reserved in the others
	check(err)
	_, err = ops.Add(ctx, db, fanout.AddOptions{Target: "us-east"})
	if held, ok := errors.AsType[*fanout.HeldError](err); ok {
		fmt.Println(held.Key, "belongs to", held.Holder)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
