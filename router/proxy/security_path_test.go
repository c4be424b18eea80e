// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"
	"fmt"
	"net/http"
)

func anything(*http.Request) error { return nil }

// escapes returns a try func that fails if any of the paths is accepted.
func escapes(paths ...string) func(*scene) error {
	return func(s *scene) error {
		for _, path := range paths {
			got, err := s.send("GET "+path+" HTTP/1.1", alice)
			if err != nil {
				return err
			}
			if err := errors.Join(s.a.outside(), s.b.outside()); err != nil {
				return err
			}
			if got.code != 400 {
				return fmt.Errorf("%s is answered with %d", path, got.code)
			}
		}
		return nil
	}
}

var pathChecks = []check{
	{
		name: "`..` in a path", known: "path traversal: our credentials also reach APIs outside the region",
		guard: "dot segments are refused", without: func(s *scene) { s.proxy.guards.traversal = anything },
		try: escapes(euPath+"/../../other/secrets", euPath+"/api/./v1", "/regions/../peers/peer-a"),
	},
	{
		name: "`%2e%2e` in a path", known: "percent-encoded path traversal",
		guard: "dot segments are refused", without: func(s *scene) { s.proxy.guards.traversal = anything },
		try: escapes(euPath+"/%2e%2e/%2E%2e/other/secrets", euPath+"/..;a=b/..;/other", euPath+"/.%2e/other"),
	},
	{
		name: "`%252e`, `%2f`, `%5c`, `%00` in a path", known: "double encoding: a server that decodes again sees another path",
		guard: "encoded separators, percent signs and control characters are refused", without: func(s *scene) { s.proxy.guards.encoding = anything },
		try: escapes(euPath+"/%252e%252e/%252e%252e/other", euPath+"/..%2f..%2fother", euPath+"/..%5c..%5cother", euPath+"/api%00", euPath+"/api%0d%0aHost:x",
			"/regions%2feu-west-1.loodse/api"),
	},
	{
		name: "`//host` in a path", known: "protocol-relative URLs: the next segment is taken for a host",
		guard: "empty segments are refused", without: func(s *scene) { s.proxy.guards.slashes = anything },
		try: escapes(euPath+"//evil.example.com/", "//evil.example.com"+euPath+"/version", "/regions//eu-west-1.loodse/version", euPath+"/api//v1"),
	},
	{
		name: "a target with a host of its own", known: "server-side request forgery: Clusternet takes scheme and host from the path",
		guard: "requests for another server are refused; host and scheme are the peer's", without: func(s *scene) { s.proxy.guards.form = anything },
		try: func(s *scene) error {
			if err := s.refused(400, "GET http://evil.example.com"+euPath+"/version HTTP/1.1", alice); err != nil {
				return err
			}
			if _, err := s.send(version, alice, "Host: evil.example.com"); err != nil {
				return err
			}
			got, err := s.first()
			if err == nil && got.host != s.a.server.Listener.Addr().String() {
				err = fmt.Errorf("the peer is asked as %s", got.host)
			}
			return err
		},
	},
	{
		name: "`TRACE`", known: "cross-site tracing: the peer echoes the credentials that it was sent",
		guard: "only methods of the API are let through", without: func(s *scene) { s.proxy.guards.methods = anything },
		try: func(s *scene) error {
			return errors.Join(s.refused(400, "TRACE "+euPath+"/version HTTP/1.1", alice), s.refused(400, "CONNECT "+euPath+"/version HTTP/1.1", alice))
		},
	},
	{
		name: "`X-Real-Ip`, `X-Forwarded-*`, `X-Http-Method-Override`", known: "audit logs that name any client that the caller chooses",
		guard: "headers about the origin of a request are removed", without: func(s *scene) { s.proxy.guards.origins = func(http.Header) {} },
		try: says("X-Real-Ip: 10.9.8.7\nX-Forwarded-For: 10.9.8.7\nForwarded: for=10.9.8.7\nX-Forwarded-User: 10.9.8.7\nX-Http-Method-Override: 10.9.8.7", "10.9.8.7"),
	},
	{
		name: "a page of another origin writes, or opens a stream", known: "cross-site request forgery and WebSocket hijacking",
		guard: "requests by pages of other origins are refused", without: func(s *scene) { s.proxy.guards.crossSite = anything },
		opts: Options{Origin: func(origin string) bool { return origin == "https://console.example.com" }},
		try: func(s *scene) error {
			const evil = "Origin: https://evil.example.com"
			if err := errors.Join(s.refused(400, "POST "+euPath+"/api HTTP/1.1", alice, evil, "Content-Length: 0"),
				s.refused(400, "GET "+euPath+execPath+" HTTP/1.1", alice, evil, upgrading, websocket),
				s.refused(400, "GET "+euPath+execPath+" HTTP/1.1", alice, "Origin: null", upgrading, websocket)); err != nil {
				return err
			}
			for _, good := range []string{"https://gateway.example.com", "https://console.example.com"} {
				if got, err := s.exec("Origin: " + good); err != nil || got.code != 101 {
					return fmt.Errorf("%s is refused, %w", good, err)
				}
			}
			return nil
		},
	},
}
