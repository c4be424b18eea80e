// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/internal/rights"
	"github.com/atoll-dev/atoll/region"
)

// restricted returns a kubeconfig for a plane with exactly the rights of roles.
func restricted(t *testing.T, p *plane.Plane, roles ...any) []byte {
	t.Helper()
	var manifests [][]byte
	for _, role := range roles {
		manifest, err := yaml.Marshal(role)
		require.NoError(t, err)
		manifests = append(manifests, manifest)
	}
	kubeconfig, err := p.RunAs(t.Context(), bytes.Join(manifests, []byte("---\n")))
	require.NoError(t, err)
	return kubeconfig
}

// The coordinator, the replicator and the controller of Accounts have only the rights that package
// rights lists for them. They copy an Account of a central plane to three peers, and create a
// deleted Role of the Account again. They report a peer that does not answer. After the Account is
// deleted, they remove the copies.
func TestReplicatorOnRealServers(t *testing.T) {
	t.Parallel()
	planes := planetest.Shared(t, 4)
	central := planes[3]
	r := newRing(t, planes[:3])
	admin, err := region.APIFor(central.Config())
	require.NoError(t, err)
	_, err = config.InstallCRDs(t.Context(), admin, config.InstallOptions{})
	require.NoError(t, err)
	var conns []*region.Conn
	for _, p := range planes[:3] {
		conns = append(conns, connect(t, p, restricted(t, p, rights.Coordinate(), rights.Accounts())))
	}
	r = r.on(conns...)
	c, _ := r.coordinator(t, fanout.Options{SweepEvery: time.Second})
	restConfig, err := plane.ConfigOf(restricted(t, central, rights.AccountsCentral()))
	require.NoError(t, err)
	api, err := region.APIFor(restConfig)
	require.NoError(t, err)
	replicator, err := account.NewReplicator(api, r.conns, c, account.Options{})
	require.NoError(t, err)
	controller, err := account.NewController(r.conns, account.ControllerOptions{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, start := range []func(context.Context) error{c.Start, replicator.Start, controller.Start} {
		running.Go(func() { _ = start(ctx) })
	}
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})

	accounts := admin.Dynamic().Resource(account.Kind().Resource)
	name := unique("acme")
	acme := newAccount(name)
	acme.Object["spec"].(map[string]any)["subjects"] = []any{map[string]any{"kind": "User", "name": "alice"}}
	_, err = accounts.Create(t.Context(), acme, metav1.CreateOptions{})
	require.NoError(t, err)
	ready := func(ctx context.Context) error {
		obj, err := accounts.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if phase, _, _ := unstructured.NestedString(obj.Object, "status", "phase"); phase != "Ready" {
			return fmt.Errorf("status is %v", obj.Object["status"])
		}
		return nil
	}
	planetest.Eventually(t, time.Minute, "Ready", ready)
	roles := schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}
	inPeer := planetest.Dynamic(t, planes[0].Config()).Resource(roles).Namespace(name)
	require.NoError(t, inPeer.Delete(t.Context(), "kubecarrier-tenant", metav1.DeleteOptions{}))
	planetest.Eventually(t, time.Minute, "the deleted Role is back", func(ctx context.Context) error {
		_, err := inPeer.Get(ctx, "kubecarrier-tenant", metav1.GetOptions{})
		return err
	})

	require.NoError(t, planes[1].Pause(t.Context()))
	planetest.Eventually(t, 2*time.Minute, "the silence is noticed", func(ctx context.Context) error {
		obj, err := accounts.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		unknown, _, _ := unstructured.NestedStringSlice(obj.Object, "status", "peers", "unknown")
		if !slices.Equal(unknown, []string{planes[1].Name()}) {
			return fmt.Errorf("status is %v", obj.Object["status"])
		}
		return nil
	})
	require.Error(t, ready(t.Context()))
	require.NoError(t, planes[1].Resume(t.Context()))
	planetest.Eventually(t, time.Minute, "Ready again", ready)

	require.NoError(t, accounts.Delete(t.Context(), name, metav1.DeleteOptions{}))
	planetest.Eventually(t, time.Minute, "gone", func(ctx context.Context) error {
		_, err := accounts.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("still there: %w", err)
	})
	for _, p := range planes[:3] {
		_, err := planetest.Dynamic(t, p.Config()).Resource(account.Kind().Resource).Get(t.Context(), name, metav1.GetOptions{})
		require.True(t, apierrors.IsNotFound(err), "%s: %v", p.Name(), err)
	}
}
