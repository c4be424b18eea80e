// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWhoMaySayThatItIsGone: a removal with the Patience Onward may skip an unreachable peer. It
// reports Missing only if another peer proves that no object is committed in the unreachable one. A
// peer proves this if it is an Active member, lists the unreachable peer, and has no guard of the name.
func TestWhoMaySayThatItIsGone(t *testing.T) {
	members := func(state string, peers ...string) Reply {
		set := PeerSet{Self: Member{Peer: "a", State: state}}
		for _, p := range peers {
			set.Members = append(set.Members, Member{Peer: p, State: "Active"})
		}
		return Reply{Class: Applied, Code: OK, PeerSet: set}
	}
	absent := Reply{Class: Applied, Code: NotFound}
	silent := Reply{Code: Unavailable}
	guard := Reply{Class: Applied, Code: OK, Object: Object{
		UID: "g", RV: "1", Claimed: true, Stage: Reserved, Claim: Claim{Operation: "x", Peer: "a", Of: Ref{Peer: "b", UID: "u"}},
	}}
	for name, tc := range map[string]struct {
		patience    Patience
		mode        Mode
		set         Reply
		first, then Reply // the replies of a to reads, before and after its PeerSet
		want        Reason
	}{
		"an Active member that knows the silent one": {Onward, Once, members("Active", "a", "b"), absent, absent, Missing},
		"a member that is not yet one":               {Onward, Once, members("Joining", "a", "b"), absent, absent, Unreachable},
		"a member that does not know the silent one": {Onward, Once, members("Active", "a"), absent, absent, Unreachable},
		"its PeerSet cannot be read":                 {Onward, Once, silent, absent, absent, Unreachable},
		"a guard that came meanwhile":                {Onward, Once, members("Active", "a", "b"), absent, guard, Unreachable},
		"a guard":                                    {Onward, Once, members("Active", "a", "b"), guard, guard, Unreachable},
		"its second answer is lost":                  {Onward, Once, members("Active", "a", "b"), absent, silent, Unreachable},
		"whoever needs every peer":                   {Hasty, Once, members("Active", "a", "b"), absent, absent, Unreachable},
		"what exists everywhere":                     {Onward, Everywhere, members("Active", "a", "b"), absent, absent, Unreachable},
	} {
		t.Run(name, func(t *testing.T) {
			m := New(Operation{ID: "r", Action: Remove, Mode: tc.mode, Peers: []string{"a", "b"}, Patience: tc.patience, Lease: 2})
			reads := 0
			commands := m.Start()
			for n := 0; !m.Over(); n++ {
				require.Less(t, n, 100)
				require.NotEmpty(t, commands)
				c := commands[0]
				var r Reply
				switch {
				case c.Peer == "b":
					r = silent
				case c.Verb == ReadPeerSet:
					r = tc.set
				case c.Verb == Read:
					r = tc.first
					if reads++; reads > 1 {
						r = tc.then
					}
				default: // the log and pauses
					r = Reply{Class: Applied, Code: OK}
				}
				r.Strand, r.Seq = c.Strand, c.Seq
				commands = append(commands[1:], m.Handle(r)...)
			}
			require.Equal(t, Aborted, m.Result.Ending)
			require.Equal(t, tc.want, m.Result.Reason)
			require.Equal(t, "b", m.Result.Peer)
		})
	}
}

// TestARemovalByTheUIDOfAReplica: a removal may name the UID of any replica. The removal reports
// that no peer has the UID only after all peers have replied, in any order.
func TestARemovalByTheUIDOfAReplica(t *testing.T) {
	home := Reply{Class: Applied, Code: OK, Object: Object{
		UID: "h", RV: "1", Claimed: true, Stage: Active, Finalizer: true,
		Claim: Claim{Operation: "x", Peer: "b"}, Home: Home{Ref: Ref{Peer: "b", UID: "h"}, Term: 1},
	}}
	replica := home
	replica.Object.UID, replica.Object.Finalizer = "u", false
	silent := Reply{Code: Unavailable}
	for name, tc := range map[string]struct {
		uid   string
		a     Reply
		found bool
		want  Reason
	}{
		"of a replica":                  {"u", replica, true, ""},
		"of the home":                   {"h", replica, true, ""},
		"of the home, a peer is silent": {"h", silent, true, ""},
		"of none":                       {"z", replica, false, Missing},
		"of none that answers":          {"z", silent, false, Unreachable},
	} {
		for _, order := range [][]string{{"a", "b"}, {"b", "a"}} {
			t.Run(name+", first "+order[0], func(t *testing.T) {
				m := New(Operation{ID: "r", Action: Remove, Mode: Everywhere, UID: tc.uid, Peers: []string{"a", "b"}, Patience: Hasty, Lease: 2})
				commands := m.Start()
				for n := 0; !m.Over() && m.Phase != advancing; n++ {
					require.Less(t, n, 100)
					require.NotEmpty(t, commands)
					next := 0
					for i, c := range commands {
						if c.Peer == order[0] {
							next = i
						}
					}
					c := commands[next]
					commands = append(commands[:next:next], commands[next+1:]...)
					r := Reply{Class: Applied, Code: OK}
					switch c.Peer {
					case "a":
						r = tc.a
					case "b":
						r = home
					}
					r.Strand, r.Seq = c.Strand, c.Seq
					commands = append(commands, m.Handle(r)...)
				}
				require.Equal(t, tc.found, !m.Over())
				require.Equal(t, tc.want, m.Result.Reason)
			})
		}
	}
}
