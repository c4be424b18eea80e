// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/config"
)

func TestStateOf(t *testing.T) {
	crds, err := config.CRDs()
	require.NoError(t, err)
	ours := crds[0]
	for name, tt := range map[string]struct {
		edit func(*unstructured.Unstructured)
		want config.State
	}{
		"same":     {func(*unstructured.Unstructured) {}, config.Same},
		"foreign":  {func(c *unstructured.Unstructured) { c.SetLabels(nil) }, config.Foreign},
		"newer":    {func(c *unstructured.Unstructured) { c.SetLabels(map[string]string{config.SchemaVersionLabel: "99"}) }, config.Newer},
		"older":    {func(c *unstructured.Unstructured) { c.SetLabels(map[string]string{config.SchemaVersionLabel: "0"}) }, config.Differs},
		"deleting": {func(c *unstructured.Unstructured) { c.SetDeletionTimestamp(new(metav1.Now())) }, config.Deleting},
		"rejected": {func(c *unstructured.Unstructured) { delete(c.Object, "status") }, config.Rejected},
		"other schema": {func(c *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(c.Object, "Namespaced", "spec", "scope")
		}, config.Differs},
	} {
		present := ours.DeepCopy()
		present.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "True"}}}
		tt.edit(present)
		require.Equal(t, tt.want, config.StateOf(present, ours), name)
	}
	require.Equal(t, config.Missing, config.StateOf(nil, ours))
}
