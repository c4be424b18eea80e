// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// Only the given finalizer is removed, and only from the object that was read.
func TestRemoveFinalizer(t *testing.T) {
	_, _, c := newBoxes(t, regiontest.Options{})
	put := func(finalizers ...string) {
		obj := box("a")
		obj.SetFinalizers(finalizers)
		_, err := c.Create(t.Context(), obj, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	put("example.org/ours", "example.org/theirs")
	old := read(t, c)
	require.NoError(t, loop.RemoveFinalizer(t.Context(), c, old, "example.org/ours", manager))
	require.Equal(t, []string{"example.org/theirs"}, read(t, c).GetFinalizers())

	require.NoError(t, loop.RemoveFinalizer(t.Context(), c, read(t, c), "example.org/theirs", manager))
	require.NoError(t, c.Delete(t.Context(), "a", metav1.DeleteOptions{}))
	require.NoError(t, loop.RemoveFinalizer(t.Context(), c, old, "example.org/ours", manager), "the object is gone")

	put("example.org/ours")
	err := loop.RemoveFinalizer(t.Context(), c, old, "example.org/ours", manager)
	require.True(t, apierrors.IsConflict(err), "%v", err)
	require.Equal(t, []string{"example.org/ours"}, read(t, c).GetFinalizers())
}
