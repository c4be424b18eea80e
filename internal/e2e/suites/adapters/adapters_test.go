// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package adapters_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	mcbuilder "sigs.k8s.io/multicluster-runtime/pkg/builder"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	mc "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/atoll-dev/atoll/adapters/controllerruntime"
	"github.com/atoll-dev/atoll/adapters/multicluster"
	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router"
	"github.com/atoll-dev/atoll/router/apiserver"
	"github.com/atoll-dev/atoll/router/proxy"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(planetest.Run(m))
}

// rights are all that the reconciler needs in a peer, and the read of the UID by which Atoll knows the peer's cluster.
const rights = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reconciler}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [get, list, watch]}
- {apiGroups: [""], resources: [secrets], verbs: [create]}
- {apiGroups: [""], resources: [namespaces], resourceNames: [kube-system], verbs: [get]}
`

// start runs a blocking function until the test ends.
func start(t *testing.T, run func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
}

// A reconciler of multicluster-runtime keeps a Secret for each ConfigMap in three planes, with the rights above alone. One
// plane is down at the start, one gets other credentials, is killed and comes back, and one leaves.
func TestReconcilersFollowThePlanes(t *testing.T) {
	var options []plane.Options
	for _, name := range plane.Names(3) {
		options = append(options, plane.Options{Name: name})
	}
	planes := planetest.NewAll(t, options...)
	namespace := planetest.Namespace(t, planes...)
	source := planetest.NewSource()
	allow := func(p *plane.Plane) {
		t.Helper()
		kubeconfig, err := p.RunAs(t.Context(), []byte(rights))
		require.NoError(t, err)
		source.Put(planetest.PeerAs(t, p, kubeconfig))
	}
	for _, p := range planes {
		allow(p)
	}
	late, rotated, leaves := planes[0], planes[1], planes[2]
	require.NoError(t, late.Kill(t.Context()))
	ring, err := region.NewRing(source, region.Options{})
	require.NoError(t, err)
	start(t, ring.Start)

	provider, err := multicluster.New(ring, controllerruntime.Options{})
	require.NoError(t, err)
	mgr, err := mcmanager.New(rotated.Config(), provider, manager.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	require.NoError(t, err)
	require.NoError(t, mcbuilder.ControllerManagedBy(mgr).Named("secrets").For(&corev1.ConfigMap{}).
		Complete(mcreconcile.Func(func(ctx context.Context, r mcreconcile.Request) (ctrl.Result, error) {
			if r.Namespace != namespace {
				return ctrl.Result{}, nil
			}
			cl, err := mgr.GetCluster(ctx, r.ClusterName)
			if err != nil {
				return ctrl.Result{}, err
			}
			err = cl.GetClient().Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name}})
			if apierrors.IsAlreadyExists(err) {
				err = nil
			}
			return ctrl.Result{}, err
		})))
	start(t, mgr.Start)

	reconciled := func(p *plane.Plane, name string) {
		t.Helper()
		c, err := client.New(p.Config(), client.Options{})
		require.NoError(t, err)
		require.NoError(t, c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}))
		planetest.Eventually(t, 2*time.Minute, "the Secret "+name+" in "+p.Name(), func(ctx context.Context) error {
			return c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &corev1.Secret{})
		})
	}
	reconciled(rotated, "first")
	reconciled(leaves, "first")
	require.NoError(t, late.Restart(t.Context()))
	reconciled(late, "back")

	before, err := provider.Get(t.Context(), multiclusterName(rotated))
	require.NoError(t, err)
	allow(rotated)
	planetest.Eventually(t, time.Minute, "new credentials", func(context.Context) error {
		conn, err := ring.Conn(region.PeerName(rotated.Name()))
		if err == nil && conn.Health().Generation < 2 {
			err = fmt.Errorf("generation %d is in use: %w", conn.Health().Generation, conn.Health().Rotation)
		}
		return err
	})
	reconciled(rotated, "rotated")
	require.NoError(t, rotated.Kill(t.Context()))
	reconciled(leaves, "alone")
	require.NoError(t, rotated.Restart(t.Context()))
	reconciled(rotated, "restarted")
	after, err := provider.Get(t.Context(), multiclusterName(rotated))
	require.NoError(t, err)
	require.Same(t, before, after, "the cluster outlives its credentials and a restart of the plane")

	source.Remove(region.PeerName(leaves.Name()))
	planetest.Eventually(t, time.Minute, "the end of a cluster", func(ctx context.Context) error {
		if _, err := provider.Get(ctx, multiclusterName(leaves)); !errors.Is(err, region.ErrUnknownPeer) {
			return fmt.Errorf("want ErrUnknownPeer, got %w", err)
		}
		return nil
	})
	reconciled(late, "last")
}

// One cluster.Cluster has the objects of two planes in its cache, and writes each to its own.
func TestOneCacheOfRealRegions(t *testing.T) {
	planes := planetest.Shared(t, 2)
	namespace := planetest.Namespace(t, planes...)
	eu, us := region.Key{Provider: "loodse", Name: "eu"}, region.Key{Provider: "loodse", Name: "us"}
	ring, err := region.NewRing(planetest.NewSource(planetest.Peer(t, planes[0], eu), planetest.Peer(t, planes[1], us)), region.Options{})
	require.NoError(t, err)
	start(t, ring.Start)
	<-ring.Synced()
	routes, err := router.New(ring, router.Options{})
	require.NoError(t, err)
	single, err := proxy.New(routes, func(*http.Request) (router.Identity, error) {
		return router.Impersonate(router.User{Name: "alice", Groups: []string{"editors"}}), nil
	}, proxy.Options{})
	require.NoError(t, err)
	handler, err := apiserver.New(routes, single, apiserver.Options{})
	require.NoError(t, err)
	for _, p := range planes {
		planetest.Apply(t, p, fmt.Sprintf(editors, namespace))
	}
	all, err := cluster.New(controllerruntime.Config(handler), ofNamespace(namespace))
	require.NoError(t, err)
	start(t, all.Start)
	names := []string{"settings@eu.loodse", "settings@us.loodse"}
	for i, name := range names {
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		planetest.Eventually(t, time.Minute, "the right to create it", func(ctx context.Context) error { return all.GetClient().Create(ctx, o) })
		c, err := client.New(planes[i].Config(), client.Options{})
		require.NoError(t, err)
		require.NoError(t, c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "settings"}, &corev1.ConfigMap{}))
	}
	require.True(t, all.GetCache().WaitForCacheSync(t.Context()))
	planetest.Eventually(t, time.Minute, "both objects in the cache", func(ctx context.Context) error {
		var list corev1.ConfigMapList
		if err := all.GetCache().List(ctx, &list, client.InNamespace(namespace)); err != nil {
			return err
		}
		var got []string
		for _, o := range list.Items {
			got = append(got, o.Name)
		}
		slices.Sort(got)
		if !slices.Equal(names, got) {
			return fmt.Errorf("it has %v, want %v", got, names)
		}
		return nil
	})
}

// editors lets a group edit ConfigMaps in a namespace.
const editors = `apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: editor, namespace: %[1]s}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get, list, watch, create]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: editors, namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: editor}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: editors}]
`

func multiclusterName(p *plane.Plane) mc.ClusterName { return mc.ClusterName(p.Name()) }

// ofNamespace limits the cache to a namespace.
func ofNamespace(namespace string) cluster.Option {
	return func(o *cluster.Options) { o.Cache.DefaultNamespaces = map[string]cache.Config{namespace: {}} }
}
