// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package atollprometheus_test

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/account"
	accountv1alpha1 "github.com/atoll-dev/atoll/account/v1alpha1"
	atollprometheus "github.com/atoll-dev/atoll/adapters/prometheus"
	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// A Coordinator with metrics adds an Account to all peers, and also calls the program's own Observer.
func ExampleNew() {
	if err := add(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// Account.catalog.kubecarrier.io ended: Done
	// atoll_fanout_command_duration_seconds
	// atoll_fanout_commands_in_flight
	// atoll_fanout_commands_total
	// atoll_fanout_operation_duration_seconds
	// atoll_fanout_operations_in_flight
}

func add(ctx context.Context) error {
	ring := regiontest.NewRing("ap-south", "eu-west", "us-east") // a real program makes a region.Ring
	defer ring.Close()
	crds, err := config.TypedCRDs()
	if err != nil {
		return err
	}
	if err := ring.AddCRDs(crds...); err != nil {
		return err
	}
	metrics, err := atollprometheus.New(atollprometheus.Options{})
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	if err := registry.Register(metrics); err != nil {
		return err
	}
	coordinator, err := fanout.New(ring, waltest.NewMemory(), fanout.Options{
		Kinds: account.Kinds(),
		Observer: metrics.Fanout(&fanout.Observer{End: func(_ context.Context, e fanout.EndEvent) {
			fmt.Println(e.Kind, "ended:", e.State)
		}}),
	})
	if err != nil {
		return err
	}
	if err := coordinator.InitPeers(ctx); err != nil {
		return err
	}
	acme := &accountv1alpha1.Account{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}
	acme.Spec.Roles = []accountv1alpha1.AccountRole{accountv1alpha1.AccountTenant}
	if _, err := coordinator.Add(ctx, acme, fanout.AddOptions{Target: "us-east"}); err != nil {
		return err
	}
	families, err := registry.Gather()
	for _, f := range families {
		fmt.Println(f.GetName())
	}
	return err
}
