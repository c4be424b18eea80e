// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/internal/docpage"
	"github.com/atoll-dev/atoll/region"
)

// attempt is one attack by a caller of the library, with the guard that prevents it.
type attempt struct {
	name    string
	known   string // an advisory, or the damage that the attack would do
	guard   string
	try     func(*attacked) error // attacks, and returns the damage; nil if the guard prevented it
	without func(*guards)         // disables the guard
}

// attacked is a Router over two peers, a and b. Peer a serves eu, and the Router has a client certificate for peer a.
type attacked struct {
	t      *testing.T
	d      *directory
	routes *Router
	a, b   *server
}

func newAttacked(t *testing.T, without func(*guards)) *attacked {
	t.Helper()
	s := &attacked{t: t, a: newTLSServer(t, "a"), b: newServerWith(t, "b", "library-at-b")}
	s.d = newDirectory(t, s.a, s.b)
	s.d.serve(t, map[region.Key]region.PeerName{eu: "a"})
	s.routes = newRouter(t, s.d, Options{})
	if without != nil {
		without(&s.routes.guards)
	}
	return s
}

// request sends a request as id and returns the request as a peer received it.
func (s *attacked) request(id Identity, header http.Header) (*http.Request, error) {
	c, err := s.routes.Client(eu, id)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, c.Config().Host+"/api/v1/configmaps", http.NoBody)
	require.NoError(s.t, err)
	req.Header = header
	before := s.b.count()
	resp, err := c.Transport().RoundTrip(req)
	if err != nil {
		return nil, err
	}
	require.NoError(s.t, resp.Body.Close())
	if s.b.count() > before {
		return s.b.last(s.t), nil
	}
	return s.a.last(s.t), nil
}

// refusedAs returns an attempt's try func that fails if a request as id reaches a peer.
func refusedAs(id Identity) func(*attacked) error {
	return func(s *attacked) error {
		seen, err := s.request(id, http.Header{})
		if err != nil {
			return nil //nolint:nilerr // the guard prevented the attack
		}
		return fmt.Errorf("the peer is asked by %s", whoAsked(seen))
	}
}

func whoAsked(r *http.Request) string {
	who := "our own credentials"
	if token := r.Header.Get("Authorization"); token != "" && token != "Bearer library" {
		who = "the token " + token
	}
	if user := r.Header.Get("Impersonate-User"); user != "" {
		who = "the user " + user
	}
	if groups := r.Header.Values("Impersonate-Group"); len(groups) > 0 {
		who += fmt.Sprintf(" in the groups %q", groups)
	}
	return who
}

// unseen returns an attempt's try func that fails if the peer sees value in any header.
func unseen(id Identity, name, value string) func(*attacked) error {
	return func(s *attacked) error {
		seen, err := s.request(id, http.Header{name: {value}})
		if err != nil {
			return err
		}
		for header, values := range seen.Header {
			if slices.ContainsFunc(values, func(v string) bool { return strings.Contains(v, value) }) {
				return fmt.Errorf("the peer sees %s: %s", header, strings.Join(values, ", "))
			}
		}
		return nil
	}
}

func allowAll(Options, Identity) error { return nil }

func unfiltered(g *guards) { g.inbound = func(http.Header) {} }

var attempts = []attempt{
	{
		"no user is given", "CVE-2026-23990: an empty identity is the operator's", "the zero Identity is refused",
		refusedAs(Identity{}), func(g *guards) { g.nonEmpty = allowAll },
	},
	{
		"a user without a name, with groups", "CVE-2026-23990", "empty names are refused",
		refusedAs(Impersonate(User{Groups: []string{"dev"}})), func(g *guards) { g.unnamed = allowAll },
	},
	{
		"a user of Kubernetes' own", "service accounts and components of one cluster are not those of another", "users in `system:` are refused",
		refusedAs(Impersonate(User{Name: "system:kube-controller-manager"})), func(g *guards) { g.user = allowAll },
	},
	{
		"the group system:masters", "GHSA-c7xh-gjv4-4jgv, kcp#3267", "groups in `system:` are refused",
		refusedAs(Impersonate(User{Name: "mallory", Groups: []string{"system:masters"}})), func(g *guards) { g.groups = allowAll },
	},
	{
		"a group with a blank before it", "headers lose white space on their way", "values that do not survive a header are refused",
		refusedAs(Impersonate(User{Name: "mallory", Groups: []string{" system:masters"}})), func(g *guards) { g.values = allowAll },
	},
	{
		"extra keys that differ in case", "servers read keys in lower case", "keys are lower case",
		func(s *attacked) error {
			seen, err := s.request(Impersonate(User{Name: "alice", Extra: map[string][]string{"Scopes": {"all"}}}), http.Header{})
			if err != nil {
				return nil //nolint:nilerr // the guard prevented the attack
			}
			return fmt.Errorf("the peer reads the scopes %q", seen.Header.Values("Impersonate-Extra-scopes"))
		},
		func(g *guards) { g.keys = allowAll },
	},
	{
		"a token that contains another one", "a server that splits it elsewhere reads another token", "tokens have only the characters that a token may have",
		refusedAs(Caller("of-alice of-mallory")), func(g *guards) { g.token = allowAll },
	},
	{
		"`Impersonate-User` in a request of ours", "client-go's round tripper keeps an existing header", "identity headers are removed",
		unseen(Self(), "Impersonate-User", "mallory"), unfiltered,
	},
	{
		"`impersonate-group` beside the identity", "cluster-proxy#335: a header that is added to keeps the sender's values", "identity headers are removed",
		unseen(Impersonate(User{Name: "alice"}), "impersonate-group", "system:masters"), unfiltered,
	},
	{
		"`X-Remote-Group` in a request", "GHSA-c8w2-fgvx-vhv4", "identity headers are removed",
		unseen(alice, "X-Remote-Group", "system:masters"), unfiltered,
	},
	{
		"`Authorization` in a request", "client-go's round tripper keeps an existing header, and the peer could use the token", "identity headers are removed",
		unseen(alice, "Authorization", "Bearer inbound"), unfiltered,
	},
	{
		"a cookie in a request", "peers do not trust one another", "identity headers are removed",
		unseen(alice, "Cookie", "session=inbound"), unfiltered,
	},
	{
		"a token among the WebSocket subprotocols", "Kubernetes takes it for a token", "identity headers are removed",
		unseen(alice, "Sec-Websocket-Protocol", bearerProtocol+"aW5ib3VuZA"), unfiltered,
	},
	{
		"`Connection: Impersonate-User`", "GHSA-pvxj-25m6-7vqr, capsule-proxy#188: the next proxy removes the user's header and sends the request as us", "hop-by-hop headers are removed",
		unseen(alice, "Connection", "Impersonate-User"), unfiltered,
	},
	{
		"a caller's own token over our client certificate", "API servers prefer the certificate: every caller would be us", "callers' connections have no certificate",
		func(s *attacked) error {
			seen, err := s.request(Caller("of-alice"), http.Header{})
			if err != nil {
				return err
			}
			if len(seen.TLS.PeerCertificates) > 0 {
				return fmt.Errorf("the peer sees our certificate under alice's token")
			}
			return nil
		},
		func(g *guards) {
			g.transport = func(_ Identity, conn *region.Conn) http.RoundTripper { return withCertificate{conn} }
		},
	},
	{
		"a stream of a caller's with our client certificate", "the upgrade path skips the transport that was configured", "callers' streams have no credentials of ours",
		func(s *attacked) error {
			c, err := s.routes.Client(eu, Caller("of-alice"))
			if err != nil {
				return err
			}
			config, err := c.StreamConfig()
			if err != nil {
				return err
			}
			if len(config.CertData)+len(config.KeyData) > 0 {
				return fmt.Errorf("the stream has our certificate under alice's token")
			}
			return nil
		},
		func(g *guards) {
			g.stream = func(id Identity, c *rest.Config) *rest.Config {
				c.BearerToken = id.token
				return c
			}
		},
	},
	{
		"the token of one peer is sent to another", "a compromised peer collects tokens for use elsewhere", "CallerAt holds a token at its peer",
		func(s *attacked) error {
			s.d.serve(s.t, map[region.Key]region.PeerName{eu: "b"})
			return refusedAs(CallerAt("a", "token-of-a"))(s)
		},
		func(g *guards) { g.place = func(Identity, region.PeerName) error { return nil } },
	},
}

// withCertificate is an incorrect transport: all callers share one connection that has our certificate.
type withCertificate struct{ conn *region.Conn }

func (w withCertificate) RoundTrip(req *http.Request) (*http.Response, error) {
	config, err := w.conn.StreamConfig()
	if err != nil {
		return nil, err
	}
	rt, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	u := *req.URL
	u.Host = strings.TrimPrefix(config.Host, "https://")
	out := req.Clone(req.Context())
	out.URL = &u
	return rt.RoundTrip(out)
}

// TestMutants tries each attack twice. With all guards the attack fails; without its guard it succeeds. If ATOLL_DOCS
// is set, the test writes the table of security.md.
func TestMutants(t *testing.T) {
	var table strings.Builder
	table.WriteString("| attack | known from | guard | finding of the tests without the guard |\n|---|---|---|---|\n")
	for _, a := range attempts {
		t.Run(a.name, func(t *testing.T) {
			require.NoError(t, a.try(newAttacked(t, nil)))
			err := a.try(newAttacked(t, a.without))
			require.Error(t, err, "no test fails without the guard: %s", a.guard)
			found, _, _ := strings.Cut(err.Error(), "\n")
			fmt.Fprintf(&table, "| %s | %s | %s | %s |\n", a.name, a.known, a.guard, found)
		})
	}
	docpage.Section(t, "security.md", "router", table.String())
}
