// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router/aggregate"
)

var (
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	unserved   = schema.GroupVersionResource{Group: "nobody.example", Version: "v1", Resource: "things"}
	couchdbs   = schema.GroupVersionResource{Group: "loodse", Version: "v1", Resource: "couchdbs"}
)

// couchCRD returns the CRD of CouchDBs in the group of region k.
func couchCRD(k region.Key) *apiextensionsv1.CustomResourceDefinition {
	preserve := true
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "couchdbs." + k.String()},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: k.String(), Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "couchdbs", Singular: "couchdb", Kind: "CouchDB", ListKind: "CouchDBList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true, Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &preserve}},
			}},
		},
	}
}

// couchWorld returns regions that each serve CouchDBs in their own API group.
func couchWorld(t testing.TB, n int) (*world, dynamic.ResourceInterface) {
	t.Helper()
	w := newWorld(t, n)
	for _, k := range w.keys {
		require.NoError(t, w.servers[k].AddCRD(couchCRD(k)))
	}
	return w, w.api(aggregate.Options{Map: aggregate.ByProvider("loodse")}).Dynamic().Resource(couchdbs).Namespace("default")
}

func couchDB(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "loodse/v1", "kind": "CouchDB", "metadata": map[string]any{"name": name}, "spec": map[string]any{"size": int64(1)},
	}}
}

// stored returns the object as its region stores it.
func (w *world) stored(k region.Key, name string) map[string]any {
	w.t.Helper()
	objects, err := w.servers[k].Objects(schema.GroupResource{Group: k.String(), Resource: "couchdbs"})
	require.NoError(w.t, err)
	for _, o := range objects {
		if (&unstructured.Unstructured{Object: o}).GetName() == name {
			return o
		}
	}
	return nil
}

// An object of a common type is created, changed and deleted: each write reaches the object's region, and no
// annotation of the API is stored.
func TestWritesGoToTheObjectsOwnRegion(t *testing.T) {
	w, c := couchWorld(t, 2)
	defer w.close()
	ctx := t.Context()
	k := w.keys[1]

	_, err := c.Create(ctx, couchDB("orders"), metav1.CreateOptions{})
	require.True(t, apierrors.IsConflict(err), "%v", err)
	require.ErrorContains(t, err, "names no region")
	o, err := c.Create(ctx, in(k, couchDB("orders")), metav1.CreateOptions{})
	require.NoError(t, err)
	require.Equal(t, "loodse/v1", o.GetAPIVersion())
	require.Nil(t, w.stored(w.keys[0], "orders"))

	require.NoError(t, unstructured.SetNestedField(o.Object, int64(2), "spec", "size"))
	old := o.DeepCopy()
	o, err = c.Update(ctx, o, metav1.UpdateOptions{})
	require.NoError(t, err)
	_, err = c.Update(ctx, old, metav1.UpdateOptions{})
	require.True(t, apierrors.IsConflict(err), "an old version is refused by the region: %v", err)
	require.NoError(t, unstructured.SetNestedField(o.Object, "well", "status", "state"))
	o, err = c.UpdateStatus(ctx, o, metav1.UpdateOptions{})
	require.NoError(t, err)

	merge := []byte(`{"metadata":{"resourceVersion":"` + o.GetResourceVersion() + `","annotations":{"` + aggregate.RegionAnnotation + `":"` + k.String() + `","kept":"yes"}},"spec":{"size":3}}`)
	_, err = c.Patch(ctx, "orders", types.MergePatchType, merge, metav1.PatchOptions{})
	require.NoError(t, err)
	_, err = c.Patch(ctx, "orders", types.MergePatchType, merge, metav1.PatchOptions{})
	require.True(t, apierrors.IsConflict(err), "%v", err)
	o, err = c.Get(ctx, "orders", metav1.GetOptions{})
	require.NoError(t, err)
	ops := []byte(`[{"op":"test","path":"/metadata/resourceVersion","value":"` + o.GetResourceVersion() + `"},{"op":"remove","path":"/metadata/annotations/router.atoll.dev~1region"},{"op":"replace","path":"/spec/size","value":4}]`)
	_, err = c.Patch(ctx, "orders@"+k.String(), types.JSONPatchType, ops, metav1.PatchOptions{})
	require.NoError(t, err)

	applied := couchDB("orders")
	require.NoError(t, unstructured.SetNestedField(applied.Object, int64(5), "spec", "more"))
	o, err = c.Apply(ctx, "orders", in(k, applied), metav1.ApplyOptions{FieldManager: "test", Force: true})
	require.NoError(t, err)
	_, err = c.Apply(ctx, "new", couchDB("new"), metav1.ApplyOptions{FieldManager: "test"})
	require.True(t, apierrors.IsConflict(err), "%v", err)

	stored := &unstructured.Unstructured{Object: w.stored(k, "orders")}
	require.Equal(t, map[string]string{"kept": "yes"}, stored.GetAnnotations())
	require.Equal(t, k.String()+"/v1", stored.GetAPIVersion())

	rv, uid := old.GetResourceVersion(), o.GetUID()
	err = c.Delete(ctx, "orders", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &rv, UID: &uid}})
	require.True(t, apierrors.IsConflict(err), "%v", err)
	rv = o.GetResourceVersion()
	require.NoError(t, c.Delete(ctx, "orders", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &rv, UID: &uid}}))
	require.Nil(t, w.stored(k, "orders"))
	_, err = c.Get(ctx, "orders", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}

func TestNamesInSeveralRegions(t *testing.T) {
	w, c := couchWorld(t, 3)
	defer w.close()
	ctx := t.Context()
	for _, k := range w.keys[:2] {
		_, err := c.Create(ctx, in(k, couchDB("twin")), metav1.CreateOptions{})
		require.NoError(t, err)
	}
	_, err := c.Create(ctx, in(w.keys[0], couchDB("single")), metav1.CreateOptions{})
	require.NoError(t, err)

	_, err = c.Get(ctx, "twin", metav1.GetOptions{})
	require.True(t, apierrors.IsConflict(err), "%v", err)
	require.ErrorContains(t, err, "twin@r0.loodse, twin@r1.loodse")
	err = c.Delete(ctx, "twin", metav1.DeleteOptions{})
	require.True(t, apierrors.IsConflict(err), "%v", err)
	twin, err := c.Get(ctx, "twin@r1.loodse", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "r1.loodse/twin", id(twin))

	// A version is valid in its own region only, and a request that names two regions is refused.
	_, err = c.Update(ctx, in(w.keys[0], twin.DeepCopy()), metav1.UpdateOptions{})
	require.True(t, apierrors.IsConflict(err), "%v", err)
	require.ErrorContains(t, err, "its resourceVersion is of another region than r0.loodse")
	_, err = c.Patch(ctx, "twin@r0.loodse", types.MergePatchType, []byte(`{"metadata":{"annotations":{"router.atoll.dev/region":"r1.loodse"}}}`), metav1.PatchOptions{})
	require.True(t, apierrors.IsBadRequest(err), "%v", err)

	// While a region is unreachable, it may have an object of the same plain name: the write is refused.
	w.servers[w.keys[2]].Partition(true)
	_, err = c.Patch(ctx, "single", types.MergePatchType, []byte(`{"spec":{"size":9}}`), metav1.PatchOptions{})
	require.True(t, apierrors.IsServiceUnavailable(err), "%v", err)
	_, err = c.Get(ctx, "absent", metav1.GetOptions{})
	require.False(t, apierrors.IsNotFound(err), "absence is not deletion: %v", err)
	_, err = c.Patch(ctx, "single@r0.loodse", types.MergePatchType, []byte(`{"spec":{"size":9}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.Error(t, c.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
	w.servers[w.keys[2]].Partition(false)
	require.NoError(t, c.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
	list, err := c.List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, list.Items)
	require.Equal(t, "CouchDBList", list.GetKind())
}

// If one cluster serves two regions, lists show its objects in the first region only. A request can still address an
// object in the second region.
func TestTwoRegionsOfOneCluster(t *testing.T) {
	w := newWorld(t, 2)
	defer w.close()
	ctx, first, second := t.Context(), w.keys[0], w.keys[1]
	require.NoError(t, w.set.Put(
		aggregate.Member{Region: first, Cluster: "peer", Client: w.clients[first]},
		aggregate.Member{Region: second, Cluster: "peer", Client: w.clients[first]},
	))
	c := w.api(aggregate.Options{}).Dynamic().Resource(configMaps).Namespace("default")
	o, err := c.Create(ctx, in(second, configMap("a", "0")), metav1.CreateOptions{})
	require.NoError(t, err)
	require.Equal(t, second.String()+"/a", id(o))
	o, err = c.Update(ctx, o, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Equal(t, second.String()+"/a", id(o))
	o, err = c.Get(ctx, "a@"+second.String(), metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, second.String()+"/a", id(o))
	list, err := c.List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	require.Equal(t, first.String()+"/a", id(&list.Items[0]))
	require.NoError(t, c.Delete(ctx, "a@"+second.String(), metav1.DeleteOptions{}))
	_, err = c.Get(ctx, "a", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}
