// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package perturb

import (
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/region/regiontest"
)

// configMapsOf returns the users of a server, and a client of one of them for ConfigMaps.
func configMapsOf(t *testing.T) (*users, dynamic.ResourceInterface) {
	t.Helper()
	server := regiontest.NewServer(regiontest.Options{})
	t.Cleanup(server.Close)
	u, err := newUsers(t.Context(), map[string]Server{"up": server})
	require.NoError(t, err)
	c, err := dynamic.NewForConfig(u.access("up"))
	require.NoError(t, err)
	return u, c.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("default")
}

// An object that its user has deleted, and that only a finalizer keeps, is not created again when another client
// deletes it too.
func TestDeletedObjectsAreNotRemade(t *testing.T) {
	for _, kind := range []Kind{DeleteBefore, RemakeBefore} {
		t.Run(string(kind), func(t *testing.T) {
			u, objects := configMapsOf(t)
			_, err := objects.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap",
				"metadata": map[string]any{"name": "held", "finalizers": []any{"example.com/held"}},
			}}, metav1.CreateOptions{})
			require.NoError(t, err)
			require.NoError(t, objects.Delete(t.Context(), "held", metav1.DeleteOptions{}))

			require.NoError(t, u.meddle(t.Context(), Fault{Kind: kind, Of: Object{Server: "up", Resource: "configmaps", Namespace: "default", Name: "held"}}))
			require.Empty(t, u.removed)
		})
	}
}

// An object that was created by apply is applied again, so that a later apply can remove a field.
func TestObjectsAreRemadeAsTheyWereMade(t *testing.T) {
	for _, kind := range []Kind{DeleteBefore, RemakeBefore} {
		t.Run(string(kind), func(t *testing.T) {
			u, objects := configMapsOf(t)
			apply := func(data string) {
				_, err := objects.Patch(t.Context(), "a", types.ApplyPatchType, []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":`+data+`}`), metav1.PatchOptions{FieldManager: "user"})
				require.NoError(t, err)
			}
			apply(`{"one":"1","two":"2"}`)
			require.NoError(t, u.meddle(t.Context(), Fault{Kind: kind, Of: Object{Server: "up", Resource: "configmaps", Namespace: "default", Name: "a"}}))
			_, err := u.remake(t.Context())
			require.NoError(t, err)
			apply(`{"one":"1"}`)
			o, err := objects.Get(t.Context(), "a", metav1.GetOptions{})
			require.NoError(t, err)
			require.Equal(t, map[string]any{"one": "1"}, o.Object["data"])
		})
	}
}

// An object that a user has deleted and a loop has created is the loop's: it is not created again for the user.
func TestWhatUsersDeletedIsNotRemade(t *testing.T) {
	for _, kind := range []Kind{DeleteBefore, RemakeBefore} {
		t.Run(string(kind), func(t *testing.T) {
			server := regiontest.NewServer(regiontest.Options{})
			defer server.Close()
			u, err := newUsers(t.Context(), map[string]Server{"up": server})
			require.NoError(t, err)
			resource := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
			c, err := dynamic.NewForConfig(u.access("up"))
			require.NoError(t, err)
			objects := c.Resource(resource).Namespace("default")
			o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}}}
			_, err = objects.Create(t.Context(), o, metav1.CreateOptions{})
			require.NoError(t, err)
			require.NoError(t, objects.Delete(t.Context(), "a", metav1.DeleteOptions{}))
			loop, err := dynamic.NewForConfig(server.Config())
			require.NoError(t, err)
			_, err = loop.Resource(resource).Namespace("default").Create(t.Context(), o, metav1.CreateOptions{})
			require.NoError(t, err)

			require.NoError(t, u.meddle(t.Context(), Fault{Kind: kind, Of: Object{Server: "up", Resource: "configmaps", Namespace: "default", Name: "a"}}))
			pending, err := u.remake(t.Context())
			require.NoError(t, err)
			require.False(t, pending)
			_, err = objects.Get(t.Context(), "a", metav1.GetOptions{})
			require.True(t, apierrors.IsNotFound(err), "%v", err)
		})
	}
}
