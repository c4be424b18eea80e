// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A loop that waits for a cache is also called when it learns that the API server does not serve the type.
func TestFreshnessReportsTypesThatAreNotServed(t *testing.T) {
	calls := 0
	f := &freshness{name: "x", err: ErrNotListed, running: true, changed: func() { calls++ }}
	notServed := apierrors.NewNotFound(schema.GroupResource{Resource: "x"}, "")
	for _, step := range []struct {
		name  string
		err   error
		calls int
	}{
		{"an error", errors.New("refused"), 0},
		{"not served", notServed, 1},
		{"still not served", notServed, 1},
		{"an error again", errors.New("refused"), 2},
	} {
		f.failed(step.err)
		require.Equal(t, step.calls, calls, step.name)
	}
	f.listed()
	require.Equal(t, 3, calls, "fresh")
	f.stop()
}
