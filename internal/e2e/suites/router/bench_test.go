// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/internal/e2e/plane"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/router"
)

// BenchmarkProxy compares alice's requests through the proxy with direct requests to the API
// server: a GET of 2 KB and a LIST of 1 MB, with client-go's default transport. Batches of the
// compared requests alternate. The metric ratio is the proxy's throughput divided by the direct
// throughput. The metric plain-ratio is the throughput of a plain proxy divided by the direct
// throughput. The plain proxy, of net/http/httputil, uses alice's own credentials and only adds the
// second hop. The metrics p50-over-plain and p99-over-plain are the median and the 99th percentile of
// the latencies through the proxy, divided by those through the plain proxy. Clients, proxy, API
// server and etcd share the machine's cores, so the proxy's CPU time reduces the others' throughput.
func BenchmarkProxy(b *testing.B) {
	g := newGatewayOf(b, router.Options{Budget: router.Budget{QPS: -1}})
	namespace := planetest.Namespace(b, g.planes[0])
	planetest.Apply(b, g.planes[0], fmt.Sprintf(team, namespace)+settingsOf(namespace, 500))
	direct, err := g.planes[0].KubeconfigFor("alice", "dev")
	require.NoError(b, err)
	proxied, err := os.ReadFile(g.kubeconfig(b, "/regions/eu-west-1.loodse", "token-of-alice"))
	require.NoError(b, err)
	plain := newHop(b, direct)
	path := "/api/v1/namespaces/" + namespace + "/configmaps"
	for _, answer := range []struct{ name, path string }{{"GET", path + "/settings-0"}, {"LIST-1MB", path}} {
		for _, clients := range []int{1, 8} {
			b.Run(fmt.Sprintf("%s/clients=%d", answer.name, clients), func(b *testing.B) {
				var proxyTook, plainTook latencies
				straight := getting(b, direct, answer.path)
				through, hop := proxyTook.of(getting(b, proxied, answer.path)), plainTook.of(getting(b, plain, answer.path))
				for _, warm := range []func() error{straight, through, hop} {
					batch(b, clients, clients, warm)
				}
				proxyTook.all, plainTook.all = nil, nil
				var ratios, plains []float64
				for b.Loop() {
					d, t, h := batch(b, clients, 32, straight), batch(b, clients, 32, through), batch(b, clients, 32, hop)
					ratios, plains = append(ratios, float64(d)/float64(t)), append(plains, float64(d)/float64(h))
				}
				slices.Sort(ratios)
				slices.Sort(plains)
				b.ReportMetric(ratios[len(ratios)/2], "ratio")
				b.ReportMetric(plains[len(plains)/2], "plain-ratio")
				b.ReportMetric(proxyTook.quantile(0.5)/plainTook.quantile(0.5), "p50-over-plain")
				b.ReportMetric(proxyTook.quantile(0.99)/plainTook.quantile(0.99), "p99-over-plain")
			})
		}
	}
}

// latencies collects how long requests took.
type latencies struct {
	mu  sync.Mutex
	all []time.Duration
}

// of returns request with its time added to l.
func (l *latencies) of(request func() error) func() error {
	return func() error {
		begun := time.Now()
		err := request()
		took := time.Since(begun)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all = append(l.all, took)
		return err
	}
}

// quantile returns the latency that a share q of the requests did not exceed, in seconds.
func (l *latencies) quantile(q float64) float64 {
	slices.Sort(l.all)
	return l.all[int(q*float64(len(l.all)-1))].Seconds()
}

// settingsOf returns the manifests of n ConfigMaps of 2 KB each.
func settingsOf(namespace string, n int) string {
	var manifests strings.Builder
	for i := range n {
		text := strings.Repeat(fmt.Sprintf("%08x", i*2654435761), 240)
		fmt.Fprintf(&manifests, "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: settings-%d, namespace: %s}, data: {text: \"%s\"}}\n", i, namespace, text)
	}
	return manifests.String()
}

func getting(b *testing.B, kubeconfig []byte, path string) func() error {
	b.Helper()
	config, err := plane.ConfigOf(kubeconfig)
	require.NoError(b, err)
	client, err := rest.HTTPClientFor(config)
	require.NoError(b, err)
	b.Cleanup(client.CloseIdleConnections)
	return func() error {
		req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, config.Host+path, http.NoBody)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("the answer is %d", resp.StatusCode)
		}
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	}
}

// newHop serves a proxy that sends all requests with the credentials of kubeconfig, and returns a
// kubeconfig for the proxy.
func newHop(b *testing.B, kubeconfig []byte) []byte {
	b.Helper()
	config, err := plane.ConfigOf(kubeconfig)
	require.NoError(b, err)
	at, err := url.Parse(config.Host)
	require.NoError(b, err)
	transport, err := rest.TransportFor(config)
	require.NoError(b, err)
	g := &gateway{server: httptest.NewUnstartedServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(at) }, Transport: transport,
	})}
	g.server.EnableHTTP2 = true
	g.server.StartTLS()
	b.Cleanup(g.server.Close)
	served, err := os.ReadFile(g.kubeconfig(b, "", "token"))
	require.NoError(b, err)
	return served
}

// batch makes n requests with the given number of concurrent clients, and returns the time that the
// requests took.
func batch(b *testing.B, clients, n int, request func() error) time.Duration {
	b.Helper()
	var made atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, clients)
	start := time.Now()
	for i := range errs {
		wg.Go(func() {
			for errs[i] == nil && made.Add(1) <= int64(n) {
				errs[i] = request()
			}
		})
	}
	wg.Wait()
	took := time.Since(start)
	require.NoError(b, errors.Join(errs...))
	return took
}
