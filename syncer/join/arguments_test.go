// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package join_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/syncer/join"
)

// If an argument is wrong, the function does not panic, and its error names the argument.
func TestArguments(t *testing.T) {
	t.Parallel()
	api, err := region.APIFor(&rest.Config{Host: "https://upstream.invalid"})
	require.NoError(t, err)
	var nilConn *region.Conn
	approver := func(upstream region.API, opts join.ApproverOptions) func() error {
		return func() error { _, err := join.NewApprover(upstream, opts); return err }
	}
	renewer := func(opts join.RenewerOptions) func() error {
		return func() error { _, err := join.NewRenewer(opts); return err }
	}
	token := func(upstream region.API, target string, opts join.TokenOptions) func() error {
		return func() error { _, err := join.NewToken(t.Context(), upstream, target, opts); return err }
	}
	good := join.RenewerOptions{Target: "a", File: "f"}
	for _, tc := range []struct {
		call, want string
		try        func() error
	}{
		{"no upstream", "the upstream is nil", approver(nil, join.ApproverOptions{})},
		{"typed nil", "the upstream is nil", approver(nilConn, join.ApproverOptions{})},
		{"Longest", "Longest is 1m0s: it must be an hour or more", approver(api, join.ApproverOptions{Longest: time.Minute})},
		{"CallTimeout", "CallTimeout is -1s", approver(api, join.ApproverOptions{CallTimeout: -time.Second, Namespace: "x"})},
		{"zero Approver", "not made by NewApprover", func() error { return new(join.Approver).Start(t.Context()) }},
		{"zero Renewer", "not made by NewRenewer", func() error { return new(join.Renewer).Start(t.Context()) }},
		{"Target", `Target "A" is not the name`, renewer(join.RenewerOptions{Target: "A", File: "f"})},
		{"File", "File is empty", renewer(join.RenewerOptions{Target: "a"})},
		{"Lifetime", "Lifetime is 1m0s: it must be 10m0s or more", func() error { o := good; o.Lifetime = time.Minute; return renewer(o)() }},
		{"RenewAt", "RenewAt is 1: it must be", func() error { o := good; o.RenewAt = 1; return renewer(o)() }},
		{"Poll", "Poll is -1s", func() error { o := good; o.Poll = -time.Second; return renewer(o)() }},
		{"MaxBackoff", "MaxBackoff is 1ms", func() error { o := good; o.MaxBackoff = time.Millisecond; return renewer(o)() }},
		{"no upstream of a token", "the upstream is nil", token(nil, "a", join.TokenOptions{Server: "https://x"})},
		{"token's target", `"A" is not the name of a SyncTarget`, token(api, "A", join.TokenOptions{Server: "https://x"})},
		{"token's server", "TokenOptions.Server is empty", token(api, "a", join.TokenOptions{CA: []byte("x"), Namespace: "x"})},
		{"token's lifetime", "Lifetime is 1m0s: it must be 10m to 24h", token(api, "a", join.TokenOptions{Server: "https://x", Lifetime: time.Minute})},
	} {
		t.Run(tc.call, func(t *testing.T) {
			require.NotPanics(t, func() { require.ErrorContains(t, tc.try(), tc.want) })
		})
	}
}
