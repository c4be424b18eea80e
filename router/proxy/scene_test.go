// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router"
)

var (
	eu = region.Key{Provider: "loodse", Name: "eu-west-1"}
	us = region.Key{Provider: "loodse", Name: "us-east-1"}
)

const (
	euPath = "/regions/eu-west-1.loodse"
	usPath = "/regions/us-east-1.loodse"
)

// scene is a proxy with two peers.
type scene struct {
	ctx     context.Context //nolint:containedctx // of the test
	routes  *router.Router
	proxy   *Proxy
	handler http.Handler // the handler of front: the proxy, unless a test wraps it
	front   *httptest.Server
	a, b    *peer // the peers of eu and us

	patience time.Duration // how long a test waits for an event

	mu     sync.Mutex
	logs   strings.Builder
	events []Event
	began  []Event
}

func newScene(t testing.TB, opts Options) *scene {
	t.Helper()
	s := &scene{ctx: t.Context(), patience: 2 * time.Minute, a: newPeer(t, "peer-a", eu), b: newPeer(t, "peer-b", us)}
	directory := region.Fixed(s.a.conn, s.b.conn)
	var err error
	s.routes, err = router.New(directory, router.Options{})
	require.NoError(t, err)
	opts.Peers, err = router.New(Peers(directory), router.Options{})
	require.NoError(t, err)
	opts.Operator = func(r *http.Request, _ router.Identity) bool { return bearer(r) == "operator" }
	opts.Observer = &Observer{Served: func(_ context.Context, e Event) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.events = append(s.events, e)
	}, Began: func(_ context.Context, e Event) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.began = append(s.began, e)
	}}
	s.proxy, err = New(s.routes, authenticate, opts)
	require.NoError(t, err)
	s.handler = s.proxy
	logger := funcr.New(func(prefix, args string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.logs.WriteString(prefix + args + "\n")
	}, funcr.Options{Verbosity: 10})
	s.front = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }))
	s.front.Config.BaseContext = func(net.Listener) context.Context {
		return logr.NewContext(context.WithoutCancel(t.Context()), logger)
	}
	s.front.Start()
	t.Cleanup(func() {
		s.front.CloseClientConnections()
		s.front.Close()
	})
	return s
}

// authenticate returns the identities of a few known tokens.
func authenticate(r *http.Request) (router.Identity, error) {
	switch token := bearer(r); token {
	case "alice", "operator":
		return router.Impersonate(router.User{Name: token, Groups: []string{"dev"}}), nil
	case "masters":
		return router.Impersonate(router.User{Name: "mallory", Groups: []string{"system:masters"}}), nil
	case "unnamed":
		return router.Impersonate(router.User{Groups: []string{"dev"}}), nil
	case "ourselves":
		return router.Self(), nil
	case "nobody":
		return router.Identity{}, nil
	case "unchecked":
		return router.Identity{}, fmt.Errorf("the plane at 10.0.0.7 that reviews tokens: %w", region.ErrUnavailable)
	default:
		if strings.HasPrefix(token, "passed-on") {
			return router.Caller(token), nil
		}
		return router.Identity{}, errors.New("token-of-mallory is not known")
	}
}

func bearer(r *http.Request) string {
	return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
}

// answer is a response with its body already read.
type answer struct {
	code   int
	header http.Header
	body   string
	err    error // the error from reading the body
	conn   net.Conn
	rest   *bufio.Reader
}

// send sends the lines as the head of a request, joined by CRLF and otherwise unchanged, and reads the
// answer.
func (s *scene) send(lines ...string) (*answer, error) {
	return s.sendBody("", lines...)
}

func (s *scene) sendBody(body string, lines ...string) (*answer, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(s.ctx, "tcp", s.front.Listener.Addr().String())
	if err != nil {
		return nil, err
	}
	context.AfterFunc(s.ctx, func() { _ = conn.Close() })
	if !strings.HasPrefix(strings.Join(lines, "\n"), "Host:") && !strings.Contains(strings.Join(lines, "\n"), "\nHost:") {
		lines = append(lines, "Host: gateway.example.com")
	}
	if _, err := io.WriteString(conn, strings.Join(lines, "\r\n")+"\r\n\r\n"+body); err != nil {
		return nil, err
	}
	got := &answer{conn: conn, rest: bufio.NewReader(conn)}
	method, _, _ := strings.Cut(lines[0], " ")
	resp, err := http.ReadResponse(got.rest, &http.Request{Method: method})
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	got.code, got.header = resp.StatusCode, resp.Header
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return got, nil
	}
	defer func() { _ = resp.Body.Close() }()
	content, err := io.ReadAll(resp.Body)
	got.body, got.err = string(content), err
	return got, conn.Close()
}

const (
	alice     = "Authorization: Bearer alice"
	websocket = "Upgrade: websocket"
	upgrading = "Connection: Upgrade"
	execPath  = "/api/v1/namespaces/n/pods/p/exec"
)

// exec opens a stream as alice, and closes it.
func (s *scene) exec(lines ...string) (*answer, error) {
	got, err := s.send(append([]string{"GET " + euPath + execPath + " HTTP/1.1", alice, upgrading, websocket}, lines...)...)
	if err == nil && got.code == http.StatusSwitchingProtocols {
		err = got.conn.Close()
	}
	return got, err
}

// refused returns an error if the request reaches a peer, or is not answered with code.
func (s *scene) refused(code int, lines ...string) error {
	got, err := s.send(lines...)
	if err != nil {
		return err
	}
	if n := len(s.a.received()) + len(s.b.received()); n > 0 {
		return fmt.Errorf("the request reaches a peer, and is answered with %d", got.code)
	}
	if got.code != code {
		return fmt.Errorf("the answer is %d, want %d", got.code, code)
	}
	return nil
}

// first returns the first request that peer a received.
func (s *scene) first() (asked, error) {
	if seen := s.a.received(); len(seen) > 0 {
		return seen[0], nil
	}
	return asked{}, errors.New("the request does not reach the peer")
}

func (s *scene) logged() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logs.String()
}

// eventually waits until probe returns nil, for at most two minutes. Otherwise it returns the last error of probe.
func eventually(ctx context.Context, probe func() error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		err := probe()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Millisecond):
		}
	}
}

// code sends a GET for a path of the region as alice, with an ordinary client, and returns the status code.
func (s *scene) code(ctx context.Context, path string) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.front.URL+euPath+path, http.NoBody)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer alice")
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return 0, err
	}
	_ = resp.Body.Close()
	return resp.StatusCode, nil
}

// get sends a GET as alice and reads the whole answer.
func (s *scene) get(ctx context.Context, path string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.front.URL+euPath+path, http.NoBody)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer alice")
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// http2Server serves h over TLS and HTTP/2.
func http2Server(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}
