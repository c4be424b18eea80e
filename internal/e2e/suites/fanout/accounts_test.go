// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/account/v1alpha1"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
)

// A coordinator with only the rights of rights.Coordinate creates the Roles of an Account on real
// API servers. In every peer, alice can then list the regions and the RegionClaims in the namespace
// of her Account, but not the regions in the namespace default. After the Account has lost the role
// Provider, she cannot list the RegionClaims.
func TestAccountsGrantRights(t *testing.T) {
	r := newRing(t, planetest.Shared(t, 3))
	c, _ := r.coordinator(t, fanout.Options{})
	acme := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "catalog.kubecarrier.io/v1alpha1", "kind": "Account",
		"metadata": map[string]any{"name": "acme-of-alice"},
		"spec": map[string]any{
			"roles":    []any{"Tenant", "Provider"},
			"subjects": []any{map[string]any{"kind": "User", "name": "alice"}},
		},
	}}
	op, err := c.Add(within(t, time.Minute), acme, fanout.AddOptions{})
	require.NoError(t, err)
	require.NoError(t, op.Peers.Err())
	require.Equal(t, fanout.Done, op.State)
	regions := v1alpha1.GroupVersion.WithResource("regions")
	claims := schema.GroupVersionResource{Group: "kubecarrier.io", Version: "v1alpha1", Resource: "regionclaims"}
	for _, p := range r.planes {
		alice := as(t, p, "alice")
		planetest.Eventually(t, time.Minute, "the Role is in effect", func(ctx context.Context) error {
			_, err := alice.Resource(regions).Namespace("acme-of-alice").List(ctx, metav1.ListOptions{})
			return err
		})
		_, err = alice.Resource(claims).Namespace("acme-of-alice").List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err, p.Name())
		_, err = alice.Resource(regions).Namespace("default").List(t.Context(), metav1.ListOptions{})
		require.True(t, apierrors.IsForbidden(err), "%s: %v", p.Name(), err)
	}

	acme.Object["spec"].(map[string]any)["roles"] = []any{"Tenant"}
	op, err = c.Update(within(t, time.Minute), acme, fanout.AddOptions{})
	require.NoError(t, err)
	require.NoError(t, op.Peers.Err())
	for _, p := range r.planes {
		alice := as(t, p, "alice")
		planetest.Eventually(t, time.Minute, "the Role is gone", func(ctx context.Context) error {
			_, err := alice.Resource(claims).Namespace("acme-of-alice").List(ctx, metav1.ListOptions{})
			if apierrors.IsForbidden(err) {
				return nil
			}
			return errors.Join(errors.New("still allowed"), err)
		})
	}
	r.audited(t, c)
}

// as returns a client of a plane for a user.
func as(t *testing.T, p *plane.Plane, user string) dynamic.Interface {
	t.Helper()
	kubeconfig, err := p.KubeconfigFor(user)
	require.NoError(t, err)
	config, err := plane.ConfigOf(kubeconfig)
	require.NoError(t, err)
	return planetest.Dynamic(t, config)
}
