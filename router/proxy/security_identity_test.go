// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router"
)

const version = "GET " + euPath + "/version HTTP/1.1"

// asOurselves repeats a mistake of other proxies: it gives unknown callers the proxy's own rights.
func asOurselves(s *scene) {
	s.proxy.guards.authenticated = func(id router.Identity, err error) (router.Identity, error) {
		if err != nil || id.String() == "nobody" || strings.Contains(id.String(), `""`) {
			return router.Self(), nil
		}
		return id, nil
	}
}

func unstripped(s *scene) { s.proxy.guards.identity = func(http.Header) {} }

// obeyed disables the refusal of requests to act as another user.
func obeyed(s *scene) { s.proxy.guards.impersonation = func(*http.Request) error { return nil } }

// impersonates returns a try func that fails unless every request with the given header is refused: a short
// request, a watch, an upgrade, and a request about all regions.
func impersonates(header string) func(*scene) error {
	return func(s *scene) error {
		single, all := s.proxy, s.proxy.Protect(func(w http.ResponseWriter, _ *http.Request, id router.Identity) error {
			_, err := fmt.Fprint(w, id)
			return err
		})
		s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/regions/*/") {
				all.ServeHTTP(w, r)
			} else {
				single.ServeHTTP(w, r)
			}
		})
		for _, lines := range [][]string{
			{version}, {"GET " + euPath + "/api/v1/pods?watch=1 HTTP/1.1"}, {"GET " + euPath + execPath + " HTTP/1.1", upgrading, websocket},
			{"POST " + euPath + execPath + " HTTP/1.1", upgrading, "Upgrade: SPDY/3.1"}, {"GET /regions/*/api/v1/pods HTTP/1.1"}, {"GET /regions/*/api/v1/pods?watch=1 HTTP/1.1"},
		} {
			got, err := s.send(append(lines, alice, header)...)
			if err != nil {
				return err
			}
			if n := len(s.a.received()); n > 0 || got.code != http.StatusForbidden {
				return fmt.Errorf("it acts as alice: %s is answered with %d", lines[0], got.code)
			}
			if !strings.Contains(got.body, `"kind":"Status"`) || !strings.Contains(strings.ToLower(got.body), "the header impersonate-") {
				return fmt.Errorf("the answer does not name the header: %s", got.body)
			}
		}
		return nil
	}
}

// says returns a try func that opens a stream with the given header lines. The try func fails if a header that the
// peer receives contains the text in wrong, or if the peer does not see exactly the user alice.
func says(header, wrong string) func(*scene) error {
	return func(s *scene) error {
		obeyed(s)
		var lines []string
		if header != "" {
			lines = strings.Split(header, "\n")
		}
		if _, err := s.exec(lines...); err != nil {
			return err
		}
		got, err := s.first()
		if err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(got.header)) {
			for _, v := range got.header[name] {
				if strings.Contains(v, wrong) {
					return fmt.Errorf("the peer sees %s: %s", name, v)
				}
			}
		}
		if user := got.header.Values("Impersonate-User"); len(user) != 1 || user[0] != "alice" {
			return fmt.Errorf("the peer sees the user %q", user)
		}
		return nil
	}
}

var identityChecks = []check{
	{
		name: "no credentials, and a region that is known", known: "karmada#5485: a proxy that falls back to its own rights",
		guard: "authentication fails closed", without: asOurselves,
		try: func(s *scene) error { return s.refused(401, version) },
	},
	{
		name: "an authenticator that returns an empty user", known: "CVE-2026-23990: an empty identity is the operator's",
		guard: "authentication fails closed", without: asOurselves,
		try: func(s *scene) error { return s.refused(401, version, "Authorization: Bearer nobody") },
	},
	{
		name: "a user without a name, with groups", known: "CVE-2026-23990",
		guard: "authentication fails closed; the router refuses empty names", without: asOurselves,
		try: func(s *scene) error { return s.refused(403, version, "Authorization: Bearer unnamed") },
	},
	{
		name: "an authenticator that returns ourselves", known: "CVE-2024-56513, CVE-2023-30622: rights that are not the caller's",
		guard: "authentication fails closed",
		without: func(s *scene) {
			s.proxy.guards.authenticated = func(id router.Identity, err error) (router.Identity, error) { return id, err }
		},
		try: func(s *scene) error { return s.refused(401, version, "Authorization: Bearer ourselves") },
	},
	{
		name: "a list of the regions by an unknown user", known: "enumeration, as kcp's front proxy resists it",
		guard: "authentication comes before look-up", without: asOurselves,
		try: func(s *scene) error {
			return s.refused(401, "GET /regions/nowhere.loodse/version HTTP/1.1")
		},
	},
	{
		name: "a user of the group system:masters", known: "GHSA-c7xh-gjv4-4jgv, kcp#3267: global groups are impersonated",
		guard: "the router's filter of groups",
		without: func(s *scene) {
			all := router.Options{Groups: func(string) bool { return true }}
			if routes, err := router.New(region.Fixed(s.a.conn), all); err == nil {
				s.proxy.regions = newClients(routes)
			}
		},
		try: func(s *scene) error { return s.refused(403, version, "Authorization: Bearer masters") },
	},
	{
		name: "`kubectl --as=root`", known: "Kubernetes refuses a user who may not impersonate; a proxy that drops the header runs the request as the caller, silently",
		guard: "requests that ask to act as another user are refused", without: obeyed, try: impersonates("Impersonate-User: root"),
	},
	{
		name: "`Impersonate-User` without a value", known: "CVE-2026-23990: an empty identity is the operator's",
		guard: "requests that ask to act as another user are refused", without: obeyed, try: impersonates("Impersonate-User:"),
	},
	{
		name: "`--as-group`, in lower case", known: "headers have no case",
		guard: "requests that ask to act as another user are refused", without: obeyed, try: impersonates("impersonate-group: system:masters"),
	},
	{
		name: "`--as-uid`", known: "a UID alone acts as another user too",
		guard: "requests that ask to act as another user are refused", without: obeyed, try: impersonates("IMPERSONATE-UID: 1"),
	},
	{
		name: "`Impersonate-Extra-*`", known: "webhooks authorize by extra values",
		guard: "requests that ask to act as another user are refused", without: obeyed, try: impersonates("Impersonate-Extra-Scopes: all"),
	},
	{
		name: "`Impersonate-User` that is not refused", known: "CVE-2026-23990's cause: client-go keeps an existing header",
		guard: "identity headers are removed", without: unstripped, try: says("Impersonate-User: root", "root"),
	},
	{
		name: "`Impersonate-Group` that is not refused", known: "cluster-proxy#335: Add joins the attacker's group to ours",
		guard: "identity headers are removed", without: unstripped, try: says("impersonate-group: system:masters", "system:masters"),
	},
	{
		name: "`Impersonate-Uid`, `-Extra-*` and future headers of that prefix are not refused", known: "cluster-proxy#335",
		guard: "identity headers are removed", without: unstripped,
		try: says("IMPERSONATE-UID: mallory\nImpersonate-Extra-Scopes: mallory\nImpersonate-New: mallory", "mallory"),
	},
	{
		name: "`X-Remote-User` and `-Group` in a request", known: "GHSA-c8w2-fgvx-vhv4: a full escape of tenants",
		guard: "identity headers are removed", without: unstripped, try: says("X-Remote-User: root\nX-Remote-Group: root", "root"),
	},
	{
		name: "the token for the gateway reaches a peer", known: "client-go's bearer transport keeps an existing header",
		guard: "identity headers are removed", without: unstripped, try: says("", "Bearer alice"),
	},
	{
		name: "a token among the WebSocket subprotocols", known: "Kubernetes takes `base64url.bearer.authorization.k8s.io.*` for a token",
		guard: "identity headers are removed", without: unstripped,
		try: says("Sec-WebSocket-Protocol: v5.channel.k8s.io, base64url.bearer.authorization.k8s.io.cm9vdA", "cm9vdA"),
	},
	{
		name: "a cookie of the gateway reaches a peer", known: "peers do not trust one another",
		guard: "identity headers are removed", without: unstripped, try: says("Cookie: session=secret", "secret"),
	},
	{
		name: "`Impersonate-User` in a trailer", known: "RFC 9110, 6.5.1: a recipient may merge trailers into the header",
		guard:   "trailers are dropped",
		without: func(s *scene) { s.proxy.guards.trailers = func(*http.Request) {} },
		try: func(s *scene) error {
			const body = "2\r\n{}\r\n0\r\nImpersonate-User: root\r\n\r\n"
			if _, err := s.sendBody(body, "POST "+euPath+"/version HTTP/1.1", alice, "Transfer-Encoding: chunked", "Trailer: Impersonate-User"); err != nil {
				return err
			}
			got, err := s.first()
			if err == nil && len(got.trailer) > 0 {
				err = fmt.Errorf("the peer sees the trailer %v", got.trailer)
			}
			return err
		},
	},
	{
		name: "`Connection: Impersonate-User`", known: "GHSA-pvxj-25m6-7vqr, capsule-proxy#188: the proxy removes its own header, and acts as itself",
		guard:   "requests that name other headers to remove are refused; the transport adds the identity",
		without: func(s *scene) { s.proxy.guards.connection = func(*http.Request) error { return nil } },
		try: func(s *scene) error {
			return errors.Join(s.refused(400, version, alice, "Connection: Impersonate-User"),
				s.refused(400, version, alice, "connection: keep-alive,impersonate-group"))
		},
	},
	{
		name: "a caller's own token over our client certificate", known: "API servers prefer the certificate: every caller would be us",
		guard: "callers' connections have no certificate",
		without: func(s *scene) {
			s.proxy.guards.stream = func(c *rest.Config) {
				overHTTP1(c)
				c.CertData = c.CAData
				c.KeyData = s.a.server.TLS.Certificates[0].Certificate[0]
				own, err := s.a.conn.StreamConfig()
				if err == nil {
					c.CertData, c.KeyData = own.CertData, own.KeyData
				}
			}
		},
		try: func(s *scene) error {
			for _, lines := range [][]string{{}, {upgrading, websocket}} {
				got, err := s.send(append([]string{"GET " + euPath + execPath + " HTTP/1.1", "Authorization: Bearer passed-on"}, lines...)...)
				if err != nil {
					return err
				}
				_ = got.conn.Close()
			}
			if n := len(s.a.received()); n != 2 {
				return fmt.Errorf("%d requests reach the peer, want 2", n)
			}
			for _, a := range s.a.received() {
				if a.certificate {
					return errors.New("the peer sees our certificate")
				}
				if got := a.header.Get("Authorization"); got != "Bearer passed-on" {
					return fmt.Errorf("the peer sees %s", got)
				}
			}
			return nil
		},
	},
	{
		name: "the token of one peer is sent to another", known: "a compromised peer collects tokens for use elsewhere",
		guard: "a stream has the credentials of its own peer",
		without: func(s *scene) {
			s.proxy.guards.stream = func(c *rest.Config) {
				overHTTP1(c)
				c.BearerToken = "library-at-peer-a"
			}
		},
		try: func(s *scene) error {
			for _, lines := range [][]string{{}, {upgrading, websocket}} {
				got, err := s.send(append([]string{"GET " + usPath + execPath + " HTTP/1.1", alice}, lines...)...)
				if err != nil {
					return err
				}
				_ = got.conn.Close()
			}
			for _, a := range s.b.received() {
				if got := a.header.Get("Authorization"); got != "Bearer library-at-peer-b" {
					return fmt.Errorf("peer b sees %s", got)
				}
			}
			if n := len(s.b.received()); n != 2 {
				return fmt.Errorf("%d requests reach peer b, want 2", n)
			}
			return nil
		},
	},
	{
		name: "`/peers` by a user who is no operator", known: "tenants see regions, not peers",
		guard:   "the embedding program decides who is an operator; otherwise the path does not exist",
		without: func(s *scene) { s.proxy.guards.operator = func(bool) bool { return true } },
		try:     func(s *scene) error { return s.refused(404, "GET /peers/peer-a/version HTTP/1.1", alice) },
	},
}
