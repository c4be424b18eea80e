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

// ErrIdentity means that this library refused an identity before any request: the zero Identity, an empty name, or a
// user or group that may not be impersonated.
var ErrIdentity = errors.New("identity")

// Identity is the identity of a request. Every call that takes one refuses the zero value: there is no default.
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

// User is a user to impersonate.
type User struct {
	Name, UID string
	Groups    []string
	Extra     map[string][]string
}

// Caller passes the caller's own bearer token to the peer, which authenticates and authorizes it. The connection does
// not carry the library's credentials.
func Caller(token string) Identity { return Identity{kind: caller, token: token} }

// CallerAt is Caller for a token that is valid at one peer only, as the tokens of its service accounts are. The token
// is sent to no other peer: if the region moves, requests fail with ErrIdentity.
func CallerAt(peer region.PeerName, token string) Identity {
	return Identity{kind: caller, token: token, peer: peer}
}

// Impersonate makes requests as u, with the library's right to impersonate. An empty name, and a user or group that
// Options.Users or Options.Groups refuses, is an error of Router.Client. u is copied.
func Impersonate(u User) Identity {
	u.Groups = slices.Clone(u.Groups)
	extra := make(map[string][]string, len(u.Extra))
	for key, values := range u.Extra {
		extra[key] = slices.Clone(values)
	}
	u.Extra = extra
	return Identity{kind: impersonated, user: u}
}

// Self makes requests with the library's own rights. No other identity does.
func Self() Identity { return Identity{kind: self} }

// String returns a name of the identity without any secret.
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

// GoString returns String, so that %#v shows no token.
func (id Identity) GoString() string { return id.String() }

// Flow returns the key under which requests of id are counted where callers share a limit: an impersonated user's
// name, whatever the groups and extra values, or a token's fingerprint. It reveals no secret.
func (id Identity) Flow() string {
	if id.kind == impersonated {
		return "user " + id.user.Name
	}
	return id.Fingerprint()
}

// headers returns the headers that carry the identity. client-go's round trippers write them, since they escape keys.
func (id Identity) headers() http.Header {
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
	resp, _ := rt.RoundTrip(&http.Request{Header: http.Header{}}) //nolint:bodyclose // no body and no error
	return resp.Header
}

// headerRecorder returns a request's headers as those of the response.
type headerRecorder struct{}

func (headerRecorder) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{Header: req.Header, Body: http.NoBody}, nil
}
