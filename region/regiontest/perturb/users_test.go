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

// configMapsOf returns the users of a new server, and a client with which a user writes ConfigMaps.
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

// A user has deleted an object, and only a finalizer keeps it. Then a fault deletes it, too. The users do not plan
// to create it again.
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

// A user has applied an object, and a fault deletes it. The user creates it by the same apply, so that a later
// apply of the user can remove a field.
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

// A user has deleted an object, and a loop has created an object of the same name. A fault deletes the object of
// the loop. The user does not create it again.
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
