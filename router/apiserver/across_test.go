// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/router/proxy"
)

var secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// putSecret creates a Secret in a region.
func (s *scene) putSecret(t *testing.T, name, object string) {
	t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": object}}}
	_, err := s.client(t, name).Resource(secrets).Namespace("default").Create(t.Context(), o, metav1.CreateOptions{})
	require.NoError(t, err)
}

// typed returns KIND NAME of the objects, in order.
func typed(objects []unstructured.Unstructured) (all []string) {
	for i := range objects {
		all = append(all, objects[i].GetAPIVersion()+" "+objects[i].GetKind()+" "+objects[i].GetName())
	}
	slices.Sort(all)
	return all
}

// An unmodified dynamic client lists and watches two types in two regions, with continue tokens and from a
// resourceVersion.
func TestAcrossTypes(t *testing.T) {
	s := newScene(t, proxy.Limits{})
	s.put(t, "eu.loodse", "a")
	s.put(t, "us.loodse", "b")
	s.putSecret(t, "us.loodse", "a")
	s.server = s.replica(t, Options{Catalog: []schema.GroupVersionResource{configMaps, secrets}})
	want := []string{"v1 ConfigMap a@eu.loodse", "v1 ConfigMap b@us.loodse", "v1 Secret a@us.loodse"}
	for _, name := range []string{"configmaps.v1,secrets.v1", "secrets.v1.,configmaps.v1.", "catalog"} {
		across := s.client(t, "*").Resource(schema.GroupVersionResource{Group: acrossGroup, Version: acrossVersion, Resource: name})
		for _, namespace := range []string{"", "default"} {
			client := across.Namespace(namespace)
			var all []unstructured.Unstructured
			opts := metav1.ListOptions{Limit: 1}
			for {
				list, err := client.List(t.Context(), opts)
				require.NoError(t, err)
				require.Equal(t, "v1 List", list.GetAPIVersion()+" "+list.GetKind())
				require.LessOrEqual(t, len(list.Items), 1)
				all = append(all, list.Items...)
				if opts.Continue = list.GetContinue(); opts.Continue == "" {
					break
				}
			}
			require.Equal(t, want, typed(all), name)
		}
	}

	across := s.client(t, "*").Resource(schema.GroupVersionResource{Group: acrossGroup, Version: acrossVersion, Resource: "catalog"})
	list, err := across.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	named, err := across.List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=a@us.loodse"})
	require.NoError(t, err)
	require.Equal(t, []string{"v1 Secret a@us.loodse"}, typed(named.Items))
	stream, err := across.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	require.NoError(t, err)
	defer func() {
		stream.Stop()
		for range stream.ResultChan() {
		}
	}()
	s.putSecret(t, "eu.loodse", "c")
	s.put(t, "us.loodse", "c")
	var events []unstructured.Unstructured
	for len(events) < 2 {
		e := <-stream.ResultChan()
		require.Equal(t, watch.Added, e.Type)
		o, ok := e.Object.(*unstructured.Unstructured)
		require.True(t, ok)
		events = append(events, *o)
	}
	require.Equal(t, []string{"v1 ConfigMap c@us.loodse", "v1 Secret c@eu.loodse"}, typed(events))
}

// A region decides about each type as the caller.
func TestAcrossTypesAreReadAsTheCaller(t *testing.T) {
	s := newScene(t, proxy.Limits{})
	asia := regiontest.NewServer(regiontest.Options{Authorize: func(r regiontest.Request) error {
		if r.User.Name == "alice" && r.Resource == "secrets" {
			return errors.New("alice reads no secrets here")
		}
		return nil
	}})
	t.Cleanup(asia.Close)
	require.NoError(t, s.ring.Join("peer-c", asia))
	require.NoError(t, s.ring.Serve("peer-c", region.Key{Provider: "loodse", Name: "asia"}))
	const path = "/regions/*/apis/across.atoll.dev/v1/configmaps.v1,secrets.v1"
	code, _, body := s.ask(t, http.MethodGet, path, "alice")
	require.Equal(t, http.StatusServiceUnavailable, code, body)
	require.Contains(t, body, "1 of 3 regions failed: region asia.loodse: Forbidden")
	require.NotContains(t, body, "peer-c")
	code, _, body = s.ask(t, http.MethodGet, path, "bob")
	require.Equal(t, http.StatusOK, code, body)
}

func TestAcrossTypesRefusals(t *testing.T) {
	s := newScene(t, proxy.Limits{})
	s.put(t, "eu.loodse", "a")
	s.put(t, "us.loodse", "a")
	many := make([]string, maxAcross+1)
	for i := range many {
		many[i] = "configmaps.v1.g" + strings.Repeat("x", i)
	}
	for path, want := range map[string]struct {
		method string
		code   int
		text   string
	}{
		"v2/configmaps.v1":                        {http.MethodGet, http.StatusNotFound, "v2"},
		"v1/configmaps":                           {http.MethodGet, http.StatusBadRequest, "want RESOURCE.VERSION.GROUP"},
		"v1/configmaps.":                          {http.MethodGet, http.StatusBadRequest, "want RESOURCE.VERSION.GROUP"},
		"v1/configmaps.v1,,secrets.v1":            {http.MethodGet, http.StatusBadRequest, "want RESOURCE.VERSION.GROUP"},
		"v1/configmaps.v1,configmaps.v1.":         {http.MethodGet, http.StatusBadRequest, "is named twice"},
		"v1/configmaps.v1,x.v1.across.atoll.dev":  {http.MethodGet, http.StatusBadRequest, "stands for types"},
		"v1/" + strings.Join(many, ","):           {http.MethodGet, http.StatusBadRequest, "at most 32"},
		"v1/configmaps.v1,secrets.v1/a@eu.loodse": {http.MethodGet, http.StatusMethodNotAllowed, ""},
		"v1/namespaces/default/configmaps.v1":     {http.MethodPost, http.StatusMethodNotAllowed, ""},
		"v1/namespaces/default/secrets.v1":        {http.MethodDelete, http.StatusMethodNotAllowed, ""},
		"v1/catalog":                              {http.MethodGet, http.StatusNotFound, "catalog"},
	} {
		code, _, body := s.ask(t, want.method, "/regions/*/apis/across.atoll.dev/"+path, "alice")
		require.Equal(t, want.code, code, "%s: %s", path, body)
		require.Contains(t, body, want.text, path)
	}
	// Types have no columns in common. kubectl also accepts objects.
	path := "/apis/across.atoll.dev/v1/configmaps.v1,secrets.v1"
	require.Equal(t, http.StatusNotAcceptable, s.get(t, path, accept("application/json;as=Table;v=v1;g=meta.k8s.io")).StatusCode)
	list := unstructured.UnstructuredList{}
	require.NoError(t, json.NewDecoder(s.get(t, path, accept(kubectl)).Body).Decode(&list.Object))
	require.Equal(t, "List", list.GetKind())
}

func TestCatalogOptions(t *testing.T) {
	s := newScene(t, proxy.Limits{})
	for text, types := range map[string][]schema.GroupVersionResource{
		"Options.Catalog[1]": {configMaps, {}},
		"is there twice":     {configMaps, secrets, configMaps},
		"stands for types":   {{Group: acrossGroup, Version: "v1", Resource: "catalog"}},
		"at most 32":         make([]schema.GroupVersionResource, maxAcross+1),
	} {
		_, err := New(s.routes, s.single, Options{Catalog: types})
		require.ErrorContains(t, err, text)
	}
}
