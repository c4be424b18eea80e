// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestDifference(t *testing.T) {
	crds, err := CRDs()
	require.NoError(t, err)
	for _, tc := range []struct {
		name string
		edit func(spec map[string]any)
		want string
	}{
		{name: "none", edit: func(map[string]any) {}, want: ""},
		{
			name: "defaults of a server",
			edit: func(spec map[string]any) { spec["conversion"] = map[string]any{"strategy": "None"} },
			want: "",
		},
		{
			name: "another scope",
			edit: func(spec map[string]any) { spec["scope"] = "Namespaced" },
			want: "- spec.scope: \"Namespaced\"\n+ spec.scope: \"Cluster\"",
		},
		{
			name: "another version",
			edit: func(spec map[string]any) {
				spec["versions"].([]any)[0].(map[string]any)["served"] = false
			},
			want: "- spec.versions[v1alpha1].served: false\n+ spec.versions[v1alpha1].served: true",
		},
		{
			name: "a field that we do not have",
			edit: func(spec map[string]any) {
				unstructured.RemoveNestedField(spec, "names", "shortNames")
			},
			want: "+ spec.names.shortNames: [\"acc\"]",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			present := crds[0].DeepCopy()
			tc.edit(present.Object["spec"].(map[string]any))
			require.Equal(t, tc.want, difference(present, crds[0]))
		})
	}
}

func TestDifferenceIsBounded(t *testing.T) {
	crds, err := CRDs()
	require.NoError(t, err)
	present := crds[0].DeepCopy()
	present.Object["spec"] = map[string]any{}
	for i, crd := range crds {
		lines := strings.Split(difference(present, crd), "\n")
		require.LessOrEqual(t, len(lines), differenceLines+1, i)
		for _, line := range lines {
			require.LessOrEqual(t, len(line), 2*differenceWidth)
		}
	}
}
