// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-dev/atoll/router"
)

// FuzzPaths checks that every accepted path stays below its region, however often a server decodes it.
func FuzzPaths(f *testing.F) {
	for _, target := range []string{
		euPath + "/api/v1/pods?limit=1", euPath + "/%2e%2e/x", euPath + "/..%252f..", euPath + "//x", euPath + "/a;b/..;/c", "//x" + euPath, "/regions/a.b%2f..",
		"http://x" + euPath, euPath + "/%5c..%5c", euPath + "/a%00", euPath + "/system%3Anode", "/clusters/a.b/%E2%80%A5/", "*", "/regions/a.b/.%2E/",
	} {
		f.Add(target)
	}
	g := intact(nil)
	p := &Proxy{regions: &clients{}, guards: g}
	f.Fuzz(func(t *testing.T, uri string) {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET " + uri + " HTTP/1.1\r\nHost: x\r\n\r\n")))
		if err != nil || g.admit(r) != nil {
			return
		}
		to, err := p.target(r, router.Identity{})
		if err != nil {
			return
		}
		var u url.URL
		to.locate(&u)
		if u.Host != to.key.String()+".invalid" || to.key.Validate() != nil {
			t.Fatalf("%q goes to %q", uri, u.Host)
		}
		again, err := url.Parse(u.String())
		if err != nil || again.Host != u.Host || again.Path != u.Path || u.EscapedPath() != to.path {
			t.Fatalf("%q is sent as %q, which means %q (%v)", uri, u.String(), u.Path, err)
		}
		for decoded := u.EscapedPath(); ; {
			if strings.Contains(decoded, "//") || strings.Contains(decoded, "\\") {
				t.Fatalf("%q can be decoded as %q", uri, decoded)
			}
			if trimmed := strings.TrimSuffix(decoded, "/"); trimmed != "" && path.Clean(decoded) != trimmed {
				t.Fatalf("%q can be decoded as %q, that is %q", uri, decoded, path.Clean(decoded))
			}
			next, err := url.PathUnescape(decoded)
			if err != nil || next == decoded {
				return
			}
			decoded = next
		}
	})
}

// FuzzHeads checks that no head of a request brings an identity, an origin or an unknown protocol to a peer, also not in an
// upgrade. The oracle reads the head that would be sent, as text.
func FuzzHeads(f *testing.F) {
	upgrade := "Connection: Upgrade\r\nUpgrade: "
	for _, head := range []string{
		"Impersonate-User: root", "impersonate-group:system:masters", "X-Remote-User: root", "Authorization: Bearer x", "Cookie: a=b",
		"Connection: Impersonate-User", "Connection: keep-alive, X-Remote-User\r\nX-Remote-User: root", "Proxy-Connection: upgrade", "Trailer: Impersonate-User",
		"Transfer-Encoding: chunked", "X-Forwarded-For: 1.2.3.4\r\nForwarded: for=1.2.3.4", "X-HTTP-Method-Override: DELETE", "Te: trailers", "Content-Length: 3",
		upgrade + "websocket\r\nSec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.eA, v5.channel.k8s.io", upgrade + "SPDY/3.1\r\nUpgrade: h2c", upgrade + "h2c\r\nHTTP2-Settings: AA",
		upgrade + "websocket\r\nImpersonate-User: root", "Upgrade: websocket", "Connection: upgrade, close\r\nUpgrade: WebSocket", "Origin: https://evil.example.com\r\n" + upgrade + "websocket",
		"X_Remote_User: root", " X-Remote-User: root", "X-Remote-User : root", "Host: x\r\nHost: y",
	} {
		f.Add(http.MethodGet, head)
		f.Add(http.MethodPost, head)
	}
	g := intact(nil)
	p := &Proxy{regions: &clients{}, guards: g, buffers: &buffers{}}
	f.Fuzz(func(t *testing.T, method, head string) {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(method + " " + euPath + "/api/v1/pods HTTP/1.1\r\nHost: gateway.example.com\r\n" + head + "\r\n\r\n")))
		if err != nil || g.admit(r) != nil {
			return
		}
		to, err := p.target(r, router.Identity{})
		if err != nil {
			t.Fatal(err)
		}
		upgrade := upgradeOf(r.Header)
		sent := ""
		x := &exchange{proxy: p, target: to, upgrade: upgrade, event: &Event{AuditID: "audit"}, accepted: func(*http.Response) error { return nil }}
		x.transport = sends(func(out *http.Request) {
			if data, err := httputil.DumpRequestOut(out, false); err == nil {
				sent = string(data)
			}
		})
		r.RemoteAddr = "192.0.2.1:1"
		x.run(httptest.NewRecorder(), r)
		if sent == "" {
			return // the reverse proxy refuses it, or net/http does
		}
		if problem := smuggled(sent, upgrade); problem != "" {
			t.Fatalf("%s\n%q is sent as %q", problem, head, sent)
		}
	})
}

// smuggled returns the first line of a request to a peer that must not be in it; empty if all lines may.
func smuggled(head, upgrade string) string {
	lines := strings.Split(head, "\r\n")
	for _, line := range lines[1:] {
		name, value, _ := strings.Cut(strings.ToLower(line), ":")
		value = strings.TrimSpace(value)
		switch name = strings.TrimSpace(name); {
		case strings.HasPrefix(name, "impersonate-"), strings.HasPrefix(name, "x-remote-"), name == "authorization", name == "proxy-authorization", name == "cookie",
			name == "trailer", name == "http2-settings", name == "sec-websocket-protocol" && strings.Contains(line, "base64url.bearer.authorization.k8s.io."):
			return "it has an identity: " + line
		case slices.Contains([]string{"forwarded", "x-real-ip", "x-http-method", "x-http-method-override", "x-method-override", "x-original-url", "x-rewrite-url"}, name),
			name == "x-forwarded-for" && value != "192.0.2.1":
			return "it claims an origin or a method: " + line
		case name == "upgrade" && value != "websocket" && value != "spdy/3.1", name == "upgrade" && upgrade == "":
			return "it upgrades to another protocol: " + line
		case name == "connection" && value != "upgrade" && value != "close":
			return "it names other headers: " + line
		case name == "host" && value != eu.String()+".invalid":
			return "it is for another host: " + line
		}
	}
	return ""
}

// sends is a transport that passes the request on and answers 200.
type sends func(*http.Request)

func (s sends) RoundTrip(r *http.Request) (*http.Response, error) {
	s(r)
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Header: http.Header{}, Request: r}, nil
}
