// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package central

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/atoll-dev/atoll/internal/stilltest"
	"github.com/atoll-dev/atoll/region"
	masterv1alpha1 "github.com/atoll-dev/atoll/region/master/v1alpha1"
	regionv1alpha1 "github.com/atoll-dev/atoll/region/v1alpha1"
)

// fleet simulates any number of idle clusters, one per host name, each with one region. It allocates almost nothing,
// so a test can attribute the growth of the heap to the clients.
type fleet struct{}

func (fleet) RoundTrip(r *http.Request) (*http.Response, error) {
	host, _, _ := strings.Cut(r.URL.Host, ".")
	answer := func(body string) (*http.Response, error) {
		return &http.Response{
			Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: int64(len(body)),
			Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r,
		}, nil
	}
	query := r.URL.Query()
	switch {
	case query.Get("watch") != "":
		resp, err := answer("")
		if err != nil {
			return nil, err
		}
		resp.ContentLength = -1
		resp.Body, err = stilltest.Watch(r, nil)
		return resp, err
	case r.URL.Path == "/readyz":
		return answer("ok")
	case r.URL.Path == "/version":
		return answer(`{"gitVersion":"v1.36.0"}`)
	case r.URL.Path == "/api/v1/namespaces/kube-system":
		return answer(fmt.Sprintf(`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"uid-of-%s"}}`, host))
	case strings.HasSuffix(r.URL.Path, "/kubecarriers"):
		return answer(`{"kind":"KubeCarrierList","apiVersion":"operator.kubecarrier.io/v1alpha1","metadata":{"resourceVersion":"1"},"items":[]}`)
	case strings.HasSuffix(r.URL.Path, "/regionclaims"):
		return answer(fmt.Sprintf(`{"kind":"RegionClaimList","apiVersion":"kubecarrier.io/v1alpha1","metadata":{"resourceVersion":"1"},"items":[
			{"kind":"RegionClaim","apiVersion":"kubecarrier.io/v1alpha1","metadata":{"namespace":"loodse","name":%q,"resourceVersion":"1","managedFields":[
				{"manager":%q,"operation":"Apply","apiVersion":"kubecarrier.io/v1alpha1","subresource":"status","fieldsType":"FieldsV1","fieldsV1":{"f:status":{"f:phase":{}}}}]},
				"status":{"phase":"Bound"}}]}`, host, regionv1alpha1.RegionClaimManager))
	default:
		resp, err := answer(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
		resp.StatusCode = http.StatusNotFound
		return resp, err
	}
}

// newFleet returns a plane with n Peers.
func newFleet(t testing.TB, n int) *world {
	t.Helper()
	w := newWorld(t)
	w.parse = func(data []byte) (region.Credentials, error) {
		return region.FromConfig(&rest.Config{Host: "http://" + string(data) + ".invalid", Transport: fleet{}})
	}
	secrets, peers := w.client(w.plane, secretResource, Namespace), w.client(w.plane, peerResource, "")
	for i := range n {
		name := fmt.Sprintf("p%04d", i)
		_, err := secrets.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": name},
			"stringData": map[string]any{"kubeconfig": name},
		}}, metav1.CreateOptions{})
		require.NoError(t, err)
		_, err = peers.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": masterv1alpha1.GroupVersion.String(), "kind": "Peer", "metadata": map[string]any{"name": name},
			"spec": map[string]any{"kubeconfigSecret": map[string]any{"name": name}},
		}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	return w
}

// allReady returns how many Peers are Ready and serve their region.
func (w *world) allReady() int {
	w.t.Helper()
	list, err := w.client(w.plane, peerResource, "").List(w.t.Context(), metav1.ListOptions{})
	require.NoError(w.t, err)
	n := 0
	for i := range list.Items {
		if p := decode(&list.Items[i]); p.Status.Phase == masterv1alpha1.PeerReady && len(p.Status.Regions) == 1 {
			n++
		}
	}
	return n
}

// manyPeers peers are Ready within 30 seconds, after at most four successful writes per peer on average. After that
// nothing is written.
func TestThousandPeersAtRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = manyPeers
		w := newFleet(t, n)
		w.plane.Reset()
		p := w.start(PeersOptions{})
		pass(30 * time.Second)
		require.Equal(t, n, w.allReady())
		require.Equal(t, n, p.ring.Snapshot().Len())
		require.LessOrEqual(t, len(landed(writes(w.plane))), 4*n)
		w.plane.Reset()
		pass(2 * time.Minute)
		require.Empty(t, writes(w.plane))
	})
}

// BenchmarkIdlePeer measures the growth of heap and stacks per peer, for 1,000 peers that are connected, probed and
// watched, and whose status is maintained: Source, Ring and Peers together, without sockets and their buffers. The
// baseline is one bare dynamic client per peer with two of client-go's reflectors; the ratio is the baseline's bytes
// divided by those of Source, Ring and Peers.
func BenchmarkIdlePeer(b *testing.B) {
	const n = 1000
	w := newFleet(b, n)
	first := w.start(PeersOptions{})
	require.Eventually(b, func() bool { return w.allReady() == n }, 5*time.Minute, 100*time.Millisecond)
	first.stop()
	var ours, bare usage
	for b.Loop() {
		before := used()
		p := w.start(PeersOptions{})
		require.Eventually(b, p.settled, 5*time.Minute, 100*time.Millisecond)
		ours = used().since(before)
		p.stop()

		before = used()
		stop := bareWatches(b, n)
		bare = used().since(before)
		stop()
	}
	b.ReportMetric(float64(ours.heap)/n, "heap-B/peer")
	b.ReportMetric(float64(ours.stacks)/n, "stack-B/peer")
	b.ReportMetric(float64(bare.heap+bare.stacks)/float64(ours.heap+ours.stacks), "ratio")
}

// settled reports whether all peers are healthy and watched.
func (p *program) settled() bool {
	p.peers.mu.Lock()
	defer p.peers.mu.Unlock()
	n := 0
	for _, r := range p.peers.records {
		if o := r.observation(); o != nil && o.conn.Health().State == region.Healthy && synced(o.claims) && synced(o.carriers) && o.server.Load() != nil {
			n++
		}
	}
	return n == p.ring.Snapshot().Len() && n > 0
}

// usage is the memory in use, in bytes.
type usage struct{ heap, stacks int64 }

func (u usage) since(before usage) usage {
	return usage{u.heap - before.heap, u.stacks - before.stacks}
}

func used() usage {
	for range 4 { // each run shrinks stacks by half
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return usage{int64(m.HeapAlloc), int64(m.StackInuse)}
}

// bareWatches watches the same objects as Peers, with client-go alone.
func bareWatches(b *testing.B, n int) (stop func()) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	var wg sync.WaitGroup
	var reflectors []*cache.Reflector
	for i := range n {
		client, err := dynamic.NewForConfig(&rest.Config{Host: fmt.Sprintf("http://p%04d.invalid", i), Transport: fleet{}, QPS: -1})
		require.NoError(b, err)
		for _, gvr := range []dynamic.ResourceInterface{client.Resource(claimResource), client.Resource(carrierResource)} {
			source := &bareSource{ListWatch: &cache.ListWatch{WatchFuncWithContext: gvr.Watch}}
			source.ListWithContextFunc = func(ctx context.Context, opts metav1.ListOptions) (k8sruntime.Object, error) {
				return gvr.List(ctx, opts)
			}
			store := cache.NewStore(cache.MetaNamespaceKeyFunc)
			reflector := cache.NewReflector(source, &unstructured.Unstructured{}, store, 0)
			wg.Go(func() { reflector.RunWithContext(ctx) })
			reflectors = append(reflectors, reflector)
		}
	}
	require.Eventually(b, func() bool {
		return !slices.ContainsFunc(reflectors, func(r *cache.Reflector) bool { return r.LastSyncResourceVersion() == "" })
	}, 5*time.Minute, 100*time.Millisecond)
	return func() {
		cancel()
		wg.Wait()
	}
}

// bareSource disables streamed lists, which the fleet does not support.
type bareSource struct{ *cache.ListWatch }

func (*bareSource) IsWatchListSemanticsUnSupported() bool { return true }
