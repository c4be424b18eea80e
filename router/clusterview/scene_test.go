// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterview

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/router"
	"github.com/atoll-dev/atoll/router/proxy"
	"github.com/atoll-dev/atoll/syncer/v1alpha1"
)

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secrets    = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	targets    = v1alpha1.GroupVersion.WithResource("synctargets")
	eu         = region.Key{Provider: "loodse", Name: "eu"}
)

// scene is a Handler for one region with the SyncTargets c1 and c2, and the syncer c1, who may sync c1 only.
type scene struct {
	*testing.T
	server *regiontest.Server
	view   *httptest.Server
	// reached is called for each request that the region gets. Nil: none is of interest.
	reached atomic.Pointer[func(regiontest.Request)]

	mu      sync.Mutex
	refused []string // the requests that were answered with 403
}

// coded records the requests that are refused.
type coded struct {
	http.ResponseWriter
	scene   *scene
	request string
}

func (c *coded) WriteHeader(code int) {
	if code == http.StatusForbidden {
		c.scene.mu.Lock()
		defer c.scene.mu.Unlock()
		c.scene.refused = append(c.scene.refused, c.request)
	}
	c.ResponseWriter.WriteHeader(code)
}

func (c *coded) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func newScene(t *testing.T, opts Options) *scene {
	t.Helper()
	crd, err := config.CRD("synctargets.workload.kcp.io")
	require.NoError(t, err)
	types, err := regiontest.Compile(crd)
	require.NoError(t, err)
	s := &scene{T: t}
	s.server = regiontest.NewServer(regiontest.Options{Definitions: types, Authorize: s.authorize})
	ring := regiontest.NewRing()
	t.Cleanup(ring.Close)
	t.Cleanup(s.server.Close)
	require.NoError(t, ring.Join("peer-a", s.server))
	require.NoError(t, ring.Serve("peer-a", eu))
	routes, err := router.New(ring, router.Options{})
	require.NoError(t, err)
	handler, err := New(routes, authenticate, opts)
	require.NoError(t, err)
	s.view = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(&coded{ResponseWriter: w, scene: s, request: r.Method + " " + r.URL.Path}, r)
	}))
	t.Cleanup(s.view.Close)
	for _, name := range []string{"c1", "c2"} {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "workload.kcp.io/v1alpha1", "kind": "SyncTarget", "metadata": map[string]any{"name": name}}}
		_, err := s.own().Resource(targets).Create(t.Context(), o, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	return s
}

var authenticate proxy.Authenticator = func(r *http.Request) (router.Identity, error) {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if token == "" {
		return router.Identity{}, errors.New("no token")
	}
	return router.Impersonate(router.User{Name: token}), nil
}

// authorize grants the syncer c1 the verb sync on c1, and the users of SyncTargets all rights.
func (s *scene) authorize(r regiontest.Request) error {
	if reached := s.reached.Load(); reached != nil {
		(*reached)(r)
	}
	switch {
	case r.User.Name == "system:admin", slices.Contains(r.User.Groups, "atoll:clusters"):
		return nil
	case r.Resource == "selfsubjectaccessreviews", r.Verb == "sync" && r.User.Name == "syncer-"+r.Name:
		return nil
	}
	return errors.New("no rights")
}

// own returns a client of the region itself.
func (s *scene) own() dynamic.Interface {
	s.Helper()
	client, err := dynamic.NewForConfig(s.server.Config())
	require.NoError(s, err)
	return client
}

func (s *scene) config(target, token string) *rest.Config {
	return &rest.Config{Host: s.view.URL + "/synctargets/" + target + "/regions/eu.loodse", BearerToken: token, QPS: -1}
}

// syncer returns the client of the syncer c1.
func (s *scene) syncer() dynamic.Interface {
	s.Helper()
	client, err := dynamic.NewForConfig(s.config("c1", "syncer-c1"))
	require.NoError(s, err)
	return client
}

// put creates an object in the region, with labels.
func (s *scene) put(gvr schema.GroupVersionResource, kind, name string, labels map[string]any) *unstructured.Unstructured {
	s.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name, "labels": labels}}}
	o, err := s.own().Resource(gvr).Namespace("default").Create(s.Context(), o, metav1.CreateOptions{})
	require.NoError(s, err)
	return o
}

func at(target string) map[string]any { return map[string]any{v1alpha1.ClusterLabel: target} }

// ask sends a request as the syncer c1.
func (s *scene) ask(method, path, media, body string) (int, string) {
	s.Helper()
	req, err := http.NewRequestWithContext(s.Context(), method, s.view.URL+path, strings.NewReader(body))
	require.NoError(s, err)
	req.Header.Set("Authorization", "Bearer syncer-c1")
	if media != "" {
		req.Header.Set("Content-Type", media)
	}
	resp, err := s.view.Client().Do(req)
	require.NoError(s, err)
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	require.NoError(s, err)
	return resp.StatusCode, string(data)
}
