// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFingerprint(t *testing.T) {
	alice := func() User {
		return User{Name: "alice", UID: "1", Groups: []string{"a", "b"}, Extra: map[string][]string{"x": {"1"}, "y": {"2", "3"}}}
	}
	first, second := Impersonate(alice()), Impersonate(alice())
	require.Equal(t, first.Fingerprint(), second.Fingerprint())
	require.Equal(t, Impersonate(User{Name: "a"}).Fingerprint(), Impersonate(User{Name: "a", Extra: map[string][]string{}}).Fingerprint())
	seen := map[string]string{}
	for name, id := range map[string]Identity{
		"nobody": {}, "self": Self(), "caller": Caller("t"), "caller at a peer": CallerAt("a", "t"), "another caller": Caller("u"), "alice": Impersonate(alice()),
		"a name":                Impersonate(User{Name: "alice"}),
		"a uid":                 Impersonate(User{Name: "alice", UID: "a"}),
		"a group":               Impersonate(User{Name: "alice", Groups: []string{"a"}}),
		"two groups":            Impersonate(User{Name: "alice", Groups: []string{"a", "b"}}),
		"a group of both names": Impersonate(User{Name: "alice", Groups: []string{"a b"}}),
		"a quoted group":        Impersonate(User{Name: "alice", Groups: []string{`a" "b`}}),
		"an extra":              Impersonate(User{Name: "alice", Extra: map[string][]string{"a": {"b"}}}),
	} {
		f := id.Fingerprint()
		require.Empty(t, seen[f], "%s and %s", name, seen[f])
		seen[f] = name
		require.NotContains(t, f, "alice")
	}
}
