// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

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

// Flow names whom requests of id count for where callers share something: an impersonated user's name, whatever the groups
// and extra values, or a token's fingerprint. No secret can be read from it.
func (id Identity) Flow() string {
	if id.kind == impersonated {
		return "user " + id.user.Name
	}
	return id.Fingerprint()
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
