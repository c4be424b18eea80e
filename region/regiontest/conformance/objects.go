// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// release removes all finalizers of an object.
func (e *env) release(c dynamic.ResourceInterface, name string) {
	e.Helper()
	_, err := c.Patch(e.Ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	require.NoError(e, err)
}

// version returns the first version of a CRD.
func version(crd map[string]any) map[string]any {
	return crd["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
}

// specSchema returns the schema of the spec in the first version of a CRD.
func specSchema(crd map[string]any) map[string]any {
	schema := version(crd)["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
	return schema["properties"].(map[string]any)["spec"].(map[string]any)
}

func text(v any) string {
	s, _ := v.(string)
	return s
}
