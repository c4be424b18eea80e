// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package perturb

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// Two states with the same finalizers in another order are equal, since loops add finalizers in any
// order. Another finalizer is a difference.
func TestFinalizersAreASet(t *testing.T) {
	of := Object{"up", "configmaps", "default", "a"}
	held := func(by ...any) state {
		return state{of: normal(of, map[string]any{"metadata": map[string]any{"name": "a", "finalizers": by}}, nil, nil)}
	}
	require.NoError(t, held("a", "b").equals(held("b", "a")))
	require.Error(t, held("a", "b").equals(held("a", "c")))
}

// Two states with the same conditions in another order are equal, since conditions are a map by type.
// A condition of another type is a difference.
func TestConditionsAreAMap(t *testing.T) {
	of := Object{"up", "deployments.apps", "default", "a"}
	has := func(types ...string) state {
		var conditions []any
		for _, name := range types {
			conditions = append(conditions, map[string]any{"type": name, "status": "True"})
		}
		return state{of: normal(of, map[string]any{"status": map[string]any{"conditions": conditions}}, nil, nil)}
	}
	require.NoError(t, has("Ready", "Synced").equals(has("Synced", "Ready")))
	require.Error(t, has("Ready", "Synced").equals(has("Ready", "Available")))
}

// Two states are equal if observedGeneration is equally far behind the generation of the object: in
// the status, and in JSON text in an annotation.
func TestGenerationsAreRelative(t *testing.T) {
	of := Object{"up", "deployments.apps", "default", "a"}
	at := func(generation, observed int64) state {
		return state{of: normal(of, map[string]any{
			"metadata": map[string]any{"name": "a", "generation": generation, "annotations": map[string]any{"status": fmt.Sprintf(`{"observedGeneration":%d}`, observed)}},
			"status":   map[string]any{"observedGeneration": observed},
		}, nil, nil)}
	}
	require.NoError(t, at(1, 1).equals(at(3, 3)))
	require.Error(t, at(1, 1).equals(at(3, 2)))
}
