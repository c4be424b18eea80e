// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plane_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
)

func TestRestoreSetsBack(t *testing.T) {
	const bump = 1_000_000
	p := planetest.New(t, plane.Options{})
	require.ErrorContains(t, p.Restore(t.Context()), "nothing was saved")
	planetest.Apply(t, p, "{apiVersion: v1, kind: Namespace, metadata: {name: before}}")
	require.NoError(t, p.Save(t.Context()))
	planetest.Apply(t, p, "{apiVersion: v1, kind: Namespace, metadata: {name: after}}")
	for _, restore := range []func(context.Context) error{ // the data of one Save can be restored several times
		p.Restore,
		func(ctx context.Context) error { return p.RestoreSnapshot(ctx, 0) },
		func(ctx context.Context) error { return p.RestoreSnapshot(ctx, bump) },
	} {
		require.NoError(t, restore(t.Context()))
		namespaces := planetest.Dynamic(t, p.Config()).Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
		_, err := namespaces.Get(t.Context(), "before", metav1.GetOptions{})
		require.NoError(t, err)
		_, err = namespaces.Get(t.Context(), "after", metav1.GetOptions{})
		require.True(t, apierrors.IsNotFound(err), "%v", err)
	}
	namespaces, err := planetest.Dynamic(t, p.Config()).Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	revision, err := strconv.ParseUint(namespaces.GetResourceVersion(), 10, 64)
	require.NoError(t, err)
	require.Greater(t, revision, uint64(bump))
	require.NoError(t, p.Stop(t.Context()))
	require.ErrorIs(t, p.Save(t.Context()), plane.ErrStopped)
}
