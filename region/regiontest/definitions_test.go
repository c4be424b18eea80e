// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/region/regiontest"
)

// Two servers take a CRD from the same Definitions. Each server has a CRD object with its own UID and validates by the
// schema. After the deletion of the CRD in one server, the other one still serves the type. Compile rejects an invalid
// CRD, and AddDefinitions rejects nil.
func TestDefinitions(t *testing.T) {
	t.Parallel()
	types, err := regiontest.Compile(widgetCRD())
	require.NoError(t, err)
	one := regiontest.NewServer(regiontest.Options{Definitions: types})
	defer one.Close()
	other := regiontest.NewServer(regiontest.Options{})
	defer other.Close()
	require.NoError(t, other.AddDefinitions(types))
	require.NoError(t, other.AddDefinitions(types), "again")

	crds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	client := func(s *regiontest.Server) dynamic.Interface {
		c, err := dynamic.NewForConfig(s.Config())
		require.NoError(t, err)
		return c
	}
	create := func(s *regiontest.Server, spec any) error {
		obj := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
		obj.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Widget"})
		obj.SetGenerateName("w-")
		_, err := client(s).Resource(widgets).Namespace("default").Create(t.Context(), obj, metav1.CreateOptions{})
		return err
	}
	a, err := client(one).Resource(crds).Get(t.Context(), "widgets.example.org", metav1.GetOptions{})
	require.NoError(t, err)
	b, err := client(other).Resource(crds).Get(t.Context(), "widgets.example.org", metav1.GetOptions{})
	require.NoError(t, err)
	require.NotEqual(t, a.GetUID(), b.GetUID())
	for _, s := range []*regiontest.Server{one, other} {
		require.NoError(t, create(s, map[string]any{}))
		require.True(t, apierrors.IsInvalid(create(s, "no object")))
	}
	require.NoError(t, client(one).Resource(crds).Delete(t.Context(), "widgets.example.org", metav1.DeleteOptions{}))
	require.True(t, apierrors.IsNotFound(create(one, map[string]any{})))
	require.NoError(t, create(other, map[string]any{}))

	wrong := widgetCRD()
	wrong.Spec.Names.Plural = "gadgets"
	_, err = regiontest.Compile(wrong)
	require.ErrorContains(t, err, "CRD widgets.example.org: ")
	require.ErrorContains(t, one.AddDefinitions(nil), "make them with Compile")
}

// Two servers serve a CRD that was compiled once.
func ExampleCompile() {
	types, err := regiontest.Compile(widgetCRD())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, name := range []string{"eu", "us"} {
		server := regiontest.NewServer(regiontest.Options{Name: name, Definitions: types})
		client, err := dynamic.NewForConfig(server.Config())
		if err != nil {
			fmt.Println(err)
			return
		}
		list, err := client.Resource(widgets).List(context.Background(), metav1.ListOptions{})
		fmt.Println(name, list.GetKind(), err)
		server.Close()
	}
	// Output:
	// eu WidgetList <nil>
	// us WidgetList <nil>
}
