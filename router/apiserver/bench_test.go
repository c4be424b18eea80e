// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package apiserver

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router"
	"github.com/atoll-dev/atoll/router/proxy"
)

// pages serves a list of 10,000 objects of 1.5 KB in pages of 500, from memory.
func pages(region string) http.Handler {
	const objects, page = 10000, 500
	var texts []string
	for first := 0; first < objects; first += page {
		next := ""
		if first+page < objects {
			next = strconv.Itoa(first + page)
		}
		var b strings.Builder
		fmt.Fprintf(&b, `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"123456","continue":%q},"items":[`, next)
		for i := range page {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `{"metadata":{"name":"%s-%d","namespace":"default","uid":"0b0f9a5b-6bd8-4e2e-9c3c-3c4b5f7e1a2d","resourceVersion":"%d","creationTimestamp":"2026-01-01T00:00:00Z",`+
				`"labels":{"app.kubernetes.io/name":"web","tier":"front"},"managedFields":[{"manager":"kubectl","operation":"Update","apiVersion":"v1","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1",`+
				`"fieldsV1":{"f:data":{".":{},"f:a":{},"f:b":{}},"f:metadata":{"f:labels":{".":{},"f:app.kubernetes.io/name":{},"f:tier":{}}}}}]},"data":{"a":%q,"b":"line\nline\n"}}`,
				region, first+i, 1000+first+i, strings.Repeat("some value ", 80))
		}
		b.WriteString("]}")
		texts = append(texts, b.String())
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		first, _ := strconv.Atoi(r.URL.Query().Get("continue"))
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, texts[first/page])
	})
}

// cpu returns the processor time of this process.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkList lists 3 x 10,000 objects of 1.5 KB, in turn merged and through three bare reverse proxies in the same
// pages. The servers answer from memory in the same process, so that nearly all processor time is that of the copies on
// the way. "ratio" is the processor time through the bare proxies divided by that of the merged list; "wall-ratio" has
// the time by the clock.
func BenchmarkList(b *testing.B) {
	var peers []region.Peer
	var bare []string
	for _, name := range []string{"a", "b", "c"} {
		server := httptest.NewTLSServer(pages(name))
		defer server.Close()
		credentials, err := region.FromConfig(&rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})}})
		require.NoError(b, err)
		peers = append(peers, region.Peer{Name: region.PeerName(name), Regions: []region.Key{{Provider: "loodse", Name: name}}, Credentials: credentials})
		target, err := url.Parse(server.URL)
		require.NoError(b, err)
		reverse := httputil.NewSingleHostReverseProxy(target)
		reverse.Transport = server.Client().Transport
		front := httptest.NewTLSServer(reverse)
		defer front.Close()
		bare = append(bare, front.URL)
	}
	source, err := region.FromPeers(peers...)
	require.NoError(b, err)
	ring, err := region.NewRing(source, region.Options{})
	require.NoError(b, err)
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = ring.Start(ctx)
	}()
	defer func() {
		cancel()
		<-done
	}()
	<-ring.Synced()
	routes, err := router.New(ring, router.Options{Budget: router.Budget{QPS: -1}})
	require.NoError(b, err)
	single, err := proxy.New(routes, authenticate, proxy.Options{})
	require.NoError(b, err)
	handler, err := New(routes, single, Options{})
	require.NoError(b, err)
	merged := httptest.NewTLSServer(handler)
	defer merged.Close()

	client := merged.Client()
	read := func(address string) (next string, size int64) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
		require.NoError(b, err)
		req.Header.Set("Authorization", "Bearer alice")
		req.Header.Set("Accept-Encoding", "identity")
		resp, err := client.Do(req)
		require.NoError(b, err)
		defer func() { _ = resp.Body.Close() }()
		require.Equal(b, http.StatusOK, resp.StatusCode)
		head := make([]byte, 200)
		n, err := io.ReadFull(resp.Body, head)
		require.NoError(b, err)
		size, err = io.Copy(io.Discard, resp.Body)
		require.NoError(b, err)
		if _, after, ok := strings.Cut(string(head), `"continue":"`); ok {
			next, _, _ = strings.Cut(after, `"`)
		}
		return next, size + int64(n)
	}
	var direct, all, directWall, allWall time.Duration
	for b.Loop() {
		used, began := cpu(b), time.Now()
		bytes := int64(0)
		for _, address := range bare {
			for next, more := "", true; more; more = next != "" {
				var n int64
				next, n = read(address + "/api/v1/configmaps?limit=500&continue=" + next)
				bytes += n
			}
		}
		direct, directWall = direct+cpu(b)-used, directWall+time.Since(began)
		used, began = cpu(b), time.Now()
		_, n := read(merged.URL + "/regions/*/api/v1/configmaps")
		require.Greater(b, n, bytes)
		all, allWall = all+cpu(b)-used, allWall+time.Since(began)
	}
	b.ReportMetric(float64(direct)/float64(all), "ratio")
	b.ReportMetric(float64(directWall)/float64(allWall), "wall-ratio")
	b.ReportMetric(float64(all.Milliseconds())/float64(b.N), "cpu-ms")
}
