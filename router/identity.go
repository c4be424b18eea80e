// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/atoll-dev/atoll/region"
)

// ErrIdentity says that an identity was refused by this library, before any request: nobody, an empty name, a group that
// may not be impersonated.
var ErrIdentity = errors.New("identity")

// Identity is who a request is made as. The zero value is refused by every call that takes one: there is no default.
type Identity struct {
	kind  identityKind
	token string
	peer  region.PeerName // where the token may be sent; empty: anywhere
	user  User
}

type identityKind int

const (
	nobody identityKind = iota
	self
	caller
	impersonated
)

// User is whom to impersonate.
type User struct {
	Name, UID string
	Groups    []string
	Extra     map[string][]string
}

// Caller passes the caller's own bearer token through; the peer authenticates and authorizes it. The library's
// credentials are not on that connection.
func Caller(token string) Identity { return Identity{kind: caller, token: token} }

// CallerAt is Caller for a token that means something to one peer only, as those of its service accounts do: it is sent
// to no other, also when the region moves there; such requests fail with ErrIdentity.
func CallerAt(peer region.PeerName, token string) Identity {
	return Identity{kind: caller, token: token, peer: peer}
}

// Impersonate makes requests as u, by the library's right to impersonate. An empty name, and a user or group that
// Options.Users or Options.Groups refuses, is an error at Client. u is copied.
func Impersonate(u User) Identity {
	u.Groups = slices.Clone(u.Groups)
	extra := make(map[string][]string, len(u.Extra))
	for key, values := range u.Extra {
		extra[key] = slices.Clone(values)
	}
	u.Extra = extra
	return Identity{kind: impersonated, user: u}
}

// Self makes requests with the library's own rights. It is the only way to them.
func Self() Identity { return Identity{kind: self} }

// String names the identity without any secret.
func (id Identity) String() string {
	switch id.kind {
	case self:
		return "self"
	case caller:
		return "caller"
	case impersonated:
		return fmt.Sprintf("user %q", id.user.Name)
	default:
		return "nobody"
	}
}

// GoString is String, so that %#v shows no token.
func (id Identity) GoString() string { return id.String() }

// check fails closed: what is not known to be right is refused.
func (id Identity) check(opts Options) error {
	switch id.kind {
	case self:
		return nil
	case caller:
		if id.token == "" || strings.ContainsFunc(id.token, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return fmt.Errorf("%w: the caller's token is empty or holds a character that no bearer token has", ErrIdentity)
		}
		return nil
	case impersonated:
		return id.user.check(opts)
	default:
		return fmt.Errorf("%w: none is given; use router.Caller, router.Impersonate or router.Self", ErrIdentity)
	}
}

func (u User) check(opts Options) error {
	if u.Name == "" {
		return fmt.Errorf("%w: the name of the user to impersonate is empty, which a server would take for ourselves", ErrIdentity)
	}
	if !opts.Users(u.Name) {
		return fmt.Errorf("%w: user %q may not be impersonated; see router.Options.Users", ErrIdentity, u.Name)
	}
	for _, group := range u.Groups {
		if group == "" || !opts.Groups(group) {
			return fmt.Errorf("%w: group %q of user %q may not be impersonated; see router.Options.Groups", ErrIdentity, group, u.Name)
		}
	}
	values := slices.Concat([]string{u.Name, u.UID}, u.Groups)
	for key := range maps.Keys(u.Extra) {
		if key == "" || key != strings.ToLower(key) {
			// The server reads keys in lower case: two could become one.
			return fmt.Errorf("%w: user %q has extra values under the key %q; keys are not empty and in lower case", ErrIdentity, u.Name, key)
		}
		values = append(values, u.Extra[key]...)
	}
	for _, v := range values {
		if strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return fmt.Errorf("%w: user %q: %q holds a control character", ErrIdentity, u.Name, v)
		}
		if strings.TrimSpace(v) != v {
			// A header loses it on its way: " system:masters" would pass a filter and arrive as another group.
			return fmt.Errorf("%w: user %q: %q begins or ends with white space", ErrIdentity, u.Name, v)
		}
	}
	return nil
}

// transport carries requests with the credentials that go with id: a caller's token never meets our own, since an API
// server would prefer our client certificate to it.
func (id Identity) transport(conn *region.Conn) http.RoundTripper {
	if id.kind == caller {
		return conn.CallerTransport()
	}
	return conn.Config().Transport
}

// allows says why id may not be sent to peer.
func (id Identity) allows(peer region.PeerName) error {
	if id.peer != "" && id.peer != peer {
		return fmt.Errorf("%w: the caller's token is for peer %s only", ErrIdentity, id.peer)
	}
	return nil
}

// stamp returns the headers that say who id is. They are client-go's own, which escapes keys.
func (id Identity) stamp() http.Header {
	var rt http.RoundTripper
	written := headerRecorder{}
	switch id.kind {
	case caller:
		rt = transport.NewBearerAuthRoundTripper(id.token, written)
	case impersonated:
		rt = transport.NewImpersonatingRoundTripper(transport.ImpersonationConfig{
			UserName: id.user.Name, UID: id.user.UID, Groups: id.user.Groups, Extra: id.user.Extra,
		}, written)
	default:
		return nil
	}
	resp, _ := rt.RoundTrip(&http.Request{Header: http.Header{}}) //nolint:bodyclose // there is none, and no error
	return resp.Header
}

// headerRecorder answers a request with its own headers.
type headerRecorder struct{}

func (headerRecorder) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{Header: req.Header, Body: http.NoBody}, nil
}

// stream makes a plain configuration with our credentials speak as id.
func (id Identity) stream(c *rest.Config) *rest.Config {
	switch id.kind {
	case caller:
		c = rest.AnonymousClientConfig(c)
		c.BearerToken = id.token
	case impersonated:
		c.Impersonate = rest.ImpersonationConfig{UserName: id.user.Name, UID: id.user.UID, Groups: slices.Clone(id.user.Groups), Extra: maps.Clone(id.user.Extra)}
	}
	return c
}
