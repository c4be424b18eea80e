// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/atoll-dev/atoll/cmd/atoll-gateway/config"
	"github.com/atoll-dev/atoll/internal/logtest"
	"github.com/atoll-dev/atoll/region/regiontest"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// balancer is the one address of several gateways, as a Service is.
type balancer struct {
	to    atomic.Pointer[program]
	lists atomic.Int64 // requests that were lists, or watches with initial events
}

// client returns the configuration of a client that connects through the balancer.
func (b *balancer) client(path string) *rest.Config {
	config := b.to.Load().client(path, "t-alice")
	config.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, strings.TrimPrefix(b.to.Load().address, "https://"))
	}
	config.Wrap(func(rt http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if q := r.URL.Query(); strings.HasSuffix(r.URL.Path, "/configmaps") && (q.Get("watch") == "" || q.Get("sendInitialEvents") == "true") {
				b.lists.Add(1)
			}
			return rt.RoundTrip(r)
		})
	})
	return config
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// informer runs client-go's reflector for ConfigMaps, and returns its store.
func informer(t *testing.T, client dynamic.Interface) cache.Store {
	t.Helper()
	maps := client.Resource(configMaps)
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	reflector := cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return maps.List(ctx, o) },
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return maps.Watch(ctx, o)
		},
	}, client), &unstructured.Unstructured{}, store, cache.ReflectorOptions{})
	logtest.Run(t, func(ctx context.Context) error { reflector.RunWithContext(ctx); return nil })
	return store
}

// Gateways are restarted in turn behind one address. Informers do not list again, no object is missing, and no request
// fails.
func TestRollingRestart(t *testing.T) {
	s := newSite(t, regiontest.Options{})
	create := func(name string) {
		d, err := dynamic.NewForConfig(s.servers["eu-west"].Config())
		require.NoError(t, err)
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}}}
		_, err = d.Resource(configMaps).Namespace("default").Create(t.Context(), o, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	c := s.config(func(c *config.Configuration) { c.Drain.Delay = &metav1.Duration{Duration: 200 * time.Millisecond} })
	b := &balancer{}
	present := s.start(c)
	present.allUp()
	b.to.Store(present)
	create("first")

	stores := map[string]cache.Store{} // by the key of the object named last
	for path, suffix := range map[string]string{"/regions/eu-west-1.loodse": "", "/regions/*": "@eu-west-1.loodse"} {
		d, err := dynamic.NewForConfig(b.client(path))
		require.NoError(t, err)
		stores[suffix] = informer(t, d)
	}
	has := func(name string) {
		t.Helper()
		for suffix, store := range stores {
			require.Eventually(t, func() bool {
				_, ok, err := store.GetByKey("default/" + name + suffix)
				require.NoError(t, err)
				return ok
			}, time.Minute, time.Millisecond, "%q", suffix)
		}
	}
	has("first")
	create("event") // client-go lists again after a watch that was shorter than a second and had no event
	has("event")
	stop, load := b.load(t)
	lists := b.lists.Load()
	for _, name := range []string{"second", "third", "fourth"} {
		old, next := present, s.start(c)
		next.allUp()
		var ending sync.WaitGroup
		ending.Go(old.end)
		require.Eventually(t, func() bool { code, _ := old.plain("/readyz"); return code == http.StatusServiceUnavailable }, time.Minute, time.Millisecond)
		b.to.Store(next) // a load balancer leaves the old one out
		ending.Wait()
		present = next
		create(name)
		has(name)
	}
	stop()
	load()
	require.Equal(t, lists, b.lists.Load(), "informers listed again")
}

// load sends requests until stop is called; wait then fails the test if one of them failed.
func (b *balancer) load(t *testing.T) (stop, wait func()) {
	t.Helper()
	d, err := dynamic.NewForConfig(b.client("/regions/us-east-1.loodse"))
	require.NoError(t, err)
	ended, failed := make(chan struct{}), make(chan error, 1)
	count := 0
	var sending sync.WaitGroup
	sending.Go(func() {
		for {
			select {
			case <-ended:
				return
			default:
			}
			if _, err := d.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
				failed <- err
				return
			}
			count++
		}
	})
	stop = sync.OnceFunc(func() { close(ended) })
	t.Cleanup(func() { stop(); sending.Wait() })
	return stop, func() {
		t.Helper()
		sending.Wait()
		select {
		case err := <-failed:
			require.NoError(t, err)
		default:
		}
		require.Positive(t, count)
	}
}

// A gateway that drains serves on for the delay, and finishes requests that are under way.
func TestRequestsUnderWayAreFinished(t *testing.T) {
	s := newSite(t, regiontest.Options{})
	s.servers["eu-west"].Inject(regiontest.Fault{Verb: "get", Name: "kube-system", Skip: 0, Times: -1, Do: regiontest.Delay(50 * time.Millisecond)})
	p := s.start(s.config(func(c *config.Configuration) { c.Drain.Delay = &metav1.Duration{Duration: 200 * time.Millisecond} }))
	p.allUp()
	s.servers["eu-west"].Inject(regiontest.Fault{Verb: "get", Name: "slow", Do: regiontest.Delay(time.Second)})
	codes := make(chan int, 1)
	var asking sync.WaitGroup
	asking.Go(func() {
		code, _ := p.get("/regions/eu-west-1.loodse/api/v1/namespaces/slow", "t-alice")
		codes <- code
	})
	require.Eventually(t, func() bool {
		_, metrics := p.plain("/metrics")
		return strings.Contains(metrics, `atoll_gateway_requests_in_flight{kind="request"} 1`)
	}, time.Minute, time.Millisecond)
	asking.Go(p.end)
	require.Eventually(t, func() bool { code, _ := p.plain("/readyz"); return code == http.StatusServiceUnavailable }, time.Minute, time.Millisecond)
	code, _ := p.get("/regions/us-east-1.loodse/api/v1/namespaces", "t-alice")
	require.Equal(t, http.StatusOK, code, "it serves on for the delay")
	require.Equal(t, http.StatusNotFound, <-codes, "the region's answer")
	asking.Wait()
	p.lines.Await(t, "The gateway drains")
	events := p.audited.events(t)
	require.Len(t, events, 2, "both requests are audited, the last one too")
}
