// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/region/regiontest"
)

var widgets = schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "widgets"}

func widgetCRD() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.org"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.org", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Kind: "Widget"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object",
					Properties: map[string]apiextensionsv1.JSONSchemaProps{
						"spec": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
							"size": {Type: "integer"},
						}},
						"status": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
							"ready": {Type: "boolean"},
						}},
					},
				}},
			}},
		},
	}
}

func widget(name string, size int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.org/v1", "kind": "Widget",
		"metadata": map[string]any{"name": name},
		"spec":     map[string]any{"size": size},
	}}
}

// With KeepNamespaceContent, a deleted namespace stays Terminating and keeps its content, as without
// a namespace controller. By default the namespace and its content are gone.
func TestKeepNamespaceContent(t *testing.T) {
	for _, keep := range []bool{true, false} {
		s := regiontest.NewServer(regiontest.Options{CRDs: []*apiextensionsv1.CustomResourceDefinition{widgetCRD()}, KeepNamespaceContent: keep})
		defer s.Close()
		client, err := dynamic.NewForConfig(s.Config())
		require.NoError(t, err)
		spaces := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
		acme := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "acme"}}}
		_, err = spaces.Create(t.Context(), acme, metav1.CreateOptions{})
		require.NoError(t, err)
		content := client.Resource(widgets).Namespace("acme")
		_, err = content.Create(t.Context(), widget("a", 1), metav1.CreateOptions{})
		require.NoError(t, err)
		require.NoError(t, spaces.Delete(t.Context(), "acme", metav1.DeleteOptions{}))
		ns, err := spaces.Get(t.Context(), "acme", metav1.GetOptions{})
		_, errOfContent := content.Get(t.Context(), "a", metav1.GetOptions{})
		if !keep {
			require.True(t, apierrors.IsNotFound(err), "%v", err)
			require.True(t, apierrors.IsNotFound(errOfContent), "%v", errOfContent)
			continue
		}
		require.NoError(t, err)
		require.NoError(t, errOfContent)
		phase, _, err := unstructured.NestedString(ns.Object, "status", "phase")
		require.NoError(t, err)
		require.Equal(t, "Terminating", phase)
	}
}

func TestCreateGetUpdateDelete(t *testing.T) {
	s := regiontest.NewServer(regiontest.Options{CRDs: []*apiextensionsv1.CustomResourceDefinition{widgetCRD()}})
	defer s.Close()
	client, err := dynamic.NewForConfig(s.Config())
	require.NoError(t, err)
	w := client.Resource(widgets).Namespace("default")
	ctx := t.Context()
	created, err := w.Create(ctx, widget("a", 1), metav1.CreateOptions{})
	require.NoError(t, err)
	require.NotEmpty(t, created.GetUID())
	require.EqualValues(t, 1, created.GetGeneration())
	stale := created.DeepCopy()
	require.NoError(t, unstructured.SetNestedField(created.Object, int64(2), "spec", "size"))
	updated, err := w.Update(ctx, created, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 2, updated.GetGeneration())
	_, err = w.Update(ctx, stale, metav1.UpdateOptions{})
	require.True(t, apierrors.IsConflict(err), "%v", err)
	require.NoError(t, w.Delete(ctx, "a", metav1.DeleteOptions{}))
	_, err = w.Get(ctx, "a", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}

// Requests returns the latest requests, at most five, in the order of their arrival: with a history
// that is not full, that is full, and that has overflowed, each after a Reset.
func TestRequestsAreOldestFirst(t *testing.T) {
	t.Parallel()
	s := regiontest.NewServer(regiontest.Options{History: 5})
	defer s.Close()
	client, err := dynamic.NewForConfig(s.Config())
	require.NoError(t, err)
	namespaces := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	for _, n := range []int{3, 4, 5, 7, 13} {
		s.Reset()
		var want, got []string
		for i := range n {
			name := fmt.Sprintf("n-%d", i)
			_, err := namespaces.Get(t.Context(), name, metav1.GetOptions{})
			require.True(t, apierrors.IsNotFound(err), "%v", err)
			want = append(want, name)
		}
		for _, r := range s.Requests() {
			got = append(got, r.Name)
		}
		require.Equal(t, want[max(0, n-5):], got)
	}
}

// Each of the forms below of the query parameter watch requests a watch, as on a real server.
func TestEveryFormOfWatchStreams(t *testing.T) {
	t.Parallel()
	s := regiontest.NewServer(regiontest.Options{})
	defer s.Close()
	client := &http.Client{Transport: s.Config().Transport}
	for _, query := range []string{"watch=true", "watch=1", "watch=yes", "watch", "watch=TRUE"} {
		ctx, cancel := context.WithCancel(t.Context())
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Config().Host+"/api/v1/namespaces?"+query, nil)
		require.NoError(t, err)
		response, err := client.Do(request)
		require.NoError(t, err)
		var event metav1.WatchEvent
		require.NoError(t, json.NewDecoder(response.Body).Decode(&event), query)
		require.Equal(t, "ADDED", event.Type, query)
		cancel()
		require.NoError(t, response.Body.Close())
	}
}

func BenchmarkCreateGet(b *testing.B) {
	s := regiontest.NewServer(regiontest.Options{CRDs: []*apiextensionsv1.CustomResourceDefinition{widgetCRD()}})
	defer s.Close()
	client, err := dynamic.NewForConfig(s.Config())
	require.NoError(b, err)
	w := client.Resource(widgets).Namespace("default")
	o := widget("", 1)
	for n := 0; b.Loop(); n++ {
		o.SetName(fmt.Sprintf("a-%d", n))
		created, err := w.Create(b.Context(), o, metav1.CreateOptions{})
		require.NoError(b, err)
		_, err = w.Get(b.Context(), created.GetName(), metav1.GetOptions{})
		require.NoError(b, err)
	}
}
