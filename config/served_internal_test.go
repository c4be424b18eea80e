// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestEstablished(t *testing.T) {
	condition := func(kind, status string) any {
		return map[string]any{"type": kind, "status": status, "message": "said so"}
	}
	for _, tc := range []struct {
		name       string
		conditions any
		want       bool
		refused    string
	}{
		// On a real API server, conditions is null between the creation of a CRD and its first
		// reconciliation.
		{name: "null", conditions: nil},
		{name: "none", conditions: []any{}},
		{name: "names only", conditions: []any{condition("NamesAccepted", "True")}},
		{name: "established", conditions: []any{condition("NamesAccepted", "True"), condition("Established", "True")}, want: true},
		{name: "refused", conditions: []any{condition("NamesAccepted", "False"), condition("Established", "False")}, refused: "CRD x is not accepted: said so"},
		{name: "malformed", conditions: "yes", refused: "status of CRD x"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := established(&unstructured.Unstructured{Object: map[string]any{
				"metadata": map[string]any{"name": "x"}, "status": map[string]any{"conditions": tc.conditions},
			}})
			require.Equal(t, tc.want, got)
			if tc.refused == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tc.refused)
		})
	}
}
