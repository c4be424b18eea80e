// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/region/regiontest"
)

// Four clients write the labels of a namespace or of a CRD while the server ends its deletion. The object disappears all
// the same.
func TestADeletionEndsDespiteOtherWriters(t *testing.T) {
	s := regiontest.NewServer(regiontest.Options{})
	defer s.Close()
	client, err := dynamic.NewForConfig(s.Config())
	require.NoError(t, err)
	crd, err := runtime.DefaultUnstructuredConverter.ToUnstructured(widgetCRD())
	require.NoError(t, err)
	unstructured.RemoveNestedField(crd, "status")
	crd["apiVersion"], crd["kind"] = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
	for resource, object := range map[schema.GroupVersionResource]map[string]any{
		{Version: "v1", Resource: "namespaces"}:                                               {"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "acme"}},
		{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}: crd,
	} {
		t.Run(resource.Resource, func(t *testing.T) {
			api, obj := client.Resource(resource), &unstructured.Unstructured{Object: object}
			for round := range 100 {
				_, err := api.Create(t.Context(), obj, metav1.CreateOptions{})
				require.NoError(t, err)
				var running sync.WaitGroup
				for w := range 4 {
					running.Go(func() {
						for n := range 20 {
							label := fmt.Appendf(nil, `{"metadata":{"labels":{"n":"%d-%d"}}}`, w, n)
							_, err := api.Patch(t.Context(), obj.GetName(), types.MergePatchType, label, metav1.PatchOptions{})
							assert.True(t, err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err), "%v", err)
						}
					})
				}
				require.NoError(t, api.Delete(t.Context(), obj.GetName(), metav1.DeleteOptions{}))
				running.Wait()
				_, err = api.Get(t.Context(), obj.GetName(), metav1.GetOptions{})
				require.True(t, apierrors.IsNotFound(err), "round %d: %v", round, err)
			}
		})
	}
}
