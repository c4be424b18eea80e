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
	namespaces := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	acme := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "acme"}}}
	for kind, test := range map[string]struct {
		api    dynamic.ResourceInterface
		name   string
		create func() error
	}{
		"namespace": {namespaces, acme.GetName(), func() error {
			_, err := namespaces.Create(t.Context(), acme, metav1.CreateOptions{})
			return err
		}},
		"CRD": {
			client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}),
			widgetCRD().Name, func() error { return s.AddCRD(widgetCRD()) },
		},
	} {
		t.Run(kind, func(t *testing.T) {
			for round := range 100 {
				require.NoError(t, test.create())
				var running sync.WaitGroup
				for w := range 4 {
					running.Go(func() {
						for n := range 20 {
							label := fmt.Appendf(nil, `{"metadata":{"labels":{"n":"%d-%d"}}}`, w, n)
							_, err := test.api.Patch(t.Context(), test.name, types.MergePatchType, label, metav1.PatchOptions{})
							assert.True(t, err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err), "%v", err)
						}
					})
				}
				require.NoError(t, test.api.Delete(t.Context(), test.name, metav1.DeleteOptions{}))
				running.Wait()
				_, err = test.api.Get(t.Context(), test.name, metav1.GetOptions{})
				require.True(t, apierrors.IsNotFound(err), "round %d: %v", round, err)
			}
		})
	}
}
