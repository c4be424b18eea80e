// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
)

// TestApplied covers the combinations of objects that two peers may hold under one name.
// adoptablePeer returns the peer of an object without a claim, unless that object is being deleted,
// or the other peer holds a primary, a second object without a claim, or an object whose claim
// cannot be read.
func TestApplied(t *testing.T) {
	nothing := met{}
	plain := met{view: protocol.Object{UID: "p"}}
	going := met{view: protocol.Object{UID: "p", Terminating: true}}
	bad := met{bad: errors.New("its claim cannot be read")}
	primary := met{view: protocol.Object{UID: "u", Claimed: true, Stage: protocol.Configured, Claim: protocol.Claim{Primary: true}}}
	reserved := met{view: protocol.Object{UID: "u", Claimed: true, Stage: protocol.Reserved, Claim: protocol.Claim{Primary: true}}}
	guard := met{view: protocol.Object{UID: "u", Claimed: true, Stage: protocol.Reserved}}
	for _, tc := range []struct {
		name string
		a, b met
		want string
	}{
		{"nothing", nothing, nothing, ""},
		{"one", plain, nothing, "a"},
		{"one in the other peer", nothing, plain, "b"},
		{"two", plain, plain, ""},
		{"one, and one that goes", plain, going, ""},
		{"one that goes", going, nothing, ""},
		{"one beside a guard", guard, plain, "b"}, // an operation left the guard: the adoption judges it
		{"one beside a primary", plain, primary, ""},
		{"one beside a reservation", plain, reserved, ""},
		{"one beside what cannot be read", plain, bad, ""},
		{"a guard", guard, nothing, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			key := types.NamespacedName{Name: "some"}
			for _, swap := range []bool{false, true} {
				held, want := map[string]met{"a": tc.a, "b": tc.b}, tc.want
				if swap {
					held["a"], held["b"] = tc.b, tc.a
					want = map[string]string{"": "", "a": "b", "b": "a"}[want]
				}
				for peer, m := range held {
					if m.view.UID == "" && m.bad == nil {
						delete(held, peer)
					}
				}
				s := survey{late: map[types.NamespacedName]map[string]met{key: held}}
				peer, ok := s.adoptablePeer(key)
				require.Equal(t, want, peer)
				require.Equal(t, want != "", ok)
			}
		})
	}
}
