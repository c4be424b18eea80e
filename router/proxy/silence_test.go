// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router"
)

// freezable is a peer that answers at once while it is not frozen, and never while it is. After a thaw it does not
// answer probes.
type freezable struct{ frozen, thawed atomic.Bool }

func (p *freezable) RoundTrip(req *http.Request) (*http.Response, error) {
	if p.frozen.Load() || p.thawed.Load() && req.URL.Path == "/readyz" {
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	body := `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"1"}}`
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: req,
	}, nil
}

// While a peer's probes fail, requests to it are refused without a wait, except for one a second. A peer that responds
// again answers one of these within a second. From then on the proxy refuses none, although no probe has succeeded yet.
func TestAPeerThatIsKnownToBeSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer := &freezable{}
		creds, err := region.FromConfig(&rest.Config{Host: "https://eu.example.com", BearerToken: "library", Transport: peer})
		require.NoError(t, err)
		source, err := region.FromPeers(region.Peer{Name: "peer-a", Regions: []region.Key{eu}, Credentials: creds})
		require.NoError(t, err)
		ring, err := region.NewRing(source, region.Options{})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = ring.Start(ctx) })
		defer running.Wait()
		defer cancel()
		<-ring.Synced()
		routes, err := router.New(ring, router.Options{})
		require.NoError(t, err)
		p, err := New(routes, authenticate, Options{})
		require.NoError(t, err)
		ask := func(path string) (code int, took time.Duration, retry string) {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, euPath+path, http.NoBody)
			r.Header.Set("Authorization", "Bearer alice")
			w, began := httptest.NewRecorder(), time.Now()
			p.ServeHTTP(w, r)
			return w.Code, time.Since(began), w.Header().Get("Retry-After")
		}
		code, _, _ := ask("/version")
		require.Equal(t, http.StatusOK, code)

		peer.frozen.Store(true)
		code, took, _ := ask("/version")
		require.Equal(t, http.StatusGatewayTimeout, code, "not known yet")
		require.Equal(t, 70*time.Second, took)
		require.Equal(t, region.Unhealthy, routes.Health(eu).State)
		passes := func() { // the one request that passes in this second
			running.Go(func() {
				code, took, _ := ask("/version")
				if code != http.StatusGatewayTimeout || took != 70*time.Second {
					t.Errorf("%d after %s", code, took)
				}
			})
			synctest.Wait()
		}
		passes()
		for _, path := range []string{"/version", "/api/v1/pods?watch=true", "/readyz/../version", "/api/v1/namespaces/n/pods/p/exec"} {
			code, took, retry := ask(path)
			if path == "/readyz/../version" {
				require.Equal(t, http.StatusBadRequest, code)
				continue
			}
			require.Equal(t, http.StatusServiceUnavailable, code, path)
			require.Zero(t, took)
			require.Equal(t, "1", retry)
		}
		code, took, _ = ask("/readyz?verbose")
		require.Equal(t, http.StatusGatewayTimeout, code, "a health check reaches the peer")
		require.Equal(t, 70*time.Second, took)

		passes()
		began := time.Now()
		peer.thawed.Store(true)
		for peer.frozen.Store(false); ; time.Sleep(100 * time.Millisecond) {
			if code, _, _ = ask("/version"); code == http.StatusOK {
				break
			}
			require.Equal(t, http.StatusServiceUnavailable, code)
		}
		for range 10 {
			code, _, _ = ask("/version")
			require.Equal(t, http.StatusOK, code)
		}
		require.Equal(t, time.Second, time.Since(began))
		require.Equal(t, region.Unhealthy, routes.Health(eu).State, "no probe has succeeded yet")
		time.Sleep(70 * time.Second)
		synctest.Wait()
		requireEmpty(t, p.requests)
	})
}

// Authentications are counted by the client's IPv4 address or IPv6 network, and not by connection.
func TestSources(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.1:40001": "192.0.2.1", "192.0.2.1:40002": "192.0.2.1", "[::ffff:192.0.2.1]:1": "192.0.2.1",
		"[2001:db8::1]:40001": "2001:db8::", "[2001:db8::ffff:0:0:2]:1": "2001:db8::", "[fe80::1%eth0]:1": "fe80::", "@": "@", "": "",
	} {
		require.Equal(t, flow{caller: want}, sourceOf(&http.Request{RemoteAddr: address}), address)
	}
}
