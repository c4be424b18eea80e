// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router"
)

func TestNew(t *testing.T) {
	routes, err := router.New(region.Fixed(), router.Options{})
	require.NoError(t, err)
	for want, try := range map[string]func() (*Proxy, error){
		"the router is nil":        func() (*Proxy, error) { return New(nil, authenticate, Options{}) },
		"the authenticator is nil": func() (*Proxy, error) { return New(routes, nil, Options{}) },
		"Options.Operator is not":  func() (*Proxy, error) { return New(routes, authenticate, Options{Peers: routes}) },
		"Limits.Streams is -1; want a positive number, or zero for 4000": func() (*Proxy, error) {
			return New(routes, authenticate, Options{Limits: Limits{Streams: -1}})
		},
		"Limits.Body is -1s; want a positive duration, or zero for 30s": func() (*Proxy, error) {
			return New(routes, authenticate, Options{Limits: Limits{Body: -time.Second}})
		},
	} {
		_, err := try()
		require.ErrorContains(t, err, want)
	}
}

func TestRoutes(t *testing.T) {
	s := newScene(t, Options{})
	for _, tt := range []struct {
		target, token string
		code          int
		asked         string // the path that the peer receives; "" if no peer is asked
	}{
		{euPath + "/api/v1/pods?limit=1&watch=false", "alice", 200, "/tenant/api/v1/pods?limit=1&watch=false"},
		{euPath, "alice", 200, "/tenant/"},
		{euPath + "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode", "alice", 200, "/tenant/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode"},
		{"/clusters/eu-west-1.loodse/version", "alice", 200, "/tenant/version"},
		{"/peers/peer-a/version", "operator", 200, "/tenant/version"},
		{"/peers/peer-c/version", "operator", 404, ""},
		{"/peers/peer-a/version", "alice", 404, ""},
		{"/regions/eu-west-1.other/version", "alice", 404, ""},
		{"/regions/peer-a.peer/version", "operator", 404, ""},
		{"/regions/eu-west-1/version", "alice", 404, ""},
		{"/", "alice", 404, ""},
		{"/api/v1/pods", "alice", 404, ""},
		{euPath + "/version", "mallory", 401, ""},
	} {
		before := len(s.a.received())
		got, err := s.send("GET "+tt.target+" HTTP/1.1", "Authorization: Bearer "+tt.token)
		require.NoError(t, err)
		require.Equal(t, tt.code, got.code, tt.target)
		seen := s.a.received()[before:]
		if tt.asked == "" {
			require.Empty(t, seen, tt.target)
			require.Contains(t, got.body, `"kind":"Status"`)
			continue
		}
		require.Len(t, seen, 1, tt.target)
		require.Equal(t, tt.asked, seen[0].uri)
		require.Equal(t, tt.token, seen[0].header.Get("Impersonate-User"))
		require.Equal(t, "Bearer library-at-peer-a", seen[0].header.Get("Authorization"))
	}
	require.Empty(t, s.b.received())
}

func TestPeersAreOffByDefault(t *testing.T) {
	s := newScene(t, Options{})
	var err error
	s.handler, err = New(s.routes, authenticate, Options{})
	require.NoError(t, err)
	require.NoError(t, s.refused(404, "GET /peers/peer-a/version HTTP/1.1", "Authorization: Bearer operator"))
}

func TestAllVerbs(t *testing.T) {
	s := newScene(t, Options{})
	for i, method := range methods {
		got, err := s.sendBody("hello", method+" "+euPath+"/api/v1/namespaces HTTP/1.1", alice, "Content-Length: 5")
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, got.code, method)
		require.Equal(t, method, s.a.received()[i].method)
	}
}

func TestBodiesAreStreamed(t *testing.T) {
	s := newScene(t, Options{})
	body, pipe := io.Pipe()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.front.URL+euPath+"/upload", body)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer alice")
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	answered := make(chan error)
	go func() {
		resp, err := client.Do(req)
		if err == nil {
			err = resp.Body.Close()
		}
		answered <- err
	}()
	_, err = io.WriteString(pipe, "a line\n")
	require.NoError(t, err)
	<-s.a.left // the peer has received the line while the body is still being sent
	require.NoError(t, pipe.Close())
	require.NoError(t, <-answered)
}

func TestStreams(t *testing.T) {
	s := newScene(t, Options{})
	for _, protocol := range []string{"websocket", "SPDY/3.1"} {
		for _, token := range []string{"alice", "passed-on"} {
			got, err := s.send("POST "+euPath+execPath+"?command=ls&container=a%20b HTTP/1.1", "Authorization: Bearer "+token, upgrading,
				"Upgrade: "+protocol, "Sec-WebSocket-Protocol: v5.channel.k8s.io", "X-Stream-Protocol-Version: v4.channel.k8s.io")
			require.NoError(t, err)
			require.Equal(t, http.StatusSwitchingProtocols, got.code)
			require.Equal(t, protocol, got.header.Get("Upgrade"))
			_, err = io.WriteString(got.conn, "echo")
			require.NoError(t, err)
			echo := make([]byte, 4)
			_, err = io.ReadFull(got.rest, echo)
			require.NoError(t, err)
			require.Equal(t, "echo", string(echo))
			require.NoError(t, got.conn.Close())
			<-s.a.left // the peer's side of the stream has ended too
			last := s.a.received()[len(s.a.received())-1]
			require.Equal(t, "/tenant"+execPath+"?command=ls&container=a%20b", last.uri)
			require.Equal(t, "v5.channel.k8s.io", last.header.Get("Sec-WebSocket-Protocol"))
			require.Equal(t, "v4.channel.k8s.io", last.header.Get("X-Stream-Protocol-Version"))
			require.Equal(t, token == "alice", last.header.Get("Impersonate-User") == "alice")
		}
	}
}

func TestAuditID(t *testing.T) {
	s := newScene(t, Options{})
	for sent, kept := range map[string]bool{"0b6c0a2e-audit": true, "": false, strings.Repeat("a", 65): false, "a b": false} {
		before := len(s.a.received())
		_, err := s.send("GET "+euPath+"/version HTTP/1.1", alice, "Audit-ID: "+sent)
		require.NoError(t, err)
		got := s.a.received()[before].header.Get("Audit-Id")
		require.Equal(t, kept, got == sent)
		require.NotEmpty(t, got)
		s.mu.Lock()
		e := s.events[len(s.events)-1]
		s.mu.Unlock()
		require.Equal(t, got, e.AuditID)
		require.Equal(t, eu, e.Region)
		require.Equal(t, http.StatusOK, e.Code)
	}
}

func TestUnreachable(t *testing.T) {
	s := newScene(t, Options{})
	s.a.server.CloseClientConnections()
	s.a.server.Close()
	for _, lines := range [][]string{{alice}, {alice, upgrading, websocket}} {
		got, err := s.send(append([]string{"GET " + euPath + execPath + " HTTP/1.1"}, lines...)...)
		require.NoError(t, err)
		require.Contains(t, []int{http.StatusServiceUnavailable, http.StatusBadGateway}, got.code)
		require.NotContains(t, got.body, "127.0.0.1")
	}
	got, err := s.send("GET "+usPath+"/version HTTP/1.1", alice)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, got.code, "the other region is not affected")
}

func TestTheBudgetOfARegion(t *testing.T) {
	s := newScene(t, Options{})
	routes, err := router.New(region.Fixed(s.a.conn, s.b.conn), router.Options{Budget: router.Budget{Streams: 1}})
	require.NoError(t, err)
	s.proxy.regions = newClients(routes)
	open := func(path string) *answer {
		got, err := s.send("GET "+path+execPath+" HTTP/1.1", alice, upgrading, websocket)
		require.NoError(t, err)
		return got
	}
	first := open(euPath)
	require.Equal(t, http.StatusSwitchingProtocols, first.code)
	busy := open(euPath)
	require.Equal(t, http.StatusTooManyRequests, busy.code)
	require.Equal(t, "1", busy.header.Get("Retry-After"))
	other := open(usPath)
	require.Equal(t, http.StatusSwitchingProtocols, other.code)
	require.NoError(t, first.conn.Close())
	require.NoError(t, eventually(t.Context(), func() error {
		again := open(euPath)
		if again.code != http.StatusSwitchingProtocols {
			return fmt.Errorf("the answer is %d", again.code)
		}
		return again.conn.Close()
	}))
	require.NoError(t, other.conn.Close())
}

func TestClientsAreKept(t *testing.T) {
	s := newScene(t, Options{})
	c := s.proxy.regions
	c.max = 2
	id := func(name string) router.Identity { return router.Impersonate(router.User{Name: name}) }
	first, err := c.get(t.Context(), eu, id("a"))
	require.NoError(t, err)
	for _, name := range []string{"b", "a", "c", "a", "d", "a", "e", "f", "g"} {
		if name > "e" {
			break
		}
		got, err := c.get(t.Context(), eu, id(name))
		require.NoError(t, err)
		require.Equal(t, name == "a", got == first, "%s: a client in use is kept, and not shared with another identity", name)
		require.LessOrEqual(t, len(c.young)+len(c.old), 2*c.max)
	}
	other, err := c.get(t.Context(), us, id("a"))
	require.NoError(t, err)
	require.NotSame(t, first, other)
	for _, name := range []string{"x", "y", "z", "w"} {
		_, err := c.get(t.Context(), eu, id(name))
		require.NoError(t, err)
	}
	again, err := c.get(t.Context(), eu, id("a"))
	require.NoError(t, err)
	require.NotSame(t, first, again, "an unused client is dropped")
	_, err = c.get(t.Context(), region.Key{Provider: "loodse", Name: "none"}, id("a"))
	require.ErrorIs(t, err, region.ErrUnknownRegion)
}

// A request takes a place among the streams if an API server classifies it as long-running, and only then.
func TestLongRunningRequests(t *testing.T) {
	s := newScene(t, Options{Limits: Limits{StreamsPerRegion: 1}})
	for _, tt := range []struct {
		path string
		long bool
	}{
		{"/api/v1/hang?watch=yes", true}, {"/api/v1/hang?watch", true}, {"/api/v1/watch/hang", true}, {"/api/v1/hang?watch=0", false},
		{"/api/v1/hang?watch=False", false}, {"/api/v1/namespaces/n/services/s/proxy/hang?follow=yes", true}, {"/hang?watch=true", false},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		var hanging sync.WaitGroup
		hanging.Go(func() { _ = s.get(ctx, tt.path) })
		require.NoError(t, s.a.await(t.Context(), 1))
		want := http.StatusOK
		if tt.long {
			want = http.StatusTooManyRequests
		}
		code, err := s.code(t.Context(), "/api/v1/pods?watch=true")
		require.NoError(t, err)
		require.Equal(t, want, code, tt.path)
		cancel()
		hanging.Wait()
		require.NoError(t, s.a.await(t.Context(), 0))
		require.NoError(t, eventually(t.Context(), func() error { // the end reaches the proxy a moment after the peer
			if code, err := s.code(t.Context(), "/api/v1/pods?watch=true"); err != nil || code != http.StatusOK {
				return fmt.Errorf("the answer is %d, %w", code, err)
			}
			return nil
		}))
	}
}
