// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package coordinated

import (
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
)

// A client of one region, or of all regions, creates, changes and deletes an Account: every peer follows.
func TestAccountFlow(t *testing.T) {
	for _, where := range []string{"*", "eu.loodse", "jp.loodse"} {
		t.Run(where, func(t *testing.T) {
			s := newScene(t, fanout.Options{})
			client := s.in(t, where, accounts)
			made, err := client.Create(t.Context(), newAccount("acme"), metav1.CreateOptions{})
			require.NoError(t, err)
			name := made.GetName()
			if where == "*" {
				require.Equal(t, "acme@ap.loodse", name)
			} else {
				require.Equal(t, "acme", name)
			}
			require.NotEmpty(t, made.GetUID())
			all := func(want ...string) {
				t.Helper()
				for peer := range peers {
					o := s.get(t, peer, accounts, "acme")
					require.NotNil(t, o, peer)
					require.Equal(t, want, roles(o), peer)
					require.Equal(t, "Active", stage(o), peer)
				}
			}
			all("Tenant")

			_, err = client.Create(t.Context(), newAccount("acme", "Provider"), metav1.CreateOptions{})
			require.True(t, apierrors.IsAlreadyExists(err), "%v", err)

			require.NoError(t, unstructured.SetNestedStringSlice(made.Object, []string{"Provider"}, "spec", "roles"))
			changed, err := client.Update(t.Context(), made, metav1.UpdateOptions{})
			require.NoError(t, err)
			require.Equal(t, name, changed.GetName())
			require.NotEqual(t, made.GetResourceVersion(), changed.GetResourceVersion())
			all("Provider")
			_, err = client.Update(t.Context(), made, metav1.UpdateOptions{})
			require.True(t, apierrors.IsConflict(err), "%v", err)

			for kind, patch := range map[types.PatchType]string{
				types.MergePatchType: `{"spec":{"roles":["Tenant"]}}`,
				types.JSONPatchType:  `[{"op":"replace","path":"/spec/roles","value":["Tenant","Provider"]}]`,
			} {
				o, err := client.Patch(t.Context(), "acme", kind, []byte(patch), metav1.PatchOptions{})
				require.NoError(t, err, kind)
				all(roles(o)...)
			}

			require.NoError(t, client.Delete(t.Context(), name, metav1.DeleteOptions{}))
			for peer := range peers {
				require.Nil(t, s.get(t, peer, accounts, "acme"), peer)
			}
			err = client.Delete(t.Context(), name, metav1.DeleteOptions{})
			require.True(t, apierrors.IsNotFound(err), "%v", err)
		})
	}
}

// Server-side apply creates an Account, changes it twice, and drops fields, from any region.
func TestAccountApply(t *testing.T) {
	for _, where := range []string{"*", "eu.loodse"} {
		t.Run(where, func(t *testing.T) {
			s := newScene(t, fanout.Options{})
			client := s.in(t, where, accounts)
			apply := func(labels map[string]string, roles ...any) *unstructured.Unstructured {
				t.Helper()
				o := newAccount("acme", roles...)
				o.SetLabels(labels)
				data, err := o.MarshalJSON()
				require.NoError(t, err)
				got, err := client.Patch(t.Context(), "acme", types.ApplyYAMLPatchType, data, metav1.PatchOptions{FieldManager: "kubectl"})
				require.NoError(t, err)
				return got
			}
			apply(map[string]string{"a": "1", "b": "1"}, "Tenant")
			apply(map[string]string{"a": "2", "b": "1"}, "Provider")
			apply(map[string]string{"a": "3"}, "Tenant", "Provider")
			client = s.in(t, "us.loodse", accounts) // which has a replica
			apply(map[string]string{"c": "1"}, "Provider")
			for peer := range peers {
				o := s.get(t, peer, accounts, "acme")
				require.Equal(t, map[string]string{"c": "1"}, o.GetLabels(), peer)
				require.Equal(t, []string{"Provider"}, roles(o), peer)
			}
			got := apply(map[string]string{"c": "1"}, "Provider")
			require.Equal(t, s.get(t, "peer-b", accounts, "acme").GetResourceVersion(), got.GetResourceVersion(), "nothing changed")
			apply(nil, "Provider")
			for peer := range peers {
				require.Empty(t, s.get(t, peer, accounts, "acme").GetLabels(), peer)
			}
		})
	}
}

// A ServiceCluster is created in the region that the request names; the other peers hold guards of its name. Its
// changes and its removal are sent to its region, whatever region lists the name.
func TestServiceClusterFlow(t *testing.T) {
	create := map[string]struct {
		where, name string
		annotation  string
	}{
		"one region":     {where: "us.loodse", name: "db"},
		"qualified name": {where: "*", name: "db@us.loodse"},
		"annotation":     {where: "*", name: "db", annotation: "us.loodse"},
	}
	for name, c := range create {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, fanout.Options{})
			s.acme(t)
			o := newCluster(c.name)
			if c.annotation != "" {
				o.SetAnnotations(map[string]string{"router.atoll.dev/region": c.annotation})
			}
			made, err := s.in(t, c.where, clusters).Create(t.Context(), o, metav1.CreateOptions{})
			require.NoError(t, err)
			require.NoError(t, s.coordinator.Wait(t.Context()))
			for peer := range peers {
				o := s.get(t, peer, clusters, "db")
				require.NotNil(t, o, peer)
				_, payload, _ := unstructured.NestedMap(o.Object, "spec", "kubeconfigSecret")
				require.Equal(t, peer == "peer-b", payload, peer)
				require.NotContains(t, o.GetAnnotations(), "router.atoll.dev/region")
			}
			all := s.in(t, "*", clusters)
			if c.where == "*" {
				require.Equal(t, "db@us.loodse", made.GetName())
				made.SetLabels(map[string]string{"of": "update"})
				made, err = all.Update(t.Context(), made, metav1.UpdateOptions{})
				require.NoError(t, err)
				require.Equal(t, "db@us.loodse", made.GetName())
				require.Equal(t, "update", s.get(t, "peer-b", clusters, "db").GetLabels()["of"])
			}
			patch := []byte(`{"metadata":{"labels":{"of":"patch"}}}`)
			changed, err := all.Patch(t.Context(), "db", types.MergePatchType, patch, metav1.PatchOptions{})
			require.NoError(t, err)
			require.Equal(t, "db@us.loodse", changed.GetName())
			require.Equal(t, "patch", s.get(t, "peer-b", clusters, "db").GetLabels()["of"])

			guard := s.in(t, "eu.loodse", clusters)
			_, err = guard.Patch(t.Context(), "db", types.MergePatchType, patch, metav1.PatchOptions{})
			require.True(t, apierrors.IsConflict(err), "%v", err)
			require.ErrorContains(t, err, "region eu.loodse holds only the name: the object is in region us.loodse")
			err = guard.Delete(t.Context(), "db", metav1.DeleteOptions{})
			require.True(t, apierrors.IsConflict(err), "%v", err)
			require.ErrorContains(t, err, "region us.loodse")
			require.Empty(t, s.get(t, "peer-a", clusters, "db").GetLabels())

			require.NoError(t, all.Delete(t.Context(), "db", metav1.DeleteOptions{}))
			for peer := range peers {
				require.Nil(t, s.get(t, peer, clusters, "db"), peer)
			}
		})
	}
}

// A new ServiceCluster must name a region if there are several. A second one of the name is refused.
func TestServiceClusterNames(t *testing.T) {
	s := newScene(t, fanout.Options{})
	s.acme(t)
	s.reset(t)
	_, err := s.in(t, "*", clusters).Create(t.Context(), newCluster("db"), metav1.CreateOptions{})
	require.True(t, apierrors.IsConflict(err), "%v", err)
	require.ErrorContains(t, err, "set the annotation router.atoll.dev/region")
	apply, err := newCluster("db").MarshalJSON()
	require.NoError(t, err)
	_, err = s.in(t, "*", clusters).Patch(t.Context(), "db", types.ApplyYAMLPatchType, apply, metav1.PatchOptions{FieldManager: "kubectl"})
	require.True(t, apierrors.IsConflict(err), "%v", err)
	require.ErrorContains(t, err, "set the annotation router.atoll.dev/region")
	s.unwritten(t)

	made, err := s.in(t, "*", clusters).Patch(t.Context(), "db@jp.loodse", types.ApplyYAMLPatchType, apply, metav1.PatchOptions{FieldManager: "kubectl"})
	require.NoError(t, err)
	require.Equal(t, "db@jp.loodse", made.GetName())
	require.NoError(t, s.coordinator.Wait(t.Context()))
	for _, name := range []string{"eu.loodse", "ap.loodse", "jp.loodse"} {
		_, err = s.in(t, name, clusters).Create(t.Context(), newCluster("db"), metav1.CreateOptions{})
		require.True(t, apierrors.IsAlreadyExists(err), "%s: %v", name, err)
	}
	_, found, _ := unstructured.NestedMap(s.get(t, region.PeerName("peer-c"), clusters, "db").Object, "spec", "kubeconfigSecret")
	require.True(t, found)
}

// An apply that conflicts with the coordinator alone takes the fields. A conflict with another manager is a conflict, at
// the home and at a replica.
func TestManagers(t *testing.T) {
	s := newScene(t, fanout.Options{})
	s.acme(t)
	labelled := func(value string) *unstructured.Unstructured {
		o := newAccount("acme")
		o.SetLabels(map[string]string{"of": value})
		return o
	}
	apply := func(where, value, manager string) error {
		data, err := labelled(value).MarshalJSON()
		require.NoError(t, err)
		_, err = s.in(t, where, accounts).Patch(t.Context(), "acme", types.ApplyYAMLPatchType, data, metav1.PatchOptions{FieldManager: manager})
		return err
	}
	_, err := s.coordinator.Update(t.Context(), labelled("coordinator"), fanout.AddOptions{})
	require.NoError(t, err)
	for _, where := range []string{"eu.loodse", "us.loodse"} {
		require.NoError(t, apply(where, "first", "kubectl"), where)
		err = apply(where, "second", "another")
		require.True(t, apierrors.IsConflict(err), "%s: %v", where, err)
		require.ErrorContains(t, err, "kubectl", where)
		require.Equal(t, "first", s.get(t, "peer-c", accounts, "acme").GetLabels()["of"], where)
	}
	edit := []byte(`{"metadata":{"labels":{"of":"third"}}}`)
	_, err = s.in(t, "us.loodse", accounts).Patch(t.Context(), "acme", types.MergePatchType, edit, metav1.PatchOptions{FieldManager: "editor"})
	require.NoError(t, err)
	err = apply("jp.loodse", "fourth", "kubectl")
	require.True(t, apierrors.IsConflict(err), "%v", err)
	require.ErrorContains(t, err, "editor")
}
