// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate_test

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	managed "sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router"
	"github.com/atoll-dev/atoll/router/aggregate"
	"github.com/atoll-dev/atoll/router/apiserver"
	"github.com/atoll-dev/atoll/router/proxy"
)

// served serves the sites over HTTP. At any time one replica serves; a restart closes its connections, as the end of a
// process does, and another replica with the same keys takes its place. Replicas share nothing but the keys and the
// knowledge of the regions.
type served struct {
	server *httptest.Server
	source *planetest.Source
	routes *router.Router
	keys   *aggregate.Keyring
	lists  atomic.Int64 // requests that begin with the present state

	mu  sync.Mutex
	now http.Handler
	end func() // ends the shared watches of this replica
}

func newServed(t *testing.T) *served {
	s := &served{source: planetest.NewSource()}
	ring, err := region.NewRing(s.source, region.Options{Probe: region.ProbeOptions{MaxBackoff: time.Second}})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- ring.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	s.routes, err = router.New(ring, router.Options{Budget: router.Budget{QPS: -1}})
	require.NoError(t, err)
	s.keys, err = aggregate.NewKeyring([]byte("a key that all replicas have"))
	require.NoError(t, err)
	s.server = httptest.NewUnstartedServer(s)
	s.server.EnableHTTP2 = true
	s.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.replace(t)
	s.server.StartTLS()
	t.Cleanup(func() {
		s.server.CloseClientConnections()
		s.server.Close()
		s.end()
	})
	return s
}

// restart replaces the replica, and closes all connections to the old one.
func (s *served) restart(t *testing.T) {
	t.Helper()
	end := s.end
	s.replace(t)
	s.server.CloseClientConnections()
	end()
}

func (s *served) replace(t *testing.T) {
	t.Helper()
	single, err := proxy.New(s.routes, reader, proxy.Options{})
	require.NoError(t, err)
	sharing, err := aggregate.NewSharing(aggregate.SharingOptions{})
	require.NoError(t, err)
	handler, err := apiserver.New(s.routes, single, apiserver.Options{Keys: s.keys, Sharing: sharing})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- sharing.Start(ctx) }()
	<-sharing.Started()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = handler
	s.end = func() {
		cancel()
		require.NoError(t, <-ended)
	}
}

func (s *served) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	now := s.now
	s.mu.Unlock()
	q := r.URL.Query()
	if q.Get("watch") == "" && q.Get("resourceVersion") != "" || q.Get("sendInitialEvents") == "true" {
		s.lists.Add(1)
	}
	now.ServeHTTP(w, r)
}

// join makes these sites the regions.
func (s *served) join(t *testing.T, sites []*site, indices []int) {
	t.Helper()
	for i, site := range sites {
		name := region.PeerName(site.Name())
		if !slices.Contains(indices, i) {
			s.source.Remove(name)
			continue
		}
		config := site.net.wrap(rest.CopyConfig(site.Config()))
		transport, err := rest.TransportFor(config)
		require.NoError(t, err)
		credentials, err := region.FromConfig(&rest.Config{Host: config.Host, Transport: transport})
		require.NoError(t, err)
		s.source.Put(region.Peer{Name: name, Regions: []region.Key{site.key}, Credentials: credentials})
	}
}

// informers starts unmodified informers over HTTP: a dynamic one and a metadata one of client-go, and the cache of
// controller-runtime for a typed object, which also discovers the types.
func (s *served) informers(ctx context.Context, t *testing.T, running *sync.WaitGroup) map[string]*cached {
	t.Helper()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.server.Certificate().Raw})
	config := &rest.Config{Host: s.server.URL + "/regions/*", QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: authority}}
	objects, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	partial, err := metadata.NewForConfig(config)
	require.NoError(t, err)
	dynamics := dynamicinformer.NewFilteredDynamicInformer(objects, configMaps, "default", 0, cache.Indexers{}, nil).Informer()
	metadatas := metadatainformer.NewFilteredMetadataInformer(partial, configMaps, "default", 0, cache.Indexers{}, nil).Informer()
	manager, err := managed.New(config, managed.Options{DefaultNamespaces: map[string]managed.Config{"default": {}}})
	require.NoError(t, err)
	running.Go(func() { dynamics.RunWithContext(ctx) })
	running.Go(func() { metadatas.RunWithContext(ctx) })
	running.Go(func() {
		if err := manager.Start(ctx); err != nil {
			t.Errorf("the cache of controller-runtime ended: %v", err)
		}
	})
	typed, err := manager.GetInformer(ctx, &corev1.ConfigMap{}, managed.BlockUntilSynced(false))
	require.NoError(t, err)
	all := map[string]*cached{
		"dynamic": newCached(t, dynamics, true), "metadata": newCached(t, metadatas, false), "controller-runtime": newCached(t, typed, true),
	}
	for kind, c := range all {
		planetest.Eventually(t, settle, "the "+kind+" informer over HTTP has synced", func(context.Context) error {
			if !c.HasSynced() {
				return fmt.Errorf("it has not")
			}
			return nil
		})
	}
	return all
}

// restartInTurn restarts the serving process twenty times while objects change and nothing else fails. No informer lists
// again.
func (s *served) restartInTurn(t *testing.T, informers map[string]*cached, at *site) {
	t.Helper()
	s.restart(t)
	before := s.settled(t, informers, at)
	for i := range 20 {
		s.restart(t)
		s.received(t, informers, at, fmt.Sprintf("restart-%d", i))
	}
	require.Equal(t, before, s.lists.Load(), "lists after restarts")
	t.Logf("requests that began with the present state: %d, none of them after 20 restarts in turn", before)
}

// settled waits until no informer lists because of an earlier fault and each has read an event of its present watch, and
// returns the number of lists. The first marker may be part of an informer's list. The second is not, unless the informer
// lists again.
func (s *served) settled(t *testing.T, informers map[string]*cached, at *site) int64 {
	t.Helper()
	for round := 0; ; round++ {
		s.received(t, informers, at, fmt.Sprintf("settled-%d-first", round))
		lists := s.lists.Load()
		s.received(t, informers, at, fmt.Sprintf("settled-%d-second", round))
		if s.lists.Load() == lists {
			return lists
		}
		require.NoError(t, t.Context().Err())
	}
}

// received creates a marker, and waits until each informer has it. An informer that did not list meanwhile has read an
// event of its new watch then: client-go lists after a watch that ended within a second and without an event.
func (s *served) received(t *testing.T, informers map[string]*cached, at *site, name string) {
	t.Helper()
	marker := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name},
	}}
	_, err := at.own.Create(t.Context(), marker, metav1.CreateOptions{})
	require.NoError(t, err)
	planetest.Eventually(t, settle, "all informers watch again", func(context.Context) error {
		for kind, c := range informers {
			if _, ok := c.view()[name+"@"+at.key.String()]; !ok {
				return fmt.Errorf("the %s informer has not received %s", kind, name)
			}
		}
		return nil
	})
}

// informer is what informers of client-go and of controller-runtime have in common.
type informer interface {
	AddEventHandler(cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error)
	HasSynced() bool
}

// cached is an informer, with the changes that it reports.
type cached struct {
	informer
	whole bool // objects have their content, not only metadata
	mu    sync.Mutex
	held  map[string]string
	wrong []string
}

func newCached(t *testing.T, of informer, whole bool) *cached {
	t.Helper()
	c := &cached{informer: of, whole: whole, held: map[string]string{}}
	_, err := of.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { c.change(o, "added", false) }, UpdateFunc: func(_, o any) { c.change(o, "updated", true) },
		DeleteFunc: func(o any) {
			if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = gone.Obj
			}
			c.change(o, "deleted", true)
		},
	})
	require.NoError(t, err)
	return c
}

// change applies a change that the informer reports.
func (c *cached) change(o any, how string, known bool) {
	m, err := meta.Accessor(o)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.wrong = append(c.wrong, err.Error())
		return
	}
	if _, held := c.held[m.GetName()]; held != known {
		c.wrong = append(c.wrong, fmt.Sprintf("%s is %s, held: %t", m.GetName(), how, held))
	}
	if how == "deleted" {
		delete(c.held, m.GetName())
		return
	}
	c.held[m.GetName()] = string(m.GetUID())
	if object, ok := o.(runtime.Object); ok && c.whole {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			c.wrong = append(c.wrong, err.Error())
		}
		c.held[m.GetName()] = text(&unstructured.Unstructured{Object: content})
	}
}

// view returns what the informer holds, by qualified name.
func (c *cached) view() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	view := map[string]string{}
	for name, value := range c.held {
		view[name] = value
	}
	return view
}

func (c *cached) mistakes() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wrong
}
