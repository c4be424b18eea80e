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
)

// ErrIdentity says that an identity was refused by this library, before any request: nobody, an empty name, a group that
// may not be impersonated.
var ErrIdentity = errors.New("identity")

// Identity is who a request is made as. The zero value is refused by every call that takes one: there is no default.
type Identity struct {
	kind  identityKind
	token string
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

// Impersonate makes requests as u, by the library's right to impersonate. An empty name, or a group that Options.Groups
// refuses, is an error at Client. u is copied.
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
func (id Identity) check(groups GroupFilter) error {
	switch id.kind {
	case self:
		return nil
	case caller:
		if id.token == "" || strings.ContainsFunc(id.token, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return fmt.Errorf("%w: the caller's token is empty or holds a character that no bearer token has", ErrIdentity)
		}
		return nil
	case impersonated:
		return id.user.check(groups)
	default:
		return fmt.Errorf("%w: none is given; use router.Caller, router.Impersonate or router.Self", ErrIdentity)
	}
}

func (u User) check(groups GroupFilter) error {
	if u.Name == "" {
		return fmt.Errorf("%w: the name of the user to impersonate is empty, which a server would take for ourselves", ErrIdentity)
	}
	for _, group := range u.Groups {
		if group == "" || !groups(group) {
			return fmt.Errorf("%w: group %q of user %q may not be impersonated; see router.Options.Groups", ErrIdentity, group, u.Name)
		}
	}
	values := slices.Concat([]string{u.Name, u.UID}, u.Groups)
	for key := range maps.Keys(u.Extra) {
		if key == "" {
			return fmt.Errorf("%w: user %q has extra values under an empty key", ErrIdentity, u.Name)
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

// wrap makes own, which carries our credentials, or callers, which carries none, speak as id.
func (id Identity) wrap(own, callers http.RoundTripper) http.RoundTripper {
	switch id.kind {
	case caller:
		return transport.NewBearerAuthRoundTripper(id.token, callers)
	case impersonated:
		return transport.NewImpersonatingRoundTripper(transport.ImpersonationConfig{
			UserName: id.user.Name, UID: id.user.UID, Groups: id.user.Groups, Extra: id.user.Extra,
		}, own)
	default:
		return own
	}
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
