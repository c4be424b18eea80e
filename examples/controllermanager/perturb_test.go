// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/region/regiontest/perturb"
)

// secretMaker is an ordinary reconciler of controller-runtime: it keeps a Secret with the name and
// content of each ConfigMap.
type secretMaker struct {
	client.Client

	watchesSecrets bool // without it, a failed deletion of a Secret is never retried
}

// Reconcile implements reconcile.Reconciler.
func (m secretMaker) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	secret := corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name}}
	var source corev1.ConfigMap
	err := m.Get(ctx, r.NamespacedName, &source)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return reconcile.Result{}, err
	case err != nil:
		return reconcile.Result{}, client.IgnoreNotFound(m.Delete(ctx, &secret))
	}
	_, err = ctrl.CreateOrUpdate(ctx, m.Client, &secret, func() error {
		secret.Data = map[string][]byte{}
		for k, v := range source.Data {
			secret.Data[k] = []byte(v)
		}
		return nil
	})
	return reconcile.Result{}, err
}

func (m secretMaker) run(ctx context.Context, access perturb.Access) error {
	again := true // the controller's name is reused by every run of this process
	manager, err := ctrl.NewManager(access("here"), ctrl.Options{
		Metrics:    server.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: &again},
	})
	if err != nil {
		return err
	}
	m.Client = manager.GetClient()
	builder := ctrl.NewControllerManagedBy(manager).For(&corev1.ConfigMap{})
	if m.watchesSecrets {
		builder = builder.Watches(&corev1.Secret{}, &handler.EnqueueRequestForObject{})
	}
	if err := builder.Complete(m); err != nil {
		return err
	}
	return manager.Start(ctx)
}

// An unmodified controller of controller-runtime passes the perturbation plans. A controller that
// does not watch the Secrets that it creates fails a plan: a Secret is left over.
func TestPlansOfAController(t *testing.T) {
	step := func(name string, do func(context.Context, kubernetes.Interface) error) perturb.Step {
		return perturb.Step{Name: name, Do: func(ctx context.Context, access perturb.Access) error {
			c, err := kubernetes.NewForConfig(access("here"))
			if err != nil {
				return err
			}
			return do(ctx, c)
		}}
	}
	put := func(value string) func(context.Context, kubernetes.Interface) error {
		return func(ctx context.Context, c kubernetes.Interface) error {
			source := clientcorev1.ConfigMap("a", "default").WithData(map[string]string{"key": value})
			_, err := c.CoreV1().ConfigMaps("default").Apply(ctx, source, metav1.ApplyOptions{FieldManager: "user", Force: true})
			return err
		}
	}
	scenario := func(m secretMaker) perturb.Scenario {
		return perturb.Scenario{
			Servers: func() (map[string]perturb.Server, error) {
				return map[string]perturb.Server{"here": regiontest.NewServer(regiontest.Options{Name: "here"})}, nil
			},
			Loops: []perturb.Loop{{Name: "secrets", Run: m.run}},
			Script: []perturb.Step{
				step("make", put("1")),
				step("change", put("2")),
				step("delete", func(ctx context.Context, c kubernetes.Interface) error {
					return client.IgnoreNotFound(c.CoreV1().ConfigMaps("default").Delete(ctx, "a", metav1.DeleteOptions{}))
				}),
			},
		}
	}
	report := perturb.Explore(t, scenario(secretMaker{watchesSecrets: true}), perturb.Options{})
	require.Equal(t, report.Plans, report.Runs)

	blind := perturb.Find(t, scenario(secretMaker{}), perturb.Options{})
	require.NotEmpty(t, blind.Failures)
	require.Equal(t, "CrashBefore at secrets delete secrets default/a at here #1", blind.Failures[0].Plan.String())
	require.ErrorContains(t, blind.Failures[0].Err, "secrets default/a at here is left over")
}
