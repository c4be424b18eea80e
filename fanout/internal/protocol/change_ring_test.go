// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// ringOf returns the PeerSets of Active members, each with its ring ID in ids.
func ringOf(ids map[string]string) map[string]*PeerSet {
	var members []Member
	for peer := range ids {
		members = append(members, Member{Peer: peer, UID: "u" + peer, State: peerActive})
	}
	slices.SortFunc(members, func(a, b Member) int { return strings.Compare(a.Peer, b.Peer) })
	sets := map[string]*PeerSet{}
	for _, m := range members {
		sets[m.Peer] = &PeerSet{UID: "s" + m.Peer, RV: "1", Ring: ids[m.Peer], Self: m, Members: members, Epoch: 1}
	}
	return sets
}

// carryThrough runs a change to its end against PeerSets, in peers that hold no objects.
func carryThrough(t *testing.T, c *Change, sets map[string]*PeerSet) ChangeResult {
	t.Helper()
	queue := c.Start()
	for n := 0; len(queue) > 0; n++ {
		require.Less(t, n, 1000)
		cmd := queue[0]
		queue = queue[1:]
		r := Reply{Strand: cmd.Strand, Seq: cmd.Seq, Class: Applied, Code: OK}
		switch set := sets[cmd.Peer]; {
		case cmd.Verb == ReadPeerSet && set == nil:
			r.Code = NotFound
		case cmd.Verb == ReadPeerSet:
			r.PeerSet = *set
		case cmd.Verb == PutPeerSet:
			next := *cmd.Set
			if set != nil {
				require.Equal(t, set.RV, cmd.RV)
				require.Contains(t, []int64{set.Epoch + 1, nextLife(set.Epoch) + 1}, next.Epoch)
				require.True(t, set.Ring == "" || set.Ring == next.Ring, "%s of %s became %q", set.Ring, cmd.Peer, next.Ring)
			}
			next.RV = fmt.Sprintf("n%s%d", cmd.Peer, next.Epoch)
			sets[cmd.Peer] = &next
			r.PeerSet = next
		}
		if cmd.Verb == Sleep && c.settled() {
			continue // a heartbeat, which this test does not need
		}
		queue = append(queue, c.Handle(r)...)
	}
	require.True(t, c.Over())
	return c.Result
}

// TestAChangeKeepsTheRing: a newcomer gets the ring's ID, keeps it when it leaves, and still
// has it when it rejoins.
func TestAChangeKeepsTheRing(t *testing.T) {
	sets := ringOf(map[string]string{"a": "r1", "b": "r1"})
	run := func(kind ChangeKind, uid string, peers ...string) ChangeResult {
		return carryThrough(t, NewChange(ChangeOperation{ID: "x" + string(kind), Kind: kind, Peer: "c", UID: uid, Peers: peers, By: "me", Lease: 2}), sets)
	}
	require.Equal(t, Done, run(Join, "uc", "a", "b", "c").Ending)
	require.Equal(t, "r1", sets["c"].Ring)
	require.Equal(t, Done, run(Leave, "uc", "a", "b", "c").Ending)
	for _, p := range []string{"a", "b", "c"} {
		require.Equal(t, "r1", sets[p].Ring, p)
		require.Equal(t, []Departure{{Peer: "c", UID: "uc", How: "Left"}}, withoutBy(sets[p].Departed), p)
	}
	require.Equal(t, Done, run(Return, "uc", "a", "b", "c").Ending)
	require.Equal(t, Done, run(Force, "", "a", "b").Ending)
	for _, p := range []string{"a", "b"} {
		require.Equal(t, []Departure{{Peer: "c", UID: "uc", How: "Forced"}}, withoutBy(sets[p].Departed), p)
	}
	require.Equal(t, Done, run(Return, "uc", "a", "b", "c").Ending)
	require.Equal(t, "r1", sets["c"].Ring)
	require.Empty(t, sets["c"].Departed)
}

func withoutBy(departed []Departure) []Departure {
	departed = slices.Clone(departed)
	for i := range departed {
		departed[i].By = ""
	}
	return departed
}

// TestAChangeRefusesAnotherRing: a change of the membership is aborted, before it writes any PeerSet,
// if the newcomer or a member has another ring ID than the anchor (the first member by name). A
// missing ring ID is no reason to refuse, except if the anchor lacks it and the newcomer has one.
func TestAChangeRefusesAnotherRing(t *testing.T) {
	for name, c := range map[string]struct {
		kind    ChangeKind
		members map[string]string
		own     string // the ring of c's PeerSet
		refused string
	}{
		"join":                           {Join, map[string]string{"a": "r1", "b": "r1"}, "r2", "c"},
		"join a ring without an ID":      {Join, map[string]string{"a": "", "b": ""}, "r2", "c"},
		"comeback":                       {Return, map[string]string{"a": "r1", "b": "r1"}, "r2", "c"},
		"members of two rings":           {Join, map[string]string{"a": "r1", "b": "r2"}, "", "b"},
		"leave a ring that is two":       {Leave, map[string]string{"a": "r1", "b": "r2"}, "r1", "b"},
		"force-remove from two rings":    {Force, map[string]string{"a": "r1", "b": "r2"}, "", "b"},
		"a member without an ID":         {Join, map[string]string{"a": "r1", "b": ""}, "r1", ""},
		"the anchor is the one without":  {Join, map[string]string{"a": "", "b": "r1"}, "", ""},
		"a newcomer without an ID joins": {Join, map[string]string{"a": "r1", "b": "r1"}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			sets := ringOf(c.members)
			sets["c"] = &PeerSet{UID: "sc", RV: "1", Ring: c.own, Self: Member{Peer: "c", UID: "uc", State: peerOut}, Epoch: 1}
			result := carryThrough(t, NewChange(ChangeOperation{ID: "x", Kind: c.kind, Peer: "c", UID: "uc", Peers: []string{"a", "b", "c"}, Lease: 2}), sets)
			if c.refused == "" {
				require.Equal(t, Done, result.Ending, "%+v", result)
				return
			}
			require.Equal(t, Aborted, result.Ending)
			require.Equal(t, OtherRing, result.Reason)
			require.Equal(t, c.refused, result.Peer)
			require.Contains(t, result.Problem, "r2")
			for p, set := range sets {
				require.EqualValues(t, 1, set.Epoch, "%s was written", p)
			}
		})
	}
}

// TestAForceRemovalMakesTheListsEqual: a removal by force is completed even if the PeerSets of the
// remaining members disagree about another peer, d. After that all of them list d in its most
// advanced state, or all of them list d as departed.
func TestAForceRemovalMakesTheListsEqual(t *testing.T) {
	joining, active := Member{Peer: "d", UID: "ud", State: peerJoining}, Member{Peer: "d", UID: "ud", State: peerActive}
	dropped := func(s PeerSet) PeerSet { return s.with(active).without(Departure{Peer: "d", How: "Forced"}) }
	listed := func(m Member) func(PeerSet) PeerSet { return func(s PeerSet) PeerSet { return s.with(m) } }
	unlisted := func(s PeerSet) PeerSet { return s }
	for name, c := range map[string]struct {
		a, b func(PeerSet) PeerSet // a is the anchor
		want []Member              // entries of d
	}{
		"only the anchor lists a joining peer": {listed(joining), unlisted, []Member{joining}},
		"the anchor is ahead with a join":      {listed(active), listed(joining), []Member{active}},
		"the anchor is behind with a join":     {listed(joining), listed(active), []Member{active}},
		"the anchor has dropped a peer":        {dropped, listed(active), []Member{}},
	} {
		t.Run(name, func(t *testing.T) {
			sets := ringOf(map[string]string{"a": "r1", "b": "r1", "c": "r1"})
			own := listed(joining)(*sets["a"])
			own.Self = joining
			*sets["a"], *sets["b"], sets["d"] = c.a(*sets["a"]), c.b(*sets["b"]), &own
			delete(sets, "c") // it is unreachable
			result := carryThrough(t, NewChange(ChangeOperation{ID: "x", Kind: Force, Peer: "c", Peers: []string{"a", "b", "d"}, By: "me", Lease: 2}), sets)
			require.Equal(t, Done, result.Ending, "%+v", result)
			for _, p := range []string{"a", "b"} {
				require.False(t, sets[p].Lists("c"), p)
				require.Equal(t, c.want, slices.DeleteFunc(slices.Clone(sets[p].Members), func(m Member) bool { return m.Peer != "d" }), p)
				require.Equal(t, len(c.want) == 0, sets[p].Gone("d"), p)
			}
		})
	}
}

// TestANewcomerChangesRingsMeanwhile: if a newcomer joins another ring before the change takes its
// slot (the field of a PeerSet that admits one change at a time), the change writes nothing to the
// newcomer and frees the slots of the members.
func TestANewcomerChangesRingsMeanwhile(t *testing.T) {
	met := 0
	for at := range 20 {
		changed := false
		sets := ringOf(map[string]string{"a": "r1", "b": "r1"})
		sets["c"] = &PeerSet{UID: "sc", RV: "1", Self: Member{Peer: "c", UID: "uc", State: peerOut}, Epoch: 1}
		c := NewChange(ChangeOperation{ID: "x", Kind: Join, Peer: "c", UID: "uc", Peers: []string{"a", "b", "c"}, Lease: 2})
		queue := c.Start()
		for n := 0; len(queue) > 0; n++ {
			if n == at && sets["c"].Ring == "" {
				changed = true
				other := *sets["c"]
				other.Ring, other.RV, other.Epoch = "r2", "other", 2
				sets["c"] = &other
			}
			cmd := queue[0]
			queue = queue[1:]
			r := Reply{Strand: cmd.Strand, Seq: cmd.Seq, Class: Applied, Code: OK}
			switch set := sets[cmd.Peer]; {
			case cmd.Verb == ReadPeerSet:
				r.PeerSet = *set
			case cmd.Verb == PutPeerSet && set.RV != cmd.RV:
				r.Class, r.Code = NotApplied, Conflict
			case cmd.Verb == PutPeerSet:
				next := *cmd.Set
				next.RV += "+"
				sets[cmd.Peer] = &next
				r.PeerSet = next
			}
			if cmd.Verb == Sleep && c.settled() {
				continue
			}
			queue = append(queue, c.Handle(r)...)
		}
		require.True(t, c.Over())
		for p, set := range sets {
			require.Empty(t, set.Change.ID, "the slot of %s, %d", p, at)
		}
		if changed {
			met++
			require.Equal(t, "r2", sets["c"].Ring)
			require.Equal(t, OtherRing, c.Result.Reason, "%d: %+v", at, c.Result)
			require.Equal(t, "other", sets["c"].RV)
		} else {
			require.Equal(t, Done, c.Result.Ending)
		}
	}
	require.Equal(t, 13, met, "how many points in time lie before its slot is taken")
}
