// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/account/v1alpha1"
	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/fanout"
	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/internal/maintest"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal/waltest"
)

func TestMain(m *testing.M) { maintest.Main(m) }

var peerNames = []region.PeerName{"ap-south", "eu-west", "us-east"}

// compiled has the types that the API servers of these tests serve.
var compiled = sync.OnceValues(func() (*regiontest.Definitions, error) {
	all := make([]*apiextensionsv1.CustomResourceDefinition, 0, 5)
	for _, name := range []string{
		"serviceclusters.kubecarrier.io", "regionclaims.kubecarrier.io", "accounts.catalog.kubecarrier.io", "regions.catalog.kubecarrier.io",
		"peersets.fanout.atoll.dev",
	} {
		crd, err := config.CRD(name)
		if err != nil {
			return nil, err
		}
		all = append(all, crd)
	}
	return regiontest.Compile(all...)
})

func definitions(t testing.TB) *regiontest.Definitions {
	t.Helper()
	d, err := compiled()
	require.NoError(t, err)
	return d
}

// newRing returns peers in memory that have joined a ring, and a coordinator of this ring.
func newRing(t testing.TB, kinds ...fanout.Kind) (*regiontest.Ring, *fanout.Coordinator) {
	t.Helper()
	ring := regiontest.NewRing(peerNames...)
	t.Cleanup(ring.Close)
	require.NoError(t, ring.AddDefinitions(definitions(t)))
	c := coordinate(t, ring, kinds...)
	require.NoError(t, c.InitPeers(t.Context()))
	return ring, c
}

// noCap allows any number of deletions at once, without a wait.
var noCap = fanout.RemovalCap{Objects: -1, Within: -1}

// coordinate returns a coordinator with short leases.
func coordinate(t testing.TB, d region.Directory, kinds ...fanout.Kind) *fanout.Coordinator {
	t.Helper()
	if kinds == nil {
		kinds = Kinds()
	}
	c, err := fanout.New(d, waltest.NewMemory(), fanout.Options{
		Kinds: kinds, LeaseTimeout: 500 * time.Millisecond, CallTimeout: time.Minute, Cleanup: time.Second, SweepEvery: 2 * time.Second,
		RemovalCap: noCap, NoteEvery: -1, // at rest nothing is written
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Wait(context.WithoutCancel(t.Context()))) })
	return c
}

func newAccount(name string, roles []any, subjects ...any) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"roles": roles}}}
	if len(subjects) > 0 {
		obj.Object["spec"].(map[string]any)["subjects"] = subjects
	}
	obj.SetGroupVersionKind(resource.GroupVersion().WithKind("Account"))
	obj.SetName(name)
	return obj
}

// run runs start until the test ends or stop is called, and waits for its end.
func run(t testing.TB, start func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var err error
	wg.Go(func() { err = start(ctx) })
	stop = sync.OnceFunc(func() {
		cancel()
		wg.Wait()
		require.NoError(t, err)
	})
	t.Cleanup(stop)
	return stop
}

func eventually(t testing.TB, condition func() bool, msg ...any) {
	t.Helper()
	require.Eventually(t, condition, 2*time.Minute, 10*time.Millisecond, msg...)
}

func connTo(t testing.TB, d region.Directory, name region.PeerName) *region.Conn {
	t.Helper()
	c, err := d.Conn(name)
	require.NoError(t, err)
	return c
}

func get(t testing.TB, api region.API, gvr schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	obj, err := api.Dynamic().Resource(gvr).Namespace(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(t, err)
	return obj
}

func accountIn(t testing.TB, api region.API, name string) *v1alpha1.Account {
	t.Helper()
	obj := get(t, api, resource, "", name)
	if obj == nil {
		return nil
	}
	var account v1alpha1.Account
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &account))
	return &account
}

// writesTo counts the writes that a server has received.
func writesTo(s *regiontest.Server) (n int) {
	for _, r := range s.Requests() {
		if r.Verb != "get" && r.Verb != "list" && r.Verb != "watch" {
			n++
		}
	}
	return n
}

// quiet waits for a second without a write to any of the servers, and fails the test after a
// minute of writes.
func quiet(t testing.TB, servers ...*regiontest.Server) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		for _, s := range servers {
			s.Reset()
		}
		time.Sleep(time.Second)
		n := 0
		for _, s := range servers {
			n += writesTo(s)
		}
		if n == 0 {
			return
		}
		if time.Now().After(deadline) {
			for _, s := range servers {
				for _, r := range s.Requests() {
					if r.Verb != "get" && r.Verb != "list" && r.Verb != "watch" {
						t.Logf("%s %s", r.Verb, r.Path)
					}
				}
			}
			t.Fatalf("%d writes in a second in which nothing changes", n)
		}
	}
}

func peerSetOf(t testing.TB, c *region.Conn) *unstructured.Unstructured {
	t.Helper()
	return get(t, c, peerSetsResource, "", fanoutv1alpha1.PeerSetName)
}
