// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/internal/maintest"
	"github.com/atoll-dev/atoll/region/regiontest"
)

func TestMain(m *testing.M) { maintest.Main(m) }

var boxes = schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "boxes"}

func boxCRD() *apiextensionsv1.CustomResourceDefinition {
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	list := func(kind string, item apiextensionsv1.JSONSchemaProps, keys ...string) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "array", XListType: &kind, XListMapKeys: keys,
			Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &item}}
	}
	condition := apiextensionsv1.JSONSchemaProps{Type: "object", Required: []string{"type"},
		Properties: map[string]apiextensionsv1.JSONSchemaProps{"type": text, "status": text, "message": text}}
	fields := map[string]apiextensionsv1.JSONSchemaProps{
		"size": {Type: "integer"}, "note": text,
		"tags":       list("set", text),
		"steps":      list("atomic", text),
		"conditions": list("map", condition, "type"),
	}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "boxes.example.org"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.org", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "boxes", Kind: "Box"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object",
					Properties: map[string]apiextensionsv1.JSONSchemaProps{
						"spec": {Type: "object", Properties: fields}, "status": {Type: "object", Properties: fields},
					},
				}},
			}},
		},
	}
}

func box(name string, labels ...string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.org/v1", "kind": "Box", "metadata": map[string]any{"name": name, "namespace": "default"},
	}}
	for _, l := range labels {
		obj.SetLabels(map[string]string{l: "yes"})
	}
	return obj
}

// newBoxes starts a server that serves the type Box. It returns the server, a client for all
// namespaces, and a client for the Boxes in the namespace default.
func newBoxes(t *testing.T, opts regiontest.Options) (*regiontest.Server, dynamic.Interface, dynamic.ResourceInterface) {
	t.Helper()
	opts.CRDs = []*apiextensionsv1.CustomResourceDefinition{boxCRD()}
	s := regiontest.NewServer(opts)
	t.Cleanup(s.Close)
	client, err := dynamic.NewForConfig(s.Config())
	require.NoError(t, err)
	return s, client, client.Resource(boxes).Namespace("default")
}

func create(t *testing.T, c dynamic.ResourceInterface, names ...string) {
	t.Helper()
	for _, name := range names {
		_, err := c.Create(t.Context(), box(name), metav1.CreateOptions{})
		require.NoError(t, err)
	}
}

// start runs o until the returned function is called. That function waits until o.Start has
// returned.
func start(t *testing.T, o *loop.Objects) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- o.Start(ctx) }()
	return func() {
		cancel()
		require.NoError(t, <-done)
	}
}

func names(o *loop.Objects) []string {
	found := []string{}
	for _, obj := range o.List() {
		found = append(found, obj.GetName())
	}
	return found
}

func count(s *regiontest.Server, verbs ...string) int {
	n := 0
	for _, r := range s.Requests() {
		if r.Resource == "boxes" && slices.Contains(verbs, r.Verb) {
			n++
		}
	}
	return n
}

func numbered(n int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("box-%04d", i))
	}
	return all
}
