// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/region/v1alpha1"
)

const provider, name = "loodse", "us-east-1"

var usEast1 = region.Key{Provider: provider, Name: name}

// world is a ring of peers and a central plane, in memory.
type world struct {
	t     *testing.T
	ring  *regiontest.Ring
	plane *regiontest.Server
	api   region.API
}

var (
	claimed = sync.OnceValues(func() (*regiontest.Definitions, error) {
		return compile("regionclaims.kubecarrier.io", "serviceclusters.kubecarrier.io")
	})
	fannedOut = sync.OnceValues(func() (*regiontest.Definitions, error) {
		return compile("accounts.catalog.kubecarrier.io", "peersets.fanout.atoll.dev")
	})
)

func compile(names ...string) (*regiontest.Definitions, error) {
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, name := range names {
		crd, err := config.CRD(name)
		if err != nil {
			return nil, err
		}
		crds = append(crds, crd)
	}
	return regiontest.Compile(crds...)
}

func newWorld(t *testing.T, peers ...region.PeerName) *world {
	t.Helper()
	w := &world{t: t, ring: regiontest.NewRing(peers...), plane: regiontest.NewServer(regiontest.Options{Name: "plane"})}
	t.Cleanup(w.ring.Close)
	t.Cleanup(w.plane.Close)
	types, err := claimed()
	require.NoError(t, err)
	require.NoError(t, w.ring.AddDefinitions(types))
	api, err := region.APIFor(w.plane.Config())
	require.NoError(t, err)
	w.api = api
	w.namespace(api, "kubecarrier-system")
	for _, p := range peers {
		w.namespace(w.conn(p), provider)
	}
	return w
}

func (w *world) namespace(api region.API, name string) {
	w.t.Helper()
	ns := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}}
	_, err := api.Dynamic().Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Create(w.t.Context(), ns, metav1.CreateOptions{})
	require.NoError(w.t, err)
}

func (w *world) conn(p region.PeerName) *region.Conn {
	w.t.Helper()
	c, err := w.ring.Conn(p)
	require.NoError(w.t, err)
	return c
}

// start runs an Arbiter until stop is called, or the test ends.
func (w *world) start(plane region.API, opts Options) (stop func()) {
	w.t.Helper()
	return w.startIn(plane, w.ring, opts)
}

func (w *world) startIn(plane region.API, d region.Directory, opts Options) (stop func()) {
	w.t.Helper()
	a, err := New(plane, d, opts)
	require.NoError(w.t, err)
	ctx, cancel := context.WithCancel(w.t.Context())
	var wg sync.WaitGroup
	var failed error
	wg.Go(func() { failed = a.Start(ctx) })
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			wg.Wait()
			require.NoError(w.t, failed)
		})
	}
	w.t.Cleanup(stop)
	return stop
}

func (w *world) object(kind, name string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	obj.SetAPIVersion(v1alpha1.GroupVersion.String())
	obj.SetKind(kind)
	obj.SetNamespace(provider)
	obj.SetName(name)
	return obj
}

func (w *world) claim(p region.PeerName) *unstructured.Unstructured {
	w.t.Helper()
	obj, err := w.conn(p).Dynamic().Resource(claims).Namespace(provider).Create(w.t.Context(), w.object("RegionClaim", name), metav1.CreateOptions{})
	require.NoError(w.t, err)
	return obj
}

func (w *world) unclaim(p region.PeerName) {
	w.t.Helper()
	require.NoError(w.t, w.conn(p).Dynamic().Resource(claims).Namespace(provider).Delete(w.t.Context(), name, metav1.DeleteOptions{}))
}

func (w *world) cluster(p region.PeerName) {
	w.t.Helper()
	_, err := w.conn(p).Dynamic().Resource(clusters).Namespace(provider).Create(w.t.Context(), w.object("ServiceCluster", name), metav1.CreateOptions{})
	require.NoError(w.t, err)
}

// stored returns the object in a peer, even while the peer is unreachable; nil if absent.
func (w *world) stored(p region.PeerName, gvr schema.GroupVersionResource) *unstructured.Unstructured {
	w.t.Helper()
	objects, err := w.ring.Server(p).Objects(gvr.GroupResource())
	require.NoError(w.t, err)
	for _, o := range objects {
		raw, err := json.Marshal(o)
		require.NoError(w.t, err)
		obj := &unstructured.Unstructured{}
		require.NoError(w.t, obj.UnmarshalJSON(raw))
		if obj.GetNamespace() == provider && obj.GetName() == name {
			return obj
		}
	}
	return nil
}

// statusOf returns the status of the peer's claim: its phase and holder, such as "Bound a".
func (w *world) statusOf(p region.PeerName) string {
	w.t.Helper()
	obj := w.stored(p, claims)
	if obj == nil {
		return "none"
	}
	s := statusIn(obj)
	if s.Phase == "" {
		return "silence"
	}
	c := meta.FindStatusCondition(s.Conditions, "Bound")
	require.NotNil(w.t, c, "phase without condition")
	require.NotEmpty(w.t, c.Message)
	require.NotEmpty(w.t, c.Reason)
	require.Equal(w.t, obj.GetGeneration(), s.ObservedGeneration)
	require.Equal(w.t, obj.GetGeneration(), c.ObservedGeneration)
	require.False(w.t, c.LastTransitionTime.IsZero())
	switch c.Status {
	case metav1.ConditionTrue:
		require.Equal(w.t, v1alpha1.RegionClaimBound, s.Phase)
	case metav1.ConditionFalse:
		require.NotEqual(w.t, v1alpha1.RegionClaimBound, s.Phase)
	default:
		require.Equal(w.t, v1alpha1.RegionClaimPending, s.Phase)
	}
	if s.Holder.Peer == "" {
		return fmt.Sprint(s.Phase)
	}
	require.False(w.t, s.Holder.Since.IsZero())
	return fmt.Sprintf("%s %s", s.Phase, s.Holder.Peer)
}

// gated returns the status of the peer's ServiceCluster: its phase and the reason of RegionBound.
func (w *world) gated(p region.PeerName) string {
	w.t.Helper()
	obj := w.stored(p, clusters)
	if obj == nil {
		return "none"
	}
	c := meta.FindStatusCondition(conditionsOf(obj), regionBound)
	if c == nil {
		return "silence"
	}
	phase, _, _ := unstructured.NestedString(obj.Object, "status", "phase")
	return phase + " " + c.Reason
}

// passes lets d pass and waits until all goroutines are idle.
func passes(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// writes counts the write requests of a server, including failed ones.
func writes(s *regiontest.Server) int { return len(writeCodes(s)) }

// landed counts the successful write requests.
func landed(s *regiontest.Server) (n int) {
	for _, code := range writeCodes(s) {
		if code/100 == 2 {
			n++
		}
	}
	return n
}

func writeCodes(s *regiontest.Server) (codes []int) {
	for _, r := range s.Requests() {
		switch r.Verb {
		case "get", "list", "watch":
		default:
			codes = append(codes, r.Code)
		}
	}
	return codes
}

func (w *world) lease() *unstructured.Unstructured {
	w.t.Helper()
	l, err := w.api.Dynamic().Resource(leases).Namespace("kubecarrier-system").Get(w.t.Context(), leaseName(usEast1), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(w.t, err)
	return l
}
