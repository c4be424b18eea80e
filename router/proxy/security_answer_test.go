// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

var answerChecks = []check{
	{
		name: "a peer sets cookies and policies", known: "peers do not trust one another, and share one address here",
		guard: "headers that a browser would keep for the address are removed", without: func(s *scene) { s.proxy.guards.answer = func(http.Header) {} },
		try: func(s *scene) error {
			got, err := s.send("GET "+euPath+"/browser HTTP/1.1", alice)
			if err != nil {
				return err
			}
			for _, name := range []string{"Set-Cookie", "Alt-Svc", "Access-Control-Allow-Origin", "Strict-Transport-Security", "Refresh", "Clear-Site-Data"} {
				if got.header.Get(name) != "" {
					return fmt.Errorf("the client sees the peer's %s", name)
				}
			}
			return nil
		},
	},
	{
		name: "a peer sets cookies in an early hint", known: "informational responses pass httputil.ReverseProxy unchanged",
		guard: "informational answers are dropped", without: func(s *scene) { s.proxy.guards.hints = func(w http.ResponseWriter) http.ResponseWriter { return w } },
		try: func(s *scene) error {
			got, err := s.send("GET "+euPath+"/hints HTTP/1.1", alice)
			if err == nil && got.code != http.StatusOK {
				err = fmt.Errorf("the client sees a %d of the peer's, with Set-Cookie: %s", got.code, got.header.Get("Set-Cookie"))
			}
			return err
		},
	},
	{
		name: "an error names peers and other regions", known: "tenants learn names and addresses of peers",
		guard: "errors have texts of the proxy's own",
		without: func(s *scene) {
			s.proxy.guards.explain = func(err error) refusal { return refusal{explain(err).code, err.Error()} }
		},
		try: func(s *scene) error {
			s.b.server.CloseClientConnections()
			s.b.server.Close()
			for _, path := range []string{"/regions/nowhere.loodse/version", usPath + "/version", euPath + "/redirect"} {
				got, err := s.send("GET "+path+" HTTP/1.1", alice)
				if err != nil {
					return err
				}
				for _, secret := range []string{"peer-", "127.0.0.1", "us-east-1", "library", "evil"} {
					if strings.Contains(got.body, secret) {
						return fmt.Errorf("the answer for %s has %q in it", path, secret)
					}
				}
			}
			return nil
		},
	},
	{
		name: "secrets in a log", known: "cluster-proxy prints bearer tokens at -v=4",
		guard: "log lines have the path, and neither query nor headers", without: func(s *scene) {
			s.proxy.guards.loggable = func(r *http.Request) string { return r.URL.String() + " " + fmt.Sprint(r.Header) }
		},
		try: func(s *scene) error {
			for _, lines := range [][]string{
				{"GET " + euPath + execPath + "?command=--password%3Dhunter2 HTTP/1.1", alice, upgrading, websocket, "Cookie: session=hunter2"},
				{"GET " + euPath + "/cut?token=hunter2 HTTP/1.1", "Authorization: Bearer passed-on-hunter2"},
				{"GET " + euPath + "/redirect?token=hunter2 HTTP/1.1", alice},
				{"GET " + euPath + "/version?token=hunter2 HTTP/1.1", "Authorization: Bearer hunter2"},
			} {
				got, err := s.send(lines...)
				if err != nil {
					return err
				}
				_ = got.conn.Close()
			}
			if err := eventually(s.ctx, func() error {
				if n := strings.Count(s.logged(), `"request"`); n != 4 {
					return fmt.Errorf("%d of 4 requests are logged", n)
				}
				return nil
			}); err != nil {
				return err
			}
			for _, secret := range []string{"hunter2", "library", "Bearer", "token-of-mallory"} {
				if strings.Contains(s.logged(), secret) {
					return fmt.Errorf("the log has %q in it", secret)
				}
			}
			return nil
		},
	},
	{
		name: "an answer that the peer cuts short", known: "absence is not deletion: half a list is no list",
		guard: "an answer that the peer cuts short is cut short for the client",
		without: func(s *scene) {
			s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer func() { _ = recover() }()
				s.proxy.ServeHTTP(w, r)
			})
		},
		try: func(s *scene) error {
			got, err := s.send("GET "+euPath+"/cut HTTP/1.1", alice)
			if err != nil {
				return err
			}
			if got.err == nil {
				return fmt.Errorf("%q looks like a whole answer", got.body)
			}
			return nil
		},
	},
	{
		name: "two requests in one, by `Content-Length` and `Transfer-Encoding`", known: "request smuggling, CVE-2019-16276 and others",
		guard: "net/http: an ambiguous request is refused, or parsed once and written anew",
		try: func(s *scene) error {
			const body = "0\r\n\r\nGET /tenant/api/v1/secrets HTTP/1.1\r\nHost: peer\r\n\r\n"
			for _, lines := range [][]string{
				{"Content-Length: 4", "Transfer-Encoding: chunked"}, {"Content-Length: 4", "Content-Length: 60"}, {"Transfer-Encoding : chunked"},
				{"Transfer-Encoding: xchunked"}, {"Content-Length: +4"},
			} {
				got, err := s.sendBody(body, append([]string{"POST " + euPath + "/version HTTP/1.1", alice, "Connection: close"}, lines...)...)
				if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, bufio.ErrBufferFull) {
					return err
				}
				_ = got
				for _, a := range s.a.received() {
					if a.uri != base+"/version" {
						return fmt.Errorf("the peer is asked for %s", a.uri)
					}
				}
			}
			return nil
		},
	},
}
