// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// ringed returns peers a and b of one ring. Their PeerSets list p as a member if entry is
// "present", as departed if entry is "departed", and not at all if entry is "absent". The UID of
// each cluster is "u" and the peer's name.
func ringed(ring, entry string) map[string]Presence {
	members := []Member{{Peer: "a", UID: "ua", State: peerActive}, {Peer: "b", UID: "ub", State: peerActive}}
	var departed []Departure
	switch entry {
	case "present":
		members = append(members, Member{Peer: "p", UID: "up", State: peerActive})
	case "departed":
		departed = []Departure{{Peer: "p", UID: "up", How: "Forced"}}
	}
	out := map[string]Presence{}
	for _, m := range members[:2] {
		out[m.Peer] = Presence{UID: m.UID, HasSet: true, Set: PeerSet{Ring: ring, Self: m, Members: members, Departed: departed}}
	}
	return out
}

// TestIdentifyTable judges a peer beside two that agree, in every combination of the properties
// that identify it.
func TestIdentifyTable(t *testing.T) {
	n := 0
	for _, known := range []string{"", "r"} { // the ring that the caller knows
		for _, others := range []string{"", "r"} { // the ring of the other peers
			for _, entry := range []string{"present", "absent", "departed"} {
				for _, state := range []string{"none", peerActive, peerJoining, peerOut} {
					for _, name := range []string{"p", "q"} {
						for _, uid := range []string{"same", "unknown", "differs", "copied"} {
							for _, ring := range []string{"", "r", "s"} {
								p := Presence{UID: "up", HasSet: true, Set: PeerSet{Ring: ring, Self: Member{Peer: name, UID: "up", State: state}}}
								switch uid {
								case "unknown":
									p.UID = ""
								case "differs": // another cluster, with its own PeerSet
									p.UID, p.Set.Self.UID = "vp", "vp"
								case "copied": // another cluster with this one's PeerSet
									p.UID = "vp"
								}
								for _, m := range []string{"a", "b"} {
									p.Set.Members = append(p.Set.Members, Member{Peer: m, UID: "u" + m, State: peerActive})
								}
								p.Set.Members = append(p.Set.Members, p.Set.Self)
								if state == "none" {
									p.HasSet, p.Set = false, PeerSet{}
									if name != "p" || ring != "" || uid == "copied" {
										continue
									}
								}
								var want Standing
								member := entry == "present" || entry == "absent" && state == peerActive ||
									entry == "departed" && state == peerActive && uid == "differs" // p's cluster is not the departed one
								switch {
								case p.HasSet && name != "p":
									want = WrongCluster
								case uid == "copied":
									want = WrongCluster
								case known != "" && ring != "" && ring != known:
									want = WrongCluster
								case uid == "unknown" && ring == "":
									want = UnknownIdentity
								case others != "" && ring != "" && ring != others:
									want = WrongCluster
								case known != "" && ring == known && others != known && state == peerActive && entry == "present":
									want = Believed // only p is of the known ring
								case entry == "present" && uid == "differs":
									want = WrongCluster
								case p.HasSet && member:
									want = Believed
								default:
									want = NotMember
								}
								peers := ringed(others, entry)
								peers["p"] = p
								got := Identify(known, peers)
								about := fmt.Sprintf("known %q, others %q, entry %s, state %s, name %s, uid %s, ring %q", known, others, entry, state, name, uid, ring)
								require.Equal(t, want, got["p"].Standing, "%s: %+v", about, got["p"])
								require.False(t, got["p"].Tied, about)
								require.Equal(t, Believed, got["a"].Standing, "%s: %+v", about, got["a"])
								require.Equal(t, Believed, got["b"].Standing, "%s: %+v", about, got["b"])
								n++
							}
						}
					}
				}
			}
		}
	}
	require.Equal(t, 900, n)
}

// foreign returns the peers of a ring of other clusters. The UID of each cluster is "v" and the
// peer's name.
func foreign(ring string, names ...string) map[string]Presence {
	return ringNamed("v", ring, names...)
}

func ringNamed(prefix, ring string, names ...string) map[string]Presence {
	var members []Member
	for _, n := range names {
		members = append(members, Member{Peer: n, UID: prefix + n, State: peerActive})
	}
	out := map[string]Presence{}
	for _, m := range members {
		out[m.Peer] = Presence{UID: m.UID, HasSet: true, Set: PeerSet{Ring: ring, Self: m, Members: members}}
	}
	return out
}

// TestIdentifyTwoAgainstEachOther: two peers that contradict each other are both refused. If the
// caller knows the ring of one of them, or a third peer agrees with one of them, only the other
// one is refused.
func TestIdentifyTwoAgainstEachOther(t *testing.T) {
	for _, rings := range [][2]string{{"", ""}, {"r", "s"}, {"r", ""}, {"", "s"}} {
		one, other := ringNamed("u", rings[0], "a", "b"), foreign(rings[1], "a", "b")
		peers := map[string]Presence{"a": one["a"], "b": other["b"]}
		got := Identify("", peers)
		for peer, against := range map[string]string{"a": "b", "b": "a"} {
			require.Equal(t, WrongCluster, got[peer].Standing, "%v", rings)
			require.True(t, got[peer].Tied)
			require.Equal(t, []string{against}, got[peer].By)
		}
		if rings[0] != "" {
			got = Identify("r", peers)
			require.Equal(t, Believed, got["a"].Standing)
			require.Equal(t, WrongCluster, got["b"].Standing)
			require.False(t, got["b"].Tied)
		}
		// The third peer decides.
		three := ringNamed("u", rings[0], "a", "b", "c")
		peers = map[string]Presence{"a": three["a"], "b": foreign(rings[1], "a", "b", "c")["b"], "c": three["c"]}
		got = Identify("", peers)
		require.Equal(t, Believed, got["a"].Standing)
		require.Equal(t, Believed, got["c"].Standing)
		require.Equal(t, WrongCluster, got["b"].Standing)
		require.Equal(t, []string{"a", "c"}, got["b"].By)
	}
}

// TestIdentifyTwoRingsThatListEachOther: members that list each other and have different ring
// IDs are both refused.
func TestIdentifyTwoRingsThatListEachOther(t *testing.T) {
	peers := ringNamed("u", "r", "a", "b")
	b := peers["b"]
	b.Set.Ring = "s"
	peers["b"] = b
	got := Identify("", peers)
	for _, peer := range []string{"a", "b"} {
		require.Equal(t, WrongCluster, got[peer].Standing)
		require.Equal(t, MismatchRing, got[peer].Mismatch)
		require.True(t, got[peer].Tied)
	}
}

// TestIdentifyAPeerThatWasGivenUp: a peer that does not know that it was removed by force
// contradicts no other peer.
func TestIdentifyAPeerThatWasGivenUp(t *testing.T) {
	peers := ringNamed("u", "", "a", "b", "c")
	for _, p := range []string{"a", "b"} {
		x := peers[p]
		x.Set = x.Set.without(Departure{Peer: "c", How: "Forced"}).with(Member{Peer: "b", UID: "wb", State: peerActive})
		if p == "b" { // another cluster has the name by now
			x.UID, x.Set.Self.UID = "wb", "wb"
		}
		peers[p] = x
	}
	got := Identify("", peers)
	require.Equal(t, Believed, got["a"].Standing, "%+v", got["a"])
	require.Equal(t, Believed, got["b"].Standing, "%+v", got["b"])
	require.Equal(t, NotMember, got["c"].Standing, "%+v", got["c"])
}

// TestIdentifyProperty draws kubeconfigs that lead to two rings whose peers have the same
// names, peers that do not answer, and credentials without the right to read the UID. Identify
// never trusts peers of both rings. It believes the peers of the ring that the caller knows. If
// the caller knows no ring, it trusts only peers of the ring with more votes.
func TestIdentifyProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a", "b", "c", "d", "e"}[:rapid.IntRange(1, 5).Draw(t, "peers")]
		rings := rapid.SampledFrom([][2]string{{"r", "s"}, {"r", "s"}, {"", "s"}, {"r", ""}, {"", ""}}).Draw(t, "rings")
		own, other := ringNamed("u", rings[0], names...), foreign(rings[1], names...)
		peers := map[string]Presence{}
		votes := map[bool]int{}
		for _, n := range names {
			leads := rapid.SampledFrom([]string{"home", "home", "abroad", "nowhere"}).Draw(t, n)
			p := own[n]
			if leads == "abroad" {
				p = other[n]
			}
			if leads == "nowhere" {
				continue
			}
			if rapid.IntRange(0, 4).Draw(t, n+" may not read") == 0 {
				p.UID = ""
			}
			peers[n] = p
			if p.UID != "" || p.Set.Ring != "" {
				votes[leads == "home"]++
			}
		}
		home := func(p Presence) bool { return p.Set.Self.UID[0] == 'u' }
		known := ""
		if rings[0] != "" && rapid.Bool().Draw(t, "known") {
			known = "r"
		}
		got := Identify(known, peers)
		trusted := map[bool]int{}
		for n, p := range peers {
			i := got[n]
			if i.Trusted() {
				trusted[home(p)]++
			}
			if p.UID == "" && p.Set.Ring == "" && !i.Trusted() && i.Standing != UnknownIdentity {
				t.Fatalf("%s may not be read, and is %+v", n, i)
			}
			if i.Tied && (i.Trusted() || len(i.By) == 0) {
				t.Fatalf("%+v", i)
			}
			if known != "" && p.Set.Ring == known && i.Standing != Believed {
				t.Fatalf("the ring is known, and %s of it is %+v", n, i)
			}
			if known != "" && p.Set.Ring == "s" && i.Trusted() {
				t.Fatalf("the ring is known, and %s of another is %+v", n, i)
			}
			if known == "" && votes[home(p)] > votes[!home(p)] && i.Standing != Believed && i.Standing != UnknownIdentity {
				t.Fatalf("%s is of the majority, and is %+v", n, i)
			}
			if known == "" && votes[home(p)] <= votes[!home(p)] && i.Trusted() {
				t.Fatalf("%s is of no majority, and is %+v", n, i)
			}
		}
		if trusted[true] > 0 && trusted[false] > 0 {
			t.Fatalf("peers of two rings are believed: %+v", got)
		}
		if ring := Ring(peers, got); ring != "" && known != "" && ring != known {
			t.Fatalf("ring %s is known, and %s is found", known, ring)
		}
	})
}
