// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/region"
)

// An Account that is deleted in its home, or with its CRD there, stays Active in all peers while
// its namespace contains objects.
func TestTheDeletionOfAnOccupiedAccountIsHeld(t *testing.T) {
	planes := planetest.Shared(t, 3)
	r := newRing(t, planes)
	c, _ := r.coordinator(t, fanout.Options{RemovalCap: fanout.RemovalCap{Within: -1}})
	peer := func(i int) region.PeerName { return region.PeerName(planes[i].Name()) }
	acme := unique("acme")
	ctx := within(t, 3*time.Minute)
	_, err := c.Add(ctx, newAccount(acme), fanout.AddOptions{Target: peer(0)})
	require.NoError(t, err)
	_, err = c.Add(ctx, newServiceCluster(acme, "db"), fanout.AddOptions{Target: peer(1)})
	require.NoError(t, err)
	inEffect := func(planes ...*plane.Plane) {
		t.Helper()
		for _, p := range planes {
			obj, err := planetest.Dynamic(t, p.Config()).Resource(account.Kind().Resource).Get(ctx, acme, metav1.GetOptions{})
			require.NoError(t, err, p.Name())
			stage, _, _ := unstructured.NestedString(obj.Object, "spec", "fanout", "stage")
			require.Equal(t, "Active", stage, p.Name())
		}
	}
	home := planetest.Dynamic(t, planes[0].Config())
	require.NoError(t, home.Resource(account.Kind().Resource).Delete(ctx, acme, metav1.DeleteOptions{}))
	_, err = c.Sweep(ctx)
	require.NoError(t, err)
	inEffect(planes...)
	obj, err := home.Resource(account.Kind().Resource).Get(ctx, acme, metav1.GetOptions{})
	require.NoError(t, err)
	held, ok := account.Kind().Hold(obj)
	require.True(t, ok)
	require.Equal(t, "Occupied", held.Reason)
	require.Equal(t, "1 serviceclusters.kubecarrier.io in "+planes[1].Name(), held.Message)
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	require.Contains(t, fmt.Sprint(conditions), account.ConditionRemovalHeld)
	_, err = c.Sweep(ctx)
	require.NoError(t, err)
	again, err := home.Resource(account.Kind().Resource).Get(ctx, acme, metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, obj.GetResourceVersion(), again.GetResourceVersion(), "the held object is written once")

	// Deleting the CRD in the home's cluster also deletes its objects there. Their finalizers keep
	// the CRD.
	crds := home.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	const crd = "accounts.catalog.kubecarrier.io"
	require.NoError(t, crds.Delete(ctx, crd, metav1.DeleteOptions{}))
	_, _ = c.Sweep(ctx) // fails: replicas of Accounts with other homes cannot be created there
	inEffect(planes...)

	// Moving the Account to another home reverts the deletion. Only after that is the CRD deleted.
	_, err = c.Move(ctx, account.Kind().GroupKind(), key("", acme), peer(1), fanout.MoveOptions{})
	require.NoError(t, err)
	planetest.Eventually(t, time.Minute, "the type is gone", func(ctx context.Context) error {
		_, _ = c.Sweep(ctx)
		_, err := crds.Get(ctx, crd, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("still there: %w", err)
	})
	_, err = c.Sweep(ctx)
	require.Error(t, err, "a type that is not served is no absence of its objects")
	inEffect(planes[1:]...)
	api, err := region.APIFor(planes[0].Config())
	require.NoError(t, err)
	_, err = config.InstallCRDs(ctx, api, config.InstallOptions{})
	require.NoError(t, err)
	planetest.Eventually(t, time.Minute, "the replica is back", func(ctx context.Context) error {
		_, err := c.Sweep(ctx)
		return err
	})
	inEffect(planes...)

	// Once the namespace is empty, a deletion of the Account proceeds.
	_, err = c.Remove(ctx, serviceClusters, key(acme, "db"), fanout.RemoveOptions{})
	require.NoError(t, err)
	require.NoError(t, planetest.Dynamic(t, planes[1].Config()).Resource(account.Kind().Resource).Delete(ctx, acme, metav1.DeleteOptions{}))
	_, err = c.Sweep(ctx)
	require.NoError(t, err)
	for _, p := range planes {
		_, err := planetest.Dynamic(t, p.Config()).Resource(account.Kind().Resource).Get(ctx, acme, metav1.GetOptions{})
		require.True(t, apierrors.IsNotFound(err), "%s: %v", p.Name(), err)
	}
	r.audited(t, c)
}
