// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBelong covers all inputs: the ring that the log entry names, whether the coordinator knows the
// ID of its own ring, whether the operation is effectless (has no effect in any ring), and whether
// the peers show the operation.
func TestBelong(t *testing.T) {
	none, this, other := Origin{}, Origin{Ring: "r", Clusters: map[string]string{"a": "u"}}, Origin{Ring: "s"}
	for _, now := range []Origin{none, this} {
		for _, effectless := range []bool{false, true} {
			for _, found := range []bool{false, true} {
				for _, unread := range []bool{false, true} {
					seen := Sighting{Found: found, Unread: unread}
					// An entry that names a ring is judged by that ring alone.
					require.Equal(t, Belongs, Belong(this, now, effectless, seen))
					foreign := Belongs
					if now.Known() {
						foreign = OfAnother
					}
					require.Equal(t, foreign, Belong(other, now, effectless, seen))

					want := map[[3]bool]Belonging{ // effectless, found, unread
						{false, false, false}: OfAnother,
						{false, false, true}:  Unclear,
					}[[3]bool{effectless, found, unread}]
					require.Equal(t, want, Belong(none, now, effectless, seen), "%+v effectless %t", seen, effectless)
				}
			}
		}
	}
}

// TestEffectless covers all inputs. An operation that may be in effect in a ring is not effectless.
// Neither is an adoption, because its recovery runs it again.
func TestEffectless(t *testing.T) {
	states := []string{"", "committing", string(bringing), string(Aborted), string(Ended), string(InDoubt), string(Committed)}
	for _, action := range []Action{Add, Update, Remove, Move, Adopt} {
		for _, central := range []bool{false, true} {
			for _, committing := range []bool{false, true} {
				for _, committed := range []bool{false, true} {
					for _, undecided := range []bool{false, true} {
						for _, state := range states {
							sent := committing || committed
							if central {
								sent = !undecided // the add's record decides
							}
							if state == string(Aborted) || state == string(Ended) {
								sent = false
							}
							got := Effectless(Operation{Action: action, Central: central}, Record{Committing: committing, Committed: committed}, state, undecided)
							require.Equal(t, !sent && action != Adopt, got, "%s %s central %t committing %t committed %t undecided %t", action, state, central, committing, committed, undecided)
						}
					}
				}
			}
		}
	}
	require.True(t, EffectlessChange(ChangeRecord{}))
	require.False(t, EffectlessChange(ChangeRecord{Anchor: "a"}))
}

// TestShows covers every field in which an operation leaves its ID or its primary's UID, and
// objects without either.
func TestShows(t *testing.T) {
	record := Record{Primary: Ref{Peer: "a", UID: "u"}}
	for name, c := range map[string]struct {
		o    Object
		want bool
	}{
		"an unclaimed object":          {Object{UID: "x"}, false},
		"another operation's":          {Object{UID: "x", Claimed: true, Claim: Claim{Operation: "p", Of: Ref{UID: "y"}}, Removal: "q", Revision: Revision{Operation: "s"}, History: []Revision{{Operation: "t"}}}, false},
		"the primary":                  {Object{UID: "u", Claimed: true, Claim: Claim{Operation: "p"}}, true},
		"the primary, not yet claimed": {Object{UID: "u"}, true},
		"a secondary of it":            {Object{UID: "x", Claimed: true, Claim: Claim{Operation: "p", Of: Ref{UID: "u"}}}, true},
		"its claim":                    {Object{UID: "x", Claimed: true, Claim: Claim{Operation: "o"}}, true},
		"its first attempt's claim":    {Object{UID: "x", Claimed: true, Claim: Claim{Operation: "first"}}, true},
		"its removal":                  {Object{UID: "x", Claimed: true, Removal: "o"}, true},
		"its revision":                 {Object{UID: "x", Claimed: true, Revision: Revision{Operation: "o"}}, true},
		"its revision, overtaken":      {Object{UID: "x", Claimed: true, History: []Revision{{Operation: "p"}, {Operation: "o"}}}, true},
	} {
		require.Equal(t, c.want, c.o.Shows(record, "o", "first"), name)
		require.False(t, c.o.Shows(Record{}, "", ""), "%s: an empty ID or UID matches no object", name)
	}

	set := PeerSet{Self: Member{Peer: "a", UID: "ua"}, Members: []Member{{Peer: "a", UID: "ua"}, {Peer: "b", UID: "ub"}}, Departed: []Departure{{Peer: "c", UID: "uc"}, {Peer: "d"}}}
	change := ChangeOperation{ID: "o", Kind: Join, Peer: "b", UID: "vb"}
	require.False(t, set.Shows(change), "another cluster of the same name")
	for _, id := range []string{"o", "o-1"} {
		held := set
		held.Change.ID = id
		require.True(t, held.Shows(change))
	}
	set.Change.ID = "oo"
	require.False(t, set.Shows(change))
	shown := func(peer, uid string) bool { return set.Shows(ChangeOperation{ID: "o", Peer: peer, UID: uid}) }
	require.Equal(t, []bool{true, true, false, false, false}, slices.Collect(func(yield func(bool) bool) {
		for _, m := range [][2]string{{"b", "ub"}, {"c", "uc"}, {"d", ""}, {"d", "ud"}, {"e", ""}} {
			if !yield(shown(m[0], m[1])) {
				return
			}
		}
	}))
}
