// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

var streamChecks = []check{
	{
		name: "an upgrade over HTTP/2, or without the peer's TLS", known: "the upgrade path skips the transport that was configured",
		guard: "streams have a configuration of their own, with the peer's CA and HTTP/1.1", without: func(s *scene) { s.proxy.guards.stream = func(*rest.Config) {} },
		try: func(s *scene) error {
			got, err := s.send("POST "+euPath+execPath+" HTTP/1.1", alice, upgrading, "Upgrade: SPDY/3.1")
			if err != nil {
				return err
			}
			if got.code != http.StatusSwitchingProtocols {
				return fmt.Errorf("exec is answered with %d", got.code)
			}
			return got.conn.Close()
		},
	},
	{
		name: "an upgrade to a peer that another CA vouches for", known: "Clusternet, cluster-proxy: peers' certificates were not verified",
		guard: "streams verify the peer",
		without: func(s *scene) {
			s.proxy.guards.stream = func(c *rest.Config) {
				overHTTP1(c)
				c.Insecure, c.CAData = true, nil
			}
		},
		try: func(s *scene) error {
			guard := s.proxy.guards.stream
			s.proxy.guards.stream = func(c *rest.Config) {
				c.ServerName = "somebody-else.invalid"
				guard(c)
			}
			if got, err := s.exec(); err != nil || got.code == http.StatusSwitchingProtocols {
				return errors.Join(errors.New("a stream is opened to a server that is not the peer"), err)
			}
			return nil
		},
	},
	{
		name: "`Upgrade: h2c`", known: "h2c smuggling: requests that no proxy sees",
		guard: "only websocket and SPDY/3.1 are upgraded to", without: func(s *scene) { s.proxy.guards.upgrade = anything },
		try: func(s *scene) error {
			return s.refused(400, "GET "+euPath+execPath+" HTTP/1.1", alice, "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__")
		},
	},
	{
		name: "a second request behind an upgrade that the peer refuses", known: "CVE-2018-1002105: the connection to the backend stays open, with the proxy's rights",
		guard: "net/http/httputil: only 101 in the same protocol is a stream",
		try: func(s *scene) error {
			const second = "GET /tenant/api/v1/secrets HTTP/1.1\r\nHost: peer\r\n\r\n"
			got, err := s.sendBody(second, "GET "+euPath+"/refused HTTP/1.1", alice, upgrading, websocket)
			if err != nil {
				return err
			}
			if got.code != http.StatusForbidden || len(s.a.received()) != 1 {
				return fmt.Errorf("the answer is %d, and %d requests reach the peer", got.code, len(s.a.received()))
			}
			return nil
		},
	},
	{
		name: "a peer redirects", known: "CVE-2022-3172, CVE-2018-1002102: the caller's credentials follow",
		guard: "redirects are not handed on, with or without an upgrade",
		without: func(s *scene) {
			s.proxy.guards.redirect = func(*http.Response) error { return nil }
		},
		try: func(s *scene) error {
			for _, lines := range [][]string{{}, {upgrading, websocket}} {
				got, err := s.send(append([]string{"GET " + euPath + "/redirect HTTP/1.1", alice}, lines...)...)
				if err != nil {
					return err
				}
				if got.code/100 == 3 || got.header.Get("Location") != "" {
					return fmt.Errorf("the client is redirected with %d", got.code)
				}
			}
			return nil
		},
	},
	{
		name: "more requests at a time than are allowed", known: "CVE-2023-44487, HTTP/2 rapid reset: a proxy multiplies the load on its backends",
		guard: "bounds on concurrent requests", opts: Options{Limits: Limits{RequestsPerRegion: 4, StreamsPerRegion: 4, Waiting: -1}},
		without: unbounded,
		try: func(s *scene) error {
			for _, target := range []string{"/hang", "/api/v1/hang?watch=yes"} {
				ctx, cancel := context.WithCancel(s.ctx)
				for range 2 {
					go func() { _ = s.get(ctx, target) }()
				}
				err := s.a.await(ctx, 2)
				if err == nil {
					var code int
					if code, err = s.code(ctx, target); err == nil && code != http.StatusTooManyRequests {
						err = fmt.Errorf("a third request at a time is answered with %d", code)
					}
				}
				cancel() // a canceled request releases its place
				if err = errors.Join(err, s.a.await(s.ctx, 0)); err != nil {
					return err
				}
			}
			return eventually(s.ctx, func() error {
				code, err := s.code(s.ctx, "/version")
				if err == nil && code != http.StatusOK {
					err = fmt.Errorf("the answer is %d", code)
				}
				return err
			})
		},
	},
	{
		name: "a client that goes away leaves its watch behind", known: "karmada#4212: watches that never close",
		guard: "the peer's request has the client's context",
		without: func(s *scene) {
			s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				s.proxy.ServeHTTP(w, r.WithContext(context.WithoutCancel(r.Context())))
			})
		},
		try: func(s *scene) error {
			defer close(s.a.release)
			served, asked := make(chan context.Context, 1), make(chan context.Context, 1)
			handler, drop := s.handler, s.proxy.guards.trailers
			s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				served <- r.Context()
				handler.ServeHTTP(w, r)
			})
			s.proxy.guards.trailers = func(out *http.Request) {
				asked <- out.Context()
				drop(out)
			}
			ctx, cancel := context.WithCancel(s.ctx)
			defer cancel()
			done := make(chan struct{})
			go func() {
				defer close(done)
				_ = s.get(ctx, "/api/v1/hang?watch=true")
			}()
			client, peer := <-served, <-asked
			if err := s.a.await(ctx, 1); err != nil {
				return err
			}
			cancel()
			<-done
			<-client.Done()
			select {
			case <-peer.Done():
			case <-time.After(time.Second): // the peer's request ends in the same call as the client's, or never
				return errors.New("nothing can end the peer's request but the peer")
			}
			return s.a.await(s.ctx, 0)
		},
	},
}
