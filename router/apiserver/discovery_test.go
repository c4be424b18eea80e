// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	discoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/router/proxy"
)

// define creates a CRD of the resource in one region.
func (s *scene) define(t *testing.T, at, group, plural, kind string) {
	t.Helper()
	crds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	_, err := s.client(t, at).Resource(crds).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": plural + "." + group},
		"spec": map[string]any{
			"group": group, "scope": "Namespaced", "names": map[string]any{"plural": plural, "kind": kind},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{
				"type": "object", "properties": map[string]any{"spec": map[string]any{"type": "object", "properties": map[string]any{"shards": map[string]any{"type": "integer"}}}},
			}}}},
		},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// kinds returns the groups and kinds of custom resources that a client finds.
func kinds(t *testing.T, client discovery.DiscoveryInterface) []string {
	t.Helper()
	_, lists, err := client.ServerGroupsAndResources()
	require.NoError(t, err)
	var found []string
	for _, list := range lists {
		for _, r := range list.APIResources {
			if gv, _ := schema.ParseGroupVersion(list.GroupVersion); slices.Contains([]string{"Couch", "Lamp"}, r.Kind) {
				found = append(found, gv.String()+" "+r.Kind)
			}
		}
	}
	slices.Sort(found)
	return found
}

// Clients find the types of all regions: those of one region, mapped ones under their common group, and the last known
// ones of a region that does not answer.
func TestDiscovery(t *testing.T) {
	s := newScene(t, proxy.Limits{})
	s.define(t, "eu.loodse", "eu.loodse", "couches", "Couch")
	s.define(t, "us.loodse", "us.loodse", "couches", "Couch")
	s.define(t, "us.loodse", "example.com", "lamps", "Lamp")
	want := []string{"example.com/v1 Lamp", "loodse/v1 Couch"}
	config := &rest.Config{Host: s.server.URL + "/regions/*", BearerToken: "alice"}
	client := discovery.NewDiscoveryClientForConfigOrDie(config)
	require.Equal(t, want, kinds(t, client))
	older := discovery.NewDiscoveryClientForConfigOrDie(config)
	older.UseLegacyDiscovery = true
	require.Equal(t, want, kinds(t, older))
	_, err := older.ServerResourcesForGroupVersion("loodse/v2")
	require.Error(t, err)
	code, _, _ := s.ask(t, http.MethodGet, "/regions/*/apis/eu.loodse", "alice")
	require.Equal(t, http.StatusNotFound, code, "it has its common name")
	code, _, body := s.ask(t, http.MethodGet, "/regions/*/apis/loodse", "alice")
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, body, `"groupVersion":"loodse/v1"`)
	code, _, _ = s.ask(t, http.MethodPost, "/regions/*/apis", "alice")
	require.Equal(t, http.StatusMethodNotAllowed, code)
	code, _, _ = s.ask(t, http.MethodGet, "/regions/*/apis", "mallory")
	require.Equal(t, http.StatusUnauthorized, code)

	s.ring.Server("peer-b").Partition(true)
	require.Equal(t, want, kinds(t, client), "of us as last known")
	code, header, body := s.ask(t, http.MethodGet, "/regions/*/apis", "alice")
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, header.Get("Warning"), "us.loodse")
	require.Contains(t, body, `"example.com"`)
}

// described is a schema of an OpenAPI document.
type described struct {
	Kinds []schema.GroupVersionKind `json:"x-kubernetes-group-version-kind"`
}

// The OpenAPI document of a type is that of a region that has it, under the common group.
func TestOpenAPI(t *testing.T) {
	s := newScene(t, proxy.Limits{})
	s.define(t, "us.loodse", "us.loodse", "couches", "Couch")
	client := openapi.NewClient(discovery.NewDiscoveryClientForConfigOrDie(&rest.Config{Host: s.server.URL + "/regions/*", BearerToken: "alice"}).RESTClient())
	paths, err := client.Paths()
	require.NoError(t, err)
	require.NotContains(t, paths, "apis/us.loodse/v1")
	require.Contains(t, paths, "apis/apps/v1")
	text, err := paths["apis/loodse/v1"].Schema("application/json")
	require.NoError(t, err)
	var document struct {
		Components struct {
			Schemas map[string]described
		}
	}
	require.NoError(t, json.Unmarshal(text, &document))
	require.True(t, slices.ContainsFunc(slices.Collect(maps.Values(document.Components.Schemas)), func(s described) bool {
		return slices.Contains(s.Kinds, schema.GroupVersionKind{Group: "loodse", Version: "v1", Kind: "Couch"})
	}))
	require.Contains(t, string(text), "shards")
	require.NotContains(t, string(text), `"group":"us.loodse"`)
	code, header, _ := s.ask(t, http.MethodGet, "/regions/*/openapi/v3/apis/apps/v1", "alice")
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, "no-cache, private", header.Get("Cache-Control"), "without the hash of the content")
	code, _, _ = s.ask(t, http.MethodGet, "/regions/*/openapi/v3/apis/none/v1", "alice")
	require.Equal(t, http.StatusNotFound, code)
}

// Regions that describe one type differently: the union has the verbs and subresources of both.
func TestDescriptionsAreJoined(t *testing.T) {
	list := func(verbs []string, sub string) []discoveryv2.APIGroupDiscovery {
		return []discoveryv2.APIGroupDiscovery{{ObjectMeta: metav1.ObjectMeta{Name: "g"}, Versions: []discoveryv2.APIVersionDiscovery{{Version: "v1", Resources: []discoveryv2.APIResourceDiscovery{
			{Resource: "things", Verbs: verbs, Subresources: []discoveryv2.APISubresourceDiscovery{{Subresource: sub, Verbs: []string{"get"}}}},
		}}}}}
	}
	same := func(g schema.GroupVersionResource) string { return g.Group }
	union := join(join(nil, list([]string{"list", "get"}, "status"), same), list([]string{"watch", "get"}, "scale"), same)
	require.Len(t, union, 1)
	things := union[0].Versions[0].Resources[0]
	require.Equal(t, []string{"get", "list", "watch"}, things.Verbs)
	require.Len(t, things.Subresources, 2)
}
