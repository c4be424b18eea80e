// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package coordinated

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/router"
	"github.com/atoll-dev/atoll/router/apiserver"
	"github.com/atoll-dev/atoll/router/proxy"
	"github.com/atoll-dev/atoll/wal/waltest"
)

func TestArguments(t *testing.T) {
	ring := regiontest.NewRing()
	c, err := fanout.New(ring, waltest.NewMemory(), fanout.Options{})
	require.NoError(t, err)
	_, err = New(nil, c)
	require.EqualError(t, err, "coordinated: the directory is nil; pass the one of the coordinator")
	_, err = New(ring, nil)
	require.EqualError(t, err, "coordinated: the coordinator is nil; make one with fanout.New")
}

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// settings is a kind of another project: ConfigMaps that exist in every region, with the claim in an annotation.
func settings() fanout.Kind {
	return fanout.Kind{Resource: configMaps, Kind: "ConfigMap", Namespaced: true, Mode: fanout.Everywhere, Claim: fanout.InAnnotation("example.com/claim")}
}

func newSettings(value string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "settings", "namespace": "default"},
		"data": map[string]any{"value": value},
	}}
}

func value(o *unstructured.Unstructured) string {
	value, _, _ := unstructured.NestedString(o.Object, "data", "value")
	return value
}

// A kind of the program is written together too. Its claim in an annotation is not the caller's.
func TestAKindOfTheProgram(t *testing.T) {
	s := newScene(t, fanout.Options{Kinds: []fanout.Kind{settings()}})
	client := s.in(t, "us.loodse", configMaps)
	forged := newSettings("x")
	forged.SetAnnotations(map[string]string{"example.com/claim": "{}"})
	_, err := client.Create(t.Context(), forged, metav1.CreateOptions{})
	require.ErrorContains(t, err, "metadata.annotations[example.com/claim]")
	_, err = client.Create(t.Context(), newSettings("1"), metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = s.in(t, "eu.loodse", configMaps).Patch(t.Context(), "settings", types.MergePatchType, []byte(`{"data":{"value":"2"}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	o, err := s.in(t, "jp.loodse", configMaps).Get(t.Context(), "settings", metav1.GetOptions{})
	require.NoError(t, err)
	o.Object["data"] = map[string]any{"value": "3"}
	_, err = s.in(t, "jp.loodse", configMaps).Update(t.Context(), o, metav1.UpdateOptions{})
	require.NoError(t, err)
	for peer := range peers {
		require.Equal(t, "3", value(s.get(t, peer, configMaps, "settings")), peer)
	}
	_, err = client.Patch(t.Context(), "settings", types.MergePatchType, []byte(`{"metadata":{"annotations":{"example.com/claim":null}}}`), metav1.PatchOptions{})
	require.ErrorContains(t, err, "metadata.annotations[example.com/claim]")
	require.NoError(t, client.Delete(t.Context(), "settings", metav1.DeleteOptions{}))
	for peer := range peers {
		require.Nil(t, s.get(t, peer, configMaps, "settings"), peer)
	}
}

// Neither another address of a region nor another name of the type leads around the operation.
func TestNoWayAround(t *testing.T) {
	s := newScene(t, fanout.Options{})
	writes, err := New(s.ring, s.coordinator)
	require.NoError(t, err)
	routes, err := router.New(s.ring, router.Options{})
	require.NoError(t, err)
	single, err := proxy.New(routes, func(*http.Request) (router.Identity, error) {
		return router.Impersonate(router.User{Name: "alice"}), nil
	}, proxy.Options{})
	require.NoError(t, err)
	handler, err := apiserver.New(routes, single, apiserver.Options{Fanout: writes, Map: func(common schema.GroupVersionResource, _ region.Key) (schema.GroupVersionResource, bool) {
		if common.Group == "common.example.com" {
			common.Group = accounts.Group
		}
		return common, true
	}})
	require.NoError(t, err)
	s.server = httptest.NewServer(handler)
	defer s.server.Close()
	for _, path := range []string{
		"/regions/eu.loodse" + accountsPath, "/clusters/eu.loodse" + accountsPath, "/clusters/*" + accountsPath, "/regions/*" + accountsPath,
		"/regions/eu.loodse" + accountsPath + "/", "/regions/*/apis/common.example.com/v1alpha1/accounts", "/regions/eu%2Eloodse" + accountsPath,
		"/regions/eu.loodse/apis/catalog.kubecarrier.io/v1alpha1/%61ccounts",
	} {
		manifest := newAcme
		if path == "/regions/*/apis/common.example.com/v1alpha1/accounts" {
			manifest = `{"apiVersion":"common.example.com/v1alpha1","kind":"Account","metadata":{"name":"acme"},"spec":{"roles":["Tenant"]}}`
		}
		code, answer := s.send(t, http.MethodPost, path, jsonType, manifest)
		require.Equal(t, http.StatusCreated, code, "%s: %s", path, answer)
		for peer := range peers {
			require.Equal(t, "Active", stage(s.get(t, peer, accounts, "acme")), "%s: %s", path, peer)
		}
		code, answer = s.send(t, http.MethodDelete, "/regions/*"+accountsPath+"/acme", "", "")
		require.Equal(t, http.StatusOK, code, answer)
	}
}

// An object that a person applied without a claim is changed and deleted in its region alone.
func TestUnclaimed(t *testing.T) {
	s := newScene(t, fanout.Options{})
	s.acme(t)
	_, err := s.at(t, "peer-b", clusters).Create(t.Context(), newCluster("db"), metav1.CreateOptions{})
	require.NoError(t, err)
	all := s.in(t, "*", clusters)
	o, err := all.Patch(t.Context(), "db", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.Equal(t, "db@us.loodse", o.GetName())
	require.Equal(t, "b", s.get(t, "peer-b", clusters, "db").GetLabels()["a"])
	code, answer := s.send(t, http.MethodPost, "/regions/eu.loodse"+clustersPath, jsonType, newDB)
	require.Equal(t, http.StatusConflict, code, answer)
	require.Contains(t, answer, "region us.loodse")
	code, answer = s.send(t, http.MethodPost, "/regions/us.loodse"+clustersPath, jsonType, newDB)
	require.Equal(t, http.StatusConflict, code, answer)
	require.NoError(t, all.Delete(t.Context(), "db", metav1.DeleteOptions{}))
	require.Nil(t, s.get(t, "peer-b", clusters, "db"))
}

// kubectl's own record of its last write is kept in the region, so that a later client-side apply removes fields.
func TestLastApplied(t *testing.T) {
	s := newScene(t, fanout.Options{})
	const name = "kubectl.kubernetes.io/last-applied-configuration"
	client := s.in(t, "us.loodse", accounts)
	o := newAccount("acme")
	o.SetAnnotations(map[string]string{name: "first"})
	made, err := client.Create(t.Context(), o, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Equal(t, "first", made.GetAnnotations()[name])
	patch := []byte(`{"metadata":{"annotations":{"` + name + `":"second"}},"spec":{"roles":["Provider"]}}`)
	made, err = client.Patch(t.Context(), "acme", types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(t, err)
	require.Equal(t, "second", made.GetAnnotations()[name])
	patch = []byte(`{"metadata":{"annotations":{"` + name + `":"third"}},"spec":{"roles":["Tenant","Provider"]}}`)
	made, err = s.in(t, "eu.loodse", accounts).Patch(t.Context(), "acme", types.MergePatchType, patch, metav1.PatchOptions{}) // which has a replica
	require.NoError(t, err)
	require.Equal(t, "third", made.GetAnnotations()[name])
	for peer := range peers {
		require.Equal(t, []string{"Tenant", "Provider"}, roles(s.get(t, peer, accounts, "acme")), peer)
	}
}
