// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router"
)

// BenchmarkProxy compares requests through the proxy with the same requests sent directly to the peer, one at a
// time and eight at a time: a small GET and a LIST of 1 MB, each over TLS and HTTP/2 on one machine, where client,
// proxy and peer share the cores. Batches of direct and proxied requests alternate. The ratio is the proxy's
// throughput divided by the direct one.
//
// In the case bare, the peer is a handler that writes prepared bytes, so the proxy's second hop is most of the
// work. In the case serving, the peer takes as long as an API server, 1 ms for a GET and 20 ms for a LIST, but
// without using a core.
func BenchmarkProxy(b *testing.B) {
	for _, tt := range []struct {
		peer      string
		get, list time.Duration
	}{{"bare", 0, 0}, {"serving", time.Millisecond, 20 * time.Millisecond}} {
		for _, answer := range []struct {
			name  string
			size  int
			takes time.Duration
		}{{"GET", 2 << 10, tt.get}, {"LIST-1MB", 1 << 20, tt.list}} {
			for _, clients := range []int{1, 8} {
				b.Run(fmt.Sprintf("%s/%s/clients=%d", tt.peer, answer.name, clients), func(b *testing.B) {
					direct, plain, proxied := newBench(b, answer.size, answer.takes)
					compare(b, clients, answer.size, direct, plain, proxied)
				})
			}
		}
	}
}

// newBench returns funcs that send a request to a peer whose answers have the given size. direct sends to the peer,
// plain through an httputil.ReverseProxy that only adds the second hop, and proxied through our proxy.
func newBench(b *testing.B, size int, takes time.Duration) (direct, plain, proxied func() error) {
	b.Helper()
	body := bytes.Repeat([]byte("0123456789abcdef"), size/16)
	backend := serve(b, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if takes > 0 {
			time.Sleep(takes)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body)
	}))
	creds, err := region.FromConfig(&rest.Config{Host: backend.URL, BearerToken: "library", TLSClientConfig: rest.TLSClientConfig{CAData: authority(backend)}})
	require.NoError(b, err)
	conn, err := region.NewConn(region.Peer{Name: "a", Regions: []region.Key{eu}, Credentials: creds}, region.ConnOptions{})
	require.NoError(b, err)
	b.Cleanup(conn.Close)
	routes, err := router.New(region.Fixed(conn), router.Options{Budget: router.Budget{QPS: -1}})
	require.NoError(b, err)
	p, err := New(routes, authenticate, Options{})
	require.NoError(b, err)
	at, err := url.Parse(backend.URL)
	require.NoError(b, err)
	hop := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(at) }, Transport: transport(b, backend)}
	return fetching(b, backend, "/api/v1/pods", size), fetching(b, serve(b, hop), "/api/v1/pods", size),
		fetching(b, serve(b, p), euPath+"/api/v1/pods", size)
}

func serve(b *testing.B, h http.Handler) *httptest.Server {
	b.Helper()
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	b.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func fetching(b *testing.B, s *httptest.Server, path string, size int) func() error {
	b.Helper()
	transport := transport(b, s)
	return func() error {
		req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, s.URL+path, http.NoBody)
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer alice")
		resp, err := transport.RoundTrip(req)
		if err != nil {
			return err
		}
		n, err := io.Copy(io.Discard, resp.Body)
		if err == nil && (n != int64(size) || resp.StatusCode != http.StatusOK) {
			err = fmt.Errorf("%d with %d bytes", resp.StatusCode, n)
		}
		_ = resp.Body.Close()
		return err
	}
}

func transport(b *testing.B, s *httptest.Server) *http.Transport {
	b.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	t := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true, DisableCompression: true}
	b.Cleanup(t.CloseIdleConnections)
	return t
}

// compare runs small batches of the three requests in turn, so that other load on the machine affects all alike.
func compare(b *testing.B, clients, size int, direct, plain, proxied func() error) {
	b.Helper()
	var ours, others []float64
	var straight, hop, through time.Duration
	for _, warm := range []func() error{direct, plain, proxied} {
		batch(b, clients, clients, warm)
	}
	b.SetBytes(int64(size))
	b.ResetTimer()
	for n := b.N; n > 0; n -= 64 {
		t := batch(b, clients, min(n, 64), proxied)
		b.StopTimer()
		d, p := batch(b, clients, min(n, 64), direct), batch(b, clients, min(n, 64), plain)
		b.StartTimer()
		straight, hop, through = straight+d, hop+p, through+t
		ours, others = append(ours, float64(d)/float64(t)), append(others, float64(d)/float64(p))
	}
	slices.Sort(ours)
	slices.Sort(others)
	b.ReportMetric(ours[len(ours)/2], "ratio")
	b.ReportMetric(others[len(others)/2], "plain-ratio")
	b.ReportMetric(float64(straight.Microseconds())/float64(b.N), "direct-µs/op")
	b.ReportMetric(float64(hop.Microseconds())/float64(b.N), "plain-µs/op")
	b.ReportMetric(float64(through.Microseconds())/float64(b.N), "proxied-µs/op")
}

// batch makes n requests, at most clients of them at a time, and returns the elapsed time.
func batch(b *testing.B, clients, n int, request func() error) time.Duration {
	b.Helper()
	work := make(chan struct{}, n)
	for range n {
		work <- struct{}{}
	}
	close(work)
	errs := make(chan error, clients)
	start := time.Now()
	for range clients {
		go func() {
			for range work {
				if err := request(); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range clients {
		require.NoError(b, <-errs)
	}
	return time.Since(start)
}

func authority(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}
