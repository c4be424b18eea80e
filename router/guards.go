// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/region"
)

// guards keep a request from acting as another user, and a credential from reaching the wrong peer. Each guard is a
// separate func, so that a test can disable one guard and check that an attack then succeeds.
type guards struct {
	// Each of these returns an error for one kind of invalid identity.
	nonEmpty, token, unnamed, user, groups, values, keys func(Options, Identity) error

	inbound   func(http.Header)                                    // removes identity headers from a request
	transport func(Identity, *region.Conn) http.RoundTripper       // returns a transport with the credentials for a request
	stream    func(Identity, *rest.Config) *rest.Config            // returns a configuration with the credentials for a stream
	place     func(id Identity, peer region.PeerName) (held error) // returns an error for a peer that must not see the identity
}

// intact returns the guards with each of them enabled.
func intact() guards {
	return guards{
		nonEmpty: checkNonEmpty, token: wholeToken, unnamed: named, user: allowedUser, groups: allowedGroups, values: headerSafe, keys: lowerKeys,
		inbound: StripIdentity, transport: ownCredentials, stream: ownStream, place: rightPeer,
	}
}

// admit returns the error of the first guard that refuses id, or nil if none does. It applies the guards for the kind
// of id; nonEmpty refuses an unknown kind.
func (g *guards) admit(opts Options, id Identity) error {
	checks := []func(Options, Identity) error{g.nonEmpty}
	switch id.kind {
	case caller:
		checks = append(checks, g.token)
	case impersonated:
		checks = append(checks, g.unnamed, g.user, g.groups, g.values, g.keys)
	}
	for _, check := range checks {
		if err := check(opts, id); err != nil {
			return err
		}
	}
	return nil
}

func checkNonEmpty(_ Options, id Identity) error {
	switch id.kind {
	case self, caller, impersonated:
		return nil
	default:
		return fmt.Errorf("%w: none is given; use router.Caller, router.Impersonate or router.Self", ErrIdentity)
	}
}

func wholeToken(_ Options, id Identity) error {
	if id.token == "" || strings.ContainsFunc(id.token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf("%w: the caller's token is empty or holds a character that no bearer token has", ErrIdentity)
	}
	return nil
}

func named(_ Options, id Identity) error {
	if id.user.Name == "" {
		return fmt.Errorf("%w: the name of the user to impersonate is empty; a server would run the request as ourselves", ErrIdentity)
	}
	return nil
}

func allowedUser(opts Options, id Identity) error {
	if !opts.Users(id.user.Name) {
		return fmt.Errorf("%w: user %q may not be impersonated; see router.Options.Users", ErrIdentity, id.user.Name)
	}
	return nil
}

func allowedGroups(opts Options, id Identity) error {
	for _, group := range id.user.Groups {
		if group == "" || !opts.Groups(group) {
			return fmt.Errorf("%w: group %q of user %q may not be impersonated; see router.Options.Groups", ErrIdentity, group, id.user.Name)
		}
	}
	return nil
}

// headerSafe refuses values that a header would change: a filter of groups would accept " system:masters", but the
// server would read "system:masters".
func headerSafe(_ Options, id Identity) error {
	values := slices.Concat([]string{id.user.Name, id.user.UID}, id.user.Groups)
	for _, extra := range id.user.Extra {
		values = append(values, extra...)
	}
	for _, v := range values {
		if strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return fmt.Errorf("%w: user %q: %q holds a control character", ErrIdentity, id.user.Name, v)
		}
		if strings.TrimSpace(v) != v {
			return fmt.Errorf("%w: user %q: %q begins or ends with white space", ErrIdentity, id.user.Name, v)
		}
	}
	return nil
}

// lowerKeys refuses extra keys that are empty or have upper case: servers read keys in lower case, so two keys could
// become one.
func lowerKeys(_ Options, id Identity) error {
	for key := range id.user.Extra {
		if key == "" || key != strings.ToLower(key) {
			return fmt.Errorf("%w: user %q has extra values under the key %q; keys are not empty and in lower case", ErrIdentity, id.user.Name, key)
		}
	}
	return nil
}

// ownCredentials returns the transport for an identity. A caller gets one without our credentials: an API server
// would prefer our client certificate to the caller's token.
func ownCredentials(id Identity, conn *region.Conn) http.RoundTripper {
	if id.kind == caller {
		return conn.CallerTransport()
	}
	return conn.Config().Transport
}

// ownStream returns a configuration that acts as id. It makes the result from c, which has our credentials. For a
// caller, the result has the caller's token in their place.
func ownStream(id Identity, c *rest.Config) *rest.Config {
	switch id.kind {
	case caller:
		c = rest.AnonymousClientConfig(c)
		c.BearerToken = id.token
	case impersonated:
		c.Impersonate = rest.ImpersonationConfig{UserName: id.user.Name, UID: id.user.UID, Groups: slices.Clone(id.user.Groups), Extra: maps.Clone(id.user.Extra)}
	}
	return c
}

// rightPeer refuses to send a token of CallerAt to a peer other than the one that the token is for.
func rightPeer(id Identity, peer region.PeerName) error {
	if id.peer != "" && id.peer != peer {
		return fmt.Errorf("%w: the caller's token is for peer %s only", ErrIdentity, id.peer)
	}
	return nil
}
