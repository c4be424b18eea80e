// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	mcbuilder "sigs.k8s.io/multicluster-runtime/pkg/builder"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/atoll-dev/atoll/adapters/controllerruntime"
	"github.com/atoll-dev/atoll/adapters/multicluster"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// A reconciler of multicluster-runtime works in the peers of a ring.
func ExampleNew() {
	if err := reconcileEverywhere(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// reconcile settings in us-east
}

func reconcileEverywhere(ctx context.Context) error {
	ring := regiontest.NewRing("eu-west", "us-east") // a real program makes a region.Ring
	defer ring.Close()
	provider, err := multicluster.New(ring, controllerruntime.Options{})
	if err != nil {
		return err
	}
	host := regiontest.NewServer(regiontest.Options{})
	defer host.Close()
	mgr, err := mcmanager.New(host.Config(), provider, manager.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	err = mcbuilder.ControllerManagedBy(mgr).Named("settings").For(&corev1.ConfigMap{}).
		Complete(mcreconcile.Func(func(_ context.Context, r mcreconcile.Request) (ctrl.Result, error) {
			fmt.Println("reconcile", r.Name, "in", r.ClusterName)
			cancel()
			return ctrl.Result{}, nil
		}))
	if err != nil {
		return err
	}
	us, err := client.New(ring.Server("us-east").Config(), client.Options{})
	if err != nil {
		return err
	}
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}}
	if err := us.Create(ctx, settings); err != nil {
		return err
	}
	return mgr.Start(ctx)
}
