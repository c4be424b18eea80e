// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router"
)

// takes is the time that a peer needs for an answer.
const takes = 50 * time.Millisecond

// slowPeer is a transport to a peer that answers after the time takes, or never if it is frozen.
type slowPeer struct{ frozen bool }

func (p slowPeer) RoundTrip(req *http.Request) (*http.Response, error) {
	if p.frozen {
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	if req.Body != nil {
		defer func() { _ = req.Body.Close() }()
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return nil, err
		}
	}
	select {
	case <-time.After(takes):
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}")), Request: req}, nil
}

// memory is a net.Listener whose connections are in-memory pipes.
type memory struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newMemory() *memory { return &memory{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (m *memory) Accept() (net.Conn, error) {
	select {
	case c := <-m.conns:
		return c, nil
	case <-m.closed:
		return nil, net.ErrClosed
	}
}

func (m *memory) Close() error {
	m.once.Do(func() { close(m.closed) })
	return nil
}

func (m *memory) Addr() net.Addr { return &net.TCPAddr{} }

func (m *memory) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case m.conns <- server:
		return client, nil
	case <-m.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// island is a proxy with three peers, one for each region in names.
type island struct {
	server    *http.Server
	proxy     *Proxy
	transport *http.Transport
	base      string // the proxy's address
	conns     []*region.Conn
	serving   sync.WaitGroup
}

// names are the regions of an island. The attacks go to the first region.
var names = []string{"attacked", "quiet", "calm"}

func newIsland(t *testing.T, attacked http.RoundTripper, limits Limits) *island {
	t.Helper()
	i := &island{base: "http://gateway"}
	for n, name := range names {
		peer := attacked
		if n > 0 {
			peer = slowPeer{}
		}
		creds, err := region.FromConfig(&rest.Config{Host: "https://" + name + ".example.com", BearerToken: "library", Transport: peer})
		require.NoError(t, err)
		conn, err := region.NewConn(region.Peer{Name: region.PeerName(name), Regions: []region.Key{{Provider: "loodse", Name: name}}, Credentials: creds}, region.ConnOptions{})
		require.NoError(t, err)
		i.conns = append(i.conns, conn)
	}
	routes, err := router.New(region.Fixed(i.conns...), router.Options{Budget: router.Budget{QPS: -1}})
	require.NoError(t, err)
	i.proxy, err = New(routes, func(r *http.Request) (router.Identity, error) {
		return router.Impersonate(router.User{Name: bearer(r)}), nil
	}, Options{Limits: limits})
	require.NoError(t, err)
	// A request about all regions lasts as long as its slowest region.
	all := i.proxy.Protect(func(w http.ResponseWriter, r *http.Request, _ router.Identity) error {
		resp, err := attacked.RoundTrip(r)
		if err == nil {
			_, _ = io.Copy(w, resp.Body)
			_ = resp.Body.Close()
		}
		return nil
	})
	i.server = &http.Server{ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/regions/*/") {
			all.ServeHTTP(w, r)
		} else {
			i.proxy.ServeHTTP(w, r)
		}
	})}
	listener := newMemory()
	i.transport = &http.Transport{DialContext: listener.dial, MaxIdleConnsPerHost: 1000}
	i.serving.Go(func() { _ = i.server.Serve(listener) })
	return i
}

func (i *island) close() {
	i.transport.CloseIdleConnections()
	_ = i.server.Close()
	i.serving.Wait()
	for _, conn := range i.conns {
		conn.Close()
	}
}

// do makes one request and returns its status code, or 0 if it gets no answer.
func (i *island) do(ctx context.Context, user, path string, body io.Reader) int {
	method := http.MethodGet
	if body != nil {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(ctx, method, i.base+path, body)
	if err != nil {
		return 0
	}
	req.Header.Set("Authorization", "Bearer "+user)
	resp, err := i.transport.RoundTrip(req)
	if err != nil {
		return 0
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return 0
	}
	return resp.StatusCode
}

// stalled is a body that sends one byte and then blocks until its context ends.
type stalled struct {
	ctx  context.Context //nolint:containedctx // of the request with this body
	sent bool
}

func (s *stalled) Read(b []byte) (int, error) {
	if !s.sent {
		s.sent = true
		return copy(b, "{"), nil
	}
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}

// attack keeps the given number of requests of alice running until the test calls end. After a 429, the next request
// waits for a second, as client-go does on Retry-After.
func (i *island) attack(workers int, path string, stalling bool) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for ctx.Err() == nil {
				var body io.Reader
				if stalling {
					body = &stalled{ctx: ctx}
				}
				if i.do(ctx, "alice", path, body) == http.StatusTooManyRequests {
					select {
					case <-time.After(time.Second):
					case <-ctx.Done():
					}
				}
			}
		})
	}
	return func() {
		cancel()
		wg.Wait()
	}
}

// measure makes requests as bob. It returns the share of the requests that succeed, and the median duration of these.
func (i *island) measure(workers, each int, regions ...string) (ratio float64, median time.Duration) {
	var mu sync.Mutex
	var took []time.Duration
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for n := range each {
				began := time.Now()
				if i.do(context.Background(), "bob", "/regions/"+regions[(w+n)%len(regions)]+"/api/v1/pods", nil) == http.StatusOK {
					mu.Lock()
					took = append(took, time.Since(began))
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	if len(took) == 0 {
		return 0, 0
	}
	slices.Sort(took)
	return float64(len(took)) / float64(workers*each), took[len(took)/2]
}

// While one user attacks one region or all, at least 99.9 % of another user's requests to regions that answer succeed,
// and the median duration of these requests grows by at most half. Time is virtual, so the figures are exact: peers
// take 50 ms, everything else takes no time.
func TestOneRegionDoesNotTakeDownTheOthers(t *testing.T) {
	const there = "/regions/attacked.loodse/api/v1/pods"
	for _, tt := range []struct {
		name    string
		frozen  bool
		workers int
		path    string
		stall   bool
		bob     []string
	}{
		{"a frozen region", true, 450, there, false, []string{"quiet.loodse", "calm.loodse"}},
		{"a healthy region", false, 450, there, false, []string{"quiet.loodse", "calm.loodse"}},
		{"bodies that stall", false, 400, there, true, []string{"quiet.loodse", "calm.loodse"}},
		{"the same healthy region", false, 450, there, false, []string{"attacked.loodse"}},
		{"the same region, by bodies that stall", false, 400, there, true, []string{"attacked.loodse"}},
		{"all regions", true, 450, "/regions/*/api/v1/pods", false, []string{"quiet.loodse", "calm.loodse"}},
		{"all regions, by others too", false, 450, "/regions/*/api/v1/pods", false, []string{"*", "calm.loodse"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				i := newIsland(t, slowPeer{tt.frozen}, Limits{})
				defer i.close()
				_, alone := i.measure(10, 20, tt.bob...)
				require.Equal(t, takes, alone)
				end := i.attack(tt.workers, tt.path, tt.stall)
				defer end()
				time.Sleep(time.Second)
				ratio, median := i.measure(10, 100, tt.bob...)
				require.GreaterOrEqual(t, ratio, 0.999, "of bob's requests succeed")
				require.LessOrEqual(t, median, alone*3/2, "bob's median")
			})
		})
	}
}

// The attacker gets half of a region's places, and no place stays taken when the attack ends.
func TestAnAttackLeavesNothingBehind(t *testing.T) {
	for _, stalling := range []bool{false, true} {
		t.Run(fmt.Sprint(stalling), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				i := newIsland(t, slowPeer{!stalling}, Limits{})
				defer i.close()
				end := i.attack(450, "/regions/attacked.loodse/api/v1/pods", stalling)
				time.Sleep(time.Second)
				g := i.proxy.requests
				g.mu.Lock()
				require.Equal(t, 50, g.busy.all, "half of RequestsPerRegion")
				require.Equal(t, 400, g.waiting.all)
				g.mu.Unlock()
				end()
				synctest.Wait()
				for _, g := range []*gate{i.proxy.requests, i.proxy.streams, i.proxy.authentications} {
					requireEmpty(t, g)
				}
			})
		})
	}
}

func requireEmpty(t require.TestingT, g *gate) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range []*shares{&g.busy, &g.waiting} {
		require.Zero(t, s.all)
		require.Empty(t, s.regions)
		require.Empty(t, s.callers)
		require.Empty(t, s.flows)
	}
	require.Empty(t, g.lines)
	require.Empty(t, g.lineOf)
}
