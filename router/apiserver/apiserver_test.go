// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/router"
	"github.com/atoll-dev/atoll/router/proxy"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// scene is a Handler for two regions.
type scene struct {
	ring   *regiontest.Ring
	routes *router.Router
	single *proxy.Proxy
	server *httptest.Server
}

// authenticate accepts the tokens alice and bob.
func authenticate(r *http.Request) (router.Identity, error) {
	switch token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "); token {
	case "alice", "bob":
		return router.Impersonate(router.User{Name: token}), nil
	}
	return router.Identity{}, errors.New("the token is not known")
}

func newScene(t *testing.T, limits proxy.Limits) *scene {
	t.Helper()
	ring := regiontest.NewRing("peer-a", "peer-b")
	t.Cleanup(ring.Close)
	for name, peer := range map[string]region.PeerName{"eu": "peer-a", "us": "peer-b"} {
		require.NoError(t, ring.Serve(peer, region.Key{Provider: "loodse", Name: name}))
	}
	routes, err := router.New(ring, router.Options{})
	require.NoError(t, err)
	single, err := proxy.New(routes, authenticate, proxy.Options{Limits: limits})
	require.NoError(t, err)
	s := &scene{ring: ring, routes: routes, single: single}
	s.server = s.replica(t, Options{})
	return s
}

// replica starts another server for the same regions.
func (s *scene) replica(t *testing.T, opts Options) *httptest.Server {
	t.Helper()
	handler, err := New(s.routes, s.single, opts)
	require.NoError(t, err)
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

// client returns alice's client at /regions/NAME.
func (s *scene) client(t *testing.T, name string) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(&rest.Config{Host: s.server.URL + "/regions/" + name, BearerToken: "alice"})
	require.NoError(t, err)
	return client
}

func (s *scene) put(t *testing.T, name, object string) {
	t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": object}}}
	_, err := s.client(t, name).Resource(configMaps).Namespace("default").Create(t.Context(), o, metav1.CreateOptions{})
	require.NoError(t, err)
}

// ask sends a request as the user of the token.
func (s *scene) ask(t *testing.T, method, path, token string) (code int, header http.Header, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.server.URL+path, http.NoBody)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := s.server.Client().Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, resp.Header, string(data)
}

// An unmodified client-go informer, over HTTP, gets the objects of both regions.
func TestAllRegions(t *testing.T) {
	s := newScene(t, proxy.Limits{})
	s.put(t, "eu.loodse", "a")
	s.put(t, "us.loodse", "a")
	all := s.client(t, "*")
	list, err := all.Resource(configMaps).List(t.Context(), metav1.ListOptions{Limit: 1})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	require.Equal(t, "ConfigMapList", list.GetKind())
	list, err = all.Resource(configMaps).List(t.Context(), metav1.ListOptions{Limit: 1, Continue: list.GetContinue()})
	require.NoError(t, err)
	require.Equal(t, "a@us.loodse", list.Items[0].GetName())
	one, err := all.Resource(configMaps).Namespace("default").Get(t.Context(), "a@eu.loodse", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "a@eu.loodse", one.GetName())

	informer := cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			return all.Resource(configMaps).List(ctx, opts)
		},
		WatchFuncWithContext: all.Resource(configMaps).Watch,
	}, &unstructured.Unstructured{}, 0, cache.Indexers{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		informer.RunWithContext(ctx)
	}()
	holds := func(want ...string) {
		require.Eventually(t, func() bool {
			keys := informer.GetStore().ListKeys()
			slices.Sort(keys)
			return slices.Equal(keys, want)
		}, 2*time.Minute, 10*time.Millisecond, "%v, want %v", informer.GetStore().ListKeys(), want)
	}
	holds("default/a@eu.loodse", "default/a@us.loodse")
	s.put(t, "us.loodse", "b")
	require.NoError(t, s.client(t, "eu.loodse").Resource(configMaps).Namespace("default").Delete(t.Context(), "a", metav1.DeleteOptions{}))
	holds("default/a@us.loodse", "default/b@us.loodse")
	cancel()
	<-done
}

func TestAllRegionsRefuses(t *testing.T) {
	s := newScene(t, proxy.Limits{})
	for _, c := range []struct {
		method, path, token string
		code                int
	}{
		{http.MethodGet, "/regions/*/api/v1/configmaps", "mallory", http.StatusUnauthorized},
		{http.MethodGet, "/clusters/*/api/v1", "mallory", http.StatusUnauthorized},
		{http.MethodOptions, "/regions/*/api/v1/namespaces/default/configmaps", "alice", http.StatusMethodNotAllowed},
		{http.MethodGet, "/regions/*/api/v1/configmaps?limit=many", "alice", http.StatusBadRequest},
		{http.MethodGet, "/regions/*/api/v1/configmaps?continue=mine", "alice", http.StatusBadRequest},
		{http.MethodGet, "/regions/*/apis/%2e%2e/v1/configmaps", "alice", http.StatusBadRequest},
		{http.MethodGet, "/regions/*/api/v1/namespaces/default/configmaps/a@eu.loodse/status", "alice", http.StatusNotFound},
		{http.MethodGet, "/regions/*/api/v1/namespaces/default/status", "alice", http.StatusConflict},
		{http.MethodGet, "/regions/*/api/v1/namespaces//configmaps", "alice", http.StatusBadRequest},
		{http.MethodGet, "/regions/*/api/v1/watch/configmaps", "alice", http.StatusBadRequest},
		{http.MethodGet, "/regions/*/api/v1/watch/configmaps@eu.loodse", "alice", http.StatusBadRequest},
		{http.MethodGet, "/regions/*/api/v1/namespaces/default/configmaps/..@eu.loodse", "alice", http.StatusBadRequest},
		{http.MethodGet, "/regions/*/api/v1/namespaces/default/configmaps/@eu.loodse", "alice", http.StatusBadRequest},
		{http.MethodGet, "/regions/*/api/v1/namespaces/default/pods/a/log", "alice", http.StatusConflict},
		{http.MethodGet, "/regions/*/api/v1/nothings", "alice", http.StatusNotFound},
		{http.MethodGet, "/regions/*/api/v1", "alice", http.StatusOK},
		{http.MethodGet, "/clusters/*/api/v1/configmaps", "alice", http.StatusOK},
	} {
		code, _, body := s.ask(t, c.method, c.path, c.token)
		require.Equal(t, c.code, code, "%s: %s", c.path, body)
		require.NotContains(t, body, "peer-")
	}
}

// A request that impersonates another user is refused, whether it is for all regions or for one.
func TestAllRegionsRefuseImpersonation(t *testing.T) {
	s := newScene(t, proxy.Limits{})
	for _, path := range []string{
		"/regions/*/api/v1/configmaps", "/clusters/*/api/v1/configmaps?watch=yes", "/regions/*/api/v1", "/regions/*/api/v1/namespaces/default/configmaps/a@eu.loodse",
		"/regions/eu.loodse/api/v1/configmaps",
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.server.URL+path, http.NoBody)
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer alice")
		req.Header.Set("Impersonate-User", "bob")
		resp, err := s.server.Client().Do(req)
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusForbidden, resp.StatusCode, "%s: %s", path, body)
		require.Contains(t, string(body), "Impersonate-User")
	}
}

// Reads of all regions are limited, and each user gets a share of the limit.
func TestAllRegionsAreBounded(t *testing.T) {
	s := newScene(t, proxy.Limits{StreamsPerRegion: 4})
	watch := func(token string) *http.Response {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.server.URL+"/regions/*/api/v1/configmaps?watch=yes", http.NoBody)
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := s.server.Client().Do(req)
		require.NoError(t, err)
		return resp
	}
	first, second, other := watch("alice"), watch("alice"), watch("bob") //nolint:bodyclose // all are closed below
	require.Equal(t, http.StatusOK, first.StatusCode)
	require.Equal(t, http.StatusTooManyRequests, second.StatusCode, "half of two: reads of all regions have half of a region's")
	require.Equal(t, "1", second.Header.Get("Retry-After"))
	require.Equal(t, http.StatusOK, other.StatusCode)
	for _, resp := range []*http.Response{first, second, other} {
		require.NoError(t, resp.Body.Close())
	}
}

// While a region is unreachable, reads of all regions get a warning. Requests for partial answers
// return the objects of the other regions; otherwise they fail.
func TestPartialLists(t *testing.T) {
	for _, partial := range []bool{false, true} {
		t.Run(fmt.Sprint(partial), func(t *testing.T) {
			s := newScene(t, proxy.Limits{})
			query := "?partial=" + fmt.Sprint(partial)
			s.put(t, "eu.loodse", "a")
			s.ring.Partition("peer-b", true)
			code, header, body := s.ask(t, http.MethodGet, "/regions/*/api/v1/configmaps"+query, "alice")
			require.NotContains(t, body+strings.Join(header.Values("Warning"), ""), "peer-")
			require.Equal(t, []string{`299 - "region us.loodse: Unreachable"`}, header.Values("Warning"))
			if partial {
				require.Equal(t, http.StatusOK, code)
				require.Contains(t, body, "a@eu.loodse")
			} else {
				require.Equal(t, http.StatusServiceUnavailable, code)
				require.Equal(t, "1", header.Get("Retry-After"))
			}
			code, _, _ = s.ask(t, http.MethodGet, "/regions/*/api/v1/configmaps?partial=some", "alice")
			require.Equal(t, http.StatusBadRequest, code)

			path := "/regions/*/api/v1/namespaces/default/configmaps/"
			code, header, body = s.ask(t, http.MethodGet, path+"a"+query, "alice")
			require.Equal(t, []string{`299 - "region us.loodse: Unreachable"`}, header.Values("Warning"))
			if partial {
				require.Equal(t, http.StatusOK, code)
				require.Contains(t, body, "a@eu.loodse")
			} else {
				require.Equal(t, http.StatusServiceUnavailable, code)
			}
			for _, name := range []string{"b", "b@us.loodse"} {
				code, _, body = s.ask(t, http.MethodGet, path+name+query, "alice")
				require.Equal(t, http.StatusServiceUnavailable, code, "it may be in the region that does not answer: %s", body)
				require.Contains(t, body, "us.loodse")
			}
			s.ring.Partition("peer-a", true)
			code, _, body = s.ask(t, http.MethodGet, "/regions/*/api/v1/configmaps"+query, "alice")
			require.Equal(t, http.StatusServiceUnavailable, code, "no region answers: %s", body)
		})
	}
}

// A group that is a provider's name maps to the groups of the regions of this provider. Regions of
// other providers have no such type.
func TestByProvider(t *testing.T) {
	ring := regiontest.NewRing("peer-a")
	t.Cleanup(ring.Close)
	eu, us := region.Key{Provider: "loodse", Name: "eu"}, region.Key{Provider: "acme", Name: "us"}
	require.NoError(t, ring.Serve("peer-a", eu, us))
	routes, err := router.New(ring, router.Options{})
	require.NoError(t, err)
	h := &Handler{routes: routes}
	couchDBs := func(group string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: group, Version: "v1", Resource: "couchdbs"}
	}
	for _, c := range []struct {
		group string
		at    region.Key
		want  string
		ok    bool
	}{
		{"loodse", eu, "eu.loodse", true}, {"loodse", us, "", false},
		{"acme", us, "us.acme", true}, {"", eu, "", true}, {"apps", us, "apps", true},
	} {
		got, ok := h.byProvider(couchDBs(c.group), c.at)
		require.Equal(t, c.ok, ok, "%s in %s", c.group, c.at)
		if ok {
			require.Equal(t, couchDBs(c.want), got)
		}
	}
}
