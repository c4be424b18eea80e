// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package coordinated

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/router"
	"github.com/atoll-dev/atoll/router/apiserver"
	"github.com/atoll-dev/atoll/router/proxy"
	"github.com/atoll-dev/atoll/wal/waltest"
)

var (
	accounts = schema.GroupVersionResource{Group: "catalog.kubecarrier.io", Version: "v1alpha1", Resource: "accounts"}
	clusters = schema.GroupVersionResource{Group: "kubecarrier.io", Version: "v1alpha1", Resource: "serviceclusters"}
)

// peers are the peers of a scene and their regions.
var peers = map[region.PeerName][]string{"peer-a": {"eu"}, "peer-b": {"us"}, "peer-c": {"ap", "jp"}}

var compiled = sync.OnceValues(func() (*regiontest.Definitions, error) {
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, name := range []string{"serviceclusters.kubecarrier.io", "regionclaims.kubecarrier.io", "accounts.catalog.kubecarrier.io", "peersets.fanout.atoll.dev"} {
		crd, err := config.CRD(name)
		if err != nil {
			return nil, err
		}
		crds = append(crds, crd)
	}
	return regiontest.Compile(crds...)
})

// scene is a Handler for the regions of three peers, with a Coordinator.
type scene struct {
	ring        *regiontest.Ring
	coordinator *fanout.Coordinator
	server      *httptest.Server
	before      map[string]string // the versions at the last reset

	mu     sync.Mutex
	refuse func(peer region.PeerName, r regiontest.Request) error // of alice; nil: nothing is refused
}

func newScene(t *testing.T, opts fanout.Options) *scene {
	t.Helper()
	definitions, err := compiled()
	require.NoError(t, err)
	s := &scene{ring: regiontest.NewRing()}
	t.Cleanup(s.ring.Close)
	for peer, names := range peers {
		require.NoError(t, s.ring.Join(peer, regiontest.NewServer(regiontest.Options{
			Name: string(peer), Definitions: definitions,
			Authorize: func(r regiontest.Request) error {
				s.mu.Lock()
				defer s.mu.Unlock()
				if s.refuse == nil || r.User.Name != "alice" {
					return nil
				}
				return s.refuse(peer, r)
			},
		})))
		var keys []region.Key
		for _, name := range names {
			keys = append(keys, region.Key{Provider: "loodse", Name: name})
		}
		require.NoError(t, s.ring.Serve(peer, keys...))
	}
	if opts.Kinds == nil {
		opts.Kinds = account.Kinds()
	}
	opts.LeaseTimeout, opts.CallTimeout = 30*time.Millisecond, time.Minute
	s.coordinator, err = fanout.New(s.ring, waltest.NewMemory(), opts)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.coordinator.Wait(t.Context()) })
	require.NoError(t, s.coordinator.InitPeers(t.Context()))
	s.server = s.serve(t)
	return s
}

// serve starts a server with the Coordinator.
func (s *scene) serve(t *testing.T) *httptest.Server {
	t.Helper()
	writes, err := New(s.ring, s.coordinator)
	require.NoError(t, err)
	routes, err := router.New(s.ring, router.Options{})
	require.NoError(t, err)
	single, err := proxy.New(routes, func(r *http.Request) (router.Identity, error) {
		token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok {
			return router.Identity{}, errors.New("no token")
		}
		return router.Impersonate(router.User{Name: token}), nil
	}, proxy.Options{})
	require.NoError(t, err)
	handler, err := apiserver.New(routes, single, apiserver.Options{Fanout: writes})
	require.NoError(t, err)
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

// forbid refuses alice's requests for which f returns true.
func (s *scene) forbid(f func(peer region.PeerName, r regiontest.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = func(peer region.PeerName, r regiontest.Request) error {
		if f(peer, r) {
			return errors.New("alice may not")
		}
		return nil
	}
}

// in returns alice's client of a resource at /regions/WHERE, in the namespace acme for ServiceClusters.
func (s *scene) in(t *testing.T, where string, gvr schema.GroupVersionResource) dynamic.ResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(&rest.Config{Host: s.server.URL + "/regions/" + where, BearerToken: "alice"})
	require.NoError(t, err)
	return namespaced(client, gvr)
}

// at returns a client of a peer itself.
func (s *scene) at(t *testing.T, peer region.PeerName, gvr schema.GroupVersionResource) dynamic.ResourceInterface {
	t.Helper()
	conn, err := s.ring.Conn(peer)
	require.NoError(t, err)
	return namespaced(conn.Dynamic(), gvr)
}

func namespaced(client dynamic.Interface, gvr schema.GroupVersionResource) dynamic.ResourceInterface {
	switch gvr {
	case clusters:
		return client.Resource(gvr).Namespace("acme")
	case configMaps:
		return client.Resource(gvr).Namespace("default")
	default:
		return client.Resource(gvr)
	}
}

// get returns the object of a peer, or nil if the peer has none.
func (s *scene) get(t *testing.T, peer region.PeerName, gvr schema.GroupVersionResource, name string) *unstructured.Unstructured {
	t.Helper()
	o, err := s.at(t, peer, gvr).Get(t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(t, err)
	return o
}

// send sends a request as alice.
func (s *scene) send(t *testing.T, method, path, media, body string) (code int, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.server.URL+path, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer alice")
	req.Header.Set("Content-Type", media)
	resp, err := s.server.Client().Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(data)
}

// unwritten fails the test if an object of a peer has changed since the reset.
func (s *scene) unwritten(t *testing.T) {
	t.Helper()
	require.Equal(t, s.before, s.versions(t))
}

func (s *scene) reset(t *testing.T) {
	t.Helper()
	s.before = s.versions(t)
}

// versions returns the resourceVersions of all objects of all peers.
func (s *scene) versions(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for peer := range peers {
		for _, gvr := range []schema.GroupVersionResource{accounts, clusters} {
			list, err := s.at(t, peer, gvr).List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			for _, o := range list.Items {
				all[string(peer)+" "+o.GetKind()+" "+o.GetName()] = o.GetResourceVersion()
			}
		}
	}
	return all
}

func newAccount(name string, roles ...any) *unstructured.Unstructured {
	if roles == nil {
		roles = []any{"Tenant"}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "catalog.kubecarrier.io/v1alpha1", "kind": "Account",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"roles": roles},
	}}
}

func newCluster(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kubecarrier.io/v1alpha1", "kind": "ServiceCluster",
		"metadata": map[string]any{"name": name, "namespace": "acme"},
		"spec":     map[string]any{"kubeconfigSecret": map[string]any{"name": name}},
	}}
}

// acme adds the account acme, which owns the namespace acme.
func (s *scene) acme(t *testing.T) {
	t.Helper()
	_, err := s.in(t, "eu.loodse", accounts).Create(t.Context(), newAccount("acme"), metav1.CreateOptions{})
	require.NoError(t, err)
}

func roles(o *unstructured.Unstructured) []string {
	roles, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "roles")
	return roles
}

func stage(o *unstructured.Unstructured) string {
	stage, _, _ := unstructured.NestedString(o.Object, "spec", "fanout", "stage")
	return stage
}
