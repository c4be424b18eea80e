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

// ErrIdentity means that this library refused an identity before it sent the request. Examples are the zero
// Identity, an empty name, a user or group that may not be impersonated, and a token of CallerAt for another peer.
// Correct the program's use of Caller, Impersonate or Self, or Options.Users and Options.Groups; a retry does not
// help.
var ErrIdentity = errors.New("identity")

// Identity is the identity of a request. The zero value is refused: there is no default.
type Identity struct {
	kind  identityKind
	token string
	peer  region.PeerName // the only peer that may receive the token; empty: any peer
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

// Caller returns the identity of the caller who has the bearer token. The peer itself authenticates the token and
// authorizes the caller. The connection does not carry the library's credentials.
func Caller(token string) Identity { return Identity{kind: caller, token: token} }

// CallerAt is like Caller, for a token that is valid at one peer only, such as a token of a service account of the
// peer. The token is sent to no other peer: if the region moves, requests fail with ErrIdentity.
func CallerAt(peer region.PeerName, token string) Identity {
	return Identity{kind: caller, token: token, peer: peer}
}

// Impersonate returns the identity of the user u. The library acts as u by its right to impersonate. Router.Client
// returns an error if u.Name is empty, if Options.Users refuses the name, if Options.Groups refuses a group, or if a
// header cannot carry one of u's values. u is copied.
func Impersonate(u User) Identity {
	u.Groups = slices.Clone(u.Groups)
	extra := make(map[string][]string, len(u.Extra))
	for key, values := range u.Extra {
		extra[key] = slices.Clone(values)
	}
	u.Extra = extra
	return Identity{kind: impersonated, user: u}
}

// Self returns the identity of the library itself: requests have the library's own rights. No other identity gives
// them.
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

// GoString returns String, so that formatting with %#v reveals no token.
func (id Identity) GoString() string { return id.String() }

// Flow returns the key under which a program counts the requests of id if it limits each caller. For an impersonated
// user, the key contains only the name: it is the same whatever the UID, the groups and the extra values are. For any
// other identity it is the Fingerprint. The key reveals no secret.
func (id Identity) Flow() string {
	if id.kind == impersonated {
		return "user " + id.user.Name
	}
	return id.Fingerprint()
}

// headers returns the headers that carry the identity. It returns nil for Self. The round trippers of client-go write
// these headers, because they escape the keys of extra values.
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
