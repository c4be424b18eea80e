// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plane_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
)

func TestRestoreSetsBack(t *testing.T) {
	p := planetest.New(t, plane.Options{})
	require.ErrorContains(t, p.Restore(t.Context()), "nothing was saved")
	planetest.Apply(t, p, "{apiVersion: v1, kind: Namespace, metadata: {name: before}}")
	require.NoError(t, p.Save(t.Context()))
	planetest.Apply(t, p, "{apiVersion: v1, kind: Namespace, metadata: {name: after}}")
	for range 2 { // what was saved can be restored again
		require.NoError(t, p.Restore(t.Context()))
		namespaces := planetest.Dynamic(t, p.Config()).Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
		_, err := namespaces.Get(t.Context(), "before", metav1.GetOptions{})
		require.NoError(t, err)
		_, err = namespaces.Get(t.Context(), "after", metav1.GetOptions{})
		require.True(t, apierrors.IsNotFound(err), "%v", err)
	}
	require.NoError(t, p.Stop(t.Context()))
	require.ErrorIs(t, p.Save(t.Context()), plane.ErrStopped)
}
