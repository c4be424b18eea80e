// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAHomeThatWasAddedSinceIsNotForgotten runs a Succeed (the election of a home for a replica
// without one) in a process that still works on the rejoin of c after others have finished it. The
// home may have been added in c since the rejoin. So Succeed reads the home after the replica that
// names it, and elects another home only if the home is absent or another object is in its place.
func TestAHomeThatWasAddedSinceIsNotForgotten(t *testing.T) {
	of := Ref{Peer: "c", UID: "h"}
	home := Object{UID: "h", RV: "9", Stage: Active, Claimed: true, Claim: Claim{Primary: true, Operation: "x"}}
	replica := Object{UID: "r", RV: "5", Stage: Active, Claimed: true, Claim: Claim{Operation: "x", Of: of}}
	for name, tc := range map[string]struct {
		home   Reply
		elects bool
	}{
		"it is there":         {Reply{Code: OK, Object: home}, false},
		"it is gone":          {Reply{Code: NotFound}, true},
		"it is a later one":   {Reply{Code: OK, Object: Object{UID: "i", RV: "12", Stage: Active, Claimed: true, Claim: Claim{Primary: true, Operation: "y"}}}, true},
		"it cannot be known":  {Reply{Code: Unavailable}, false},
		"it cannot be read":   {Reply{Code: Denied}, false},
		"its peer is unknown": {Reply{Code: NoSuchPeer}, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := New(Operation{ID: "s", Action: Succeed, Mode: Everywhere, Peers: []string{"a", "b", "c"}, Into: []string{"a", "b"}, Target: "a", Met: replica, Doubted: "c", Patience: Hasty})
			elects := false
			commands := m.Start()
			for n := 0; !m.Over(); n++ {
				require.Less(t, n, 100)
				require.NotEmpty(t, commands)
				c := commands[0]
				commands = commands[1:]
				r := Reply{Class: Applied, Code: OK, Object: c.Object}
				switch {
				case c.Verb == Read && c.Peer == "c":
					r = tc.home
				case c.Verb == Read:
					r = Reply{Code: OK, Object: replica}
				case c.Verb == Put:
					elects = elects || c.Object.Home.Term > 0
				}
				r.Strand, r.Seq = c.Strand, c.Seq
				commands = append(commands, m.Handle(r)...)
			}
			require.Equal(t, tc.elects, elects)
		})
	}
}
