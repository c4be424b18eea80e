// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/region"
)

// Most tests below repeat an attack by which other programs were made to act as another user, or to disclose a
// credential.

// asked sends a request with the given headers as id, and returns the headers that the peer received.
func asked(t *testing.T, id Identity, header http.Header) http.Header {
	t.Helper()
	s := newServer(t, "a")
	d := newDirectory(t, s)
	d.serve(t, map[region.Key]region.PeerName{eu: "a"})
	c, err := newRouter(t, d, Options{}).Client(eu, id)
	require.NoError(t, err)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.Config().Host+"/api/v1/configmaps", http.NoBody)
	require.NoError(t, err)
	req.Header = header
	resp, err := c.Transport().RoundTrip(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	got := s.last(t).Header
	got.Del("Accept-Encoding")
	got.Del("User-Agent")
	return got
}

var alice = Impersonate(User{Name: "alice", Groups: []string{"dev"}})

func refused(t *testing.T, opts Options, id Identity) string {
	t.Helper()
	c, err := newRouter(t, newDirectory(t), opts).Client(eu, id)
	require.ErrorIs(t, err, ErrIdentity)
	require.Nil(t, c)
	return err.Error()
}

// CVE-2026-23990: a client without a user impersonates no user, and so acts as the program itself.
func TestAnEmptyIdentityIsNotTheLibrarys(t *testing.T) {
	refused(t, Options{}, Identity{})
	refused(t, Options{}, Impersonate(User{}))
	refused(t, Options{}, Impersonate(User{Groups: []string{"dev"}, UID: "1"}))
	refused(t, Options{}, Caller(""))
	refused(t, Options{}, Caller(" "))
	refused(t, Options{Map: func(region.Key, User) (User, error) { return User{}, nil }}, alice)
}

// client-go's impersonating round tripper keeps an existing Impersonate-User header, so the Router removes the header
// first.
func TestAnInboundUserDoesNotWin(t *testing.T) {
	for _, name := range []string{"Impersonate-User", "impersonate-user", "IMPERSONATE-USER"} {
		got := asked(t, alice, http.Header{name: {"root"}})
		require.Equal(t, []string{"alice"}, got.Values("Impersonate-User"), name)
		require.Empty(t, asked(t, Self(), http.Header{name: {"root"}}).Values("Impersonate-User"), name)
	}
}

// client-go's bearer round tripper keeps an existing Authorization header, so the Router removes the header first.
func TestAnInboundTokenIsNotSent(t *testing.T) {
	for id, want := range map[string]Identity{"Bearer library": alice, "Bearer of-alice": Caller("of-alice")} {
		require.Equal(t, []string{id}, asked(t, want, http.Header{"Authorization": {"Bearer inbound"}}).Values("Authorization"))
		require.Equal(t, []string{id}, asked(t, want, http.Header{"authorization": {"Basic aW5ib3VuZA=="}}).Values("Authorization"))
	}
	require.Empty(t, asked(t, alice, http.Header{"Cookie": {"session=inbound"}}).Values("Cookie"))
}

// GHSA-c8w2-fgvx-vhv4 and open-cluster-management-io/cluster-proxy#335: a proxy adds values to the identity headers
// of a request, and the values that the sender has set stay.
func TestInboundGroupsAreNotAddedTo(t *testing.T) {
	got := asked(t, alice, http.Header{
		"Impersonate-Group": {"system:masters"}, "impersonate-group": {"ops"}, "Impersonate-Uid": {"0"}, "Impersonate-Extra-Scopes": {"all"},
		"X-Remote-User": {"root"}, "X-Remote-Group": {"system:masters"}, "X-Remote-Extra-Scopes": {"all"},
	})
	require.Equal(t, http.Header{"Authorization": {"Bearer library"}, "Impersonate-User": {"alice"}, "Impersonate-Group": {"dev"}}, got)
}

// GHSA-pvxj-25m6-7vqr and projectcapsule/capsule-proxy#188: a request with "Connection: Impersonate-User" makes a
// proxy remove the header that the proxy has just set.
func TestConnectionDoesNotRemoveTheIdentity(t *testing.T) {
	got := asked(t, alice, http.Header{"Connection": {"Impersonate-User, Impersonate-Group, Authorization"}, "Te": {"trailers"}})
	require.Equal(t, http.Header{"Authorization": {"Bearer library"}, "Impersonate-User": {"alice"}, "Impersonate-Group": {"dev"}}, got)
}

// GHSA-c7xh-gjv4-4jgv: a caller impersonates groups that have rights in every cluster.
func TestPrivilegedGroupsAreRefused(t *testing.T) {
	for _, group := range []string{"system:masters", "system:nodes", "system:authenticated", "system:serviceaccounts"} {
		require.Contains(t, refused(t, Options{}, Impersonate(User{Name: "alice", Groups: []string{"dev", group}})), group)
	}
}

func TestPrivilegedUsersAreRefused(t *testing.T) {
	for _, name := range []string{"system:admin", "system:kube-controller-manager", "system:node:a", "system:serviceaccount:kube-system:default"} {
		require.Contains(t, refused(t, Options{}, Impersonate(User{Name: name})), name)
	}
	d := newDirectory(t)
	_, err := newRouter(t, d, Options{Users: func(name string) bool { return name == "system:admin" }}).Client(eu, Impersonate(User{Name: "system:admin"}))
	require.NoError(t, err)
}

// A server removes the white space around the value of a header, and a line break in a value begins another header.
func TestNamesThatAreOtherNamesAsHeaders(t *testing.T) {
	for _, name := range []string{" system:masters", "dev ", "dev\r\nImpersonate-Group: system:masters", "\tdev", "dev\x00"} {
		refused(t, Options{}, Impersonate(User{Name: "alice", Groups: []string{name}}))
		refused(t, Options{}, Impersonate(User{Name: name}))
		refused(t, Options{}, Impersonate(User{Name: "alice", UID: name}))
		refused(t, Options{}, Impersonate(User{Name: "alice", Extra: map[string][]string{"a": {name}}}))
		refused(t, Options{}, Caller(name))
	}
}

// Servers read the keys of extra values in lower case, so that "A" and "a" would become one key.
func TestExtraKeysAreWhatTheServerReads(t *testing.T) {
	refused(t, Options{}, Impersonate(User{Name: "alice", Extra: map[string][]string{"Scopes": {"a"}}}))
	refused(t, Options{}, Impersonate(User{Name: "alice", Extra: map[string][]string{"": {"a"}}}))
	got := asked(t, Impersonate(User{Name: "alice", Extra: map[string][]string{"example.com/a b": {"c"}}}), http.Header{})
	require.Equal(t, []string{"c"}, got.Values("Impersonate-Extra-Example.com%2fa%20b"))
}

// Service accounts and system groups of one cluster do not count as those of another.
func TestUsersOfAnotherClusterAreNotThePeers(t *testing.T) {
	opts := Options{Map: PrefixSystem("hub:")}
	s := newServer(t, "a")
	d := newDirectory(t, s)
	d.serve(t, map[region.Key]region.PeerName{eu: "a"})
	deployer := User{Name: "system:serviceaccount:ci:deployer", Groups: []string{"system:serviceaccounts", "dev"}}
	c, err := newRouter(t, d, opts).Client(eu, Impersonate(deployer))
	require.NoError(t, err)
	_, err = c.Dynamic().Resource(configMaps).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Equal(t, "hub:system:serviceaccount:ci:deployer", s.last(t).Header.Get("Impersonate-User"))
	require.Equal(t, []string{"hub:system:serviceaccounts", "dev"}, s.last(t).Header.Values("Impersonate-Group"))
	require.Equal(t, "system:serviceaccount:ci:deployer", deployer.Name)
	require.Equal(t, "system:serviceaccounts", deployer.Groups[0])

	for _, prefix := range []string{"", "system:hub:"} {
		refused(t, Options{Map: PrefixSystem(prefix)}, alice)
	}
	nobody := Options{Map: func(k region.Key, _ User) (User, error) { return User{}, fmt.Errorf("not in %s", k) }}
	require.Contains(t, refused(t, nobody, alice), "not in eu-west-1.loodse")
	masters := Options{Map: func(_ region.Key, u User) (User, error) {
		u.Groups = []string{"system:masters"}
		return u, nil
	}}
	refused(t, masters, alice)
}

// CVE-2022-3172, CVE-2018-1002102: a redirect by a peer would send the credentials to a host of its choice.
func TestARedirectIsNotFollowed(t *testing.T) {
	for _, code := range []int{301, 302, 303, 307, 308} {
		reached := false
		elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
		s := newServer(t, "a")
		s.redirect = http.RedirectHandler(elsewhere.URL, code)
		d := newDirectory(t, s)
		d.serve(t, map[region.Key]region.PeerName{eu: "a"})
		for _, id := range []Identity{alice, Caller("of-alice"), Self()} {
			c, err := newRouter(t, d, Options{}).Client(eu, id)
			require.NoError(t, err)
			_, err = c.Dynamic().Resource(configMaps).List(t.Context(), metav1.ListOptions{})
			require.ErrorContains(t, err, "redirect")
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.Config().Host+"/api", http.NoBody)
			require.NoError(t, err)
			_, err = c.HTTPClient().Do(req) //nolint:bodyclose // no response
			require.ErrorContains(t, err, "redirect")
		}
		require.False(t, reached)
		elsewhere.Close()
	}
}

// Credentials for one peer are not sent to another, even if the region moves.
func TestCredentialsOfOnePeerStayThere(t *testing.T) {
	a, b := newServerWith(t, "a", "library-at-a"), newServerWith(t, "b", "library-at-b")
	d := newDirectory(t, a, b)
	r := newRouter(t, d, Options{})
	c, err := r.Client(eu, alice)
	require.NoError(t, err)
	pinned, err := r.Client(eu, CallerAt("a", "token-of-a"))
	require.NoError(t, err)
	for range 3 {
		for _, s := range []*server{a, b} {
			d.serve(t, map[region.Key]region.PeerName{eu: s.conn.Peer()})
			_, err = c.Dynamic().Resource(configMaps).List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			require.Equal(t, "Bearer library-at-"+string(s.conn.Peer()), s.last(t).Header.Get("Authorization"))

			_, err = pinned.Dynamic().Resource(configMaps).List(t.Context(), metav1.ListOptions{})
			_, streamed := pinned.StreamConfig()
			if s == a {
				require.NoError(t, err)
				require.NoError(t, streamed)
				continue
			}
			require.ErrorIs(t, err, ErrIdentity)
			require.ErrorIs(t, streamed, ErrIdentity)
		}
	}
	for _, req := range b.requests {
		require.NotContains(t, req.Header.Get("Authorization"), "of-a")
		require.NotContains(t, req.Header.Get("Authorization"), "at-a")
	}
}

// An API server prefers a client certificate to a token: with our certificate, a request with alice's token would
// have our rights.
func TestACallersTokenNeverMeetsOurCertificate(t *testing.T) {
	var certificates int
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		certificates = len(r.TLS.PeerCertificates)
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{},"items":[]}`)
	}))
	s.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS13}
	s.StartTLS()
	defer s.Close()
	certificate, key := clientCertificate(t)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	creds, err := region.FromConfig(&rest.Config{Host: s.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca, CertData: certificate, KeyData: key}})
	require.NoError(t, err)
	conn, err := region.NewConn(region.Peer{Name: "a", Regions: []region.Key{eu}, Credentials: creds}, region.ConnOptions{})
	require.NoError(t, err)
	defer conn.Close()
	r := newRouter(t, region.Fixed(conn), Options{})
	for _, tt := range []struct {
		id   Identity
		want int
	}{{Self(), 1}, {alice, 1}, {Caller("of-alice"), 0}} {
		c, err := r.Client(eu, tt.id)
		require.NoError(t, err)
		_, err = c.Dynamic().Resource(configMaps).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		require.Equal(t, tt.want, certificates, tt.id)
		stream, err := c.StreamConfig()
		require.NoError(t, err)
		require.Equal(t, tt.want == 1, len(stream.CertData) > 0, tt.id)
		require.Equal(t, tt.want == 1, len(stream.KeyData) > 0, tt.id)
	}
}

// open-cluster-management-io/cluster-proxy printed tokens at -v=4. Here no text of an Identity, an error or an
// Explanation contains one.
func TestNoTokenIsShown(t *testing.T) {
	const secret = "very-secret"
	d := newDirectory(t)
	creds, err := region.FromConfig(&rest.Config{Host: "https://a", BearerToken: secret, Transport: refusing{}})
	require.NoError(t, err)
	conn, err := region.NewConn(region.Peer{Name: "a", Credentials: creds}, region.ConnOptions{})
	require.NoError(t, err)
	d.conns["a"] = conn
	d.serve(t, map[region.Key]region.PeerName{eu: "a"})
	r := newRouter(t, d, Options{})
	for _, id := range []Identity{Caller(secret), CallerAt("a", secret), CallerAt("b", secret), Caller(secret + "\n"), Self()} {
		shown := []any{id, id.String(), fmt.Sprintf("%#v", id)}
		if c, err := r.Client(eu, id); err != nil {
			shown = append(shown, err)
		} else {
			_, err := c.Dynamic().Resource(configMaps).List(t.Context(), metav1.ListOptions{})
			require.Error(t, err)
			shown = append(shown, err, errors.Unwrap(err), c.Region())
		}
		shown = append(shown, r.Explain(t.Context(), eu))
		for _, v := range shown {
			for _, format := range []string{"%v", "%+v", "%s", "%q"} {
				require.NotContains(t, fmt.Sprintf(format, v), secret, "%T", v)
			}
		}
	}
}

// The Router keeps neither state nor a budget for a region that has left.
func TestNothingIsKeptOfRegionsThatLeft(t *testing.T) {
	a, b := newServer(t, "a"), newServer(t, "b")
	d := newDirectory(t, a, b)
	r := newRouter(t, d, Options{})
	for i := range 50 {
		k := region.Key{Provider: "loodse", Name: fmt.Sprintf("r-%d", i)}
		for _, peer := range []region.PeerName{"a", "b"} { // the region moves from a to b
			d.serve(t, map[region.Key]region.PeerName{k: peer, eu: "a"})
			c, err := r.Client(k, alice)
			require.NoError(t, err)
			_, err = c.Dynamic().Resource(configMaps).List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
		}
	}
	d.serve(t, map[region.Key]region.PeerName{eu: "a"})
	require.Len(t, r.Routes(), 1)
	require.Len(t, r.table.Load().routes, 1, "budgets")
	require.Empty(t, r.moves)
	require.Empty(t, r.learned)
	require.Empty(t, r.asker.flights)
}
