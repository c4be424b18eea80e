// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"maps"
	"slices"
)

// Presence is the identity that the cluster behind a peer's name presents.
type Presence struct {
	UID    string // UID of the namespace kube-system; empty if the credentials may not read it
	HasSet bool
	Set    PeerSet
}

// Standing states whether a coordinator may use the replies of a peer and, if not, why.
type Standing uint8

// The standings of a peer.
const (
	// Silent is a peer about which nothing is known.
	Silent Standing = iota
	// Believed is a member whose cluster is the one that the ring knows under its name.
	Believed
	// NotMember is a peer that is in no ring, or has left this one. It has no vote about the
	// identity of other peers.
	NotMember
	// UnknownIdentity is a peer whose cluster cannot be checked.
	UnknownIdentity
	// Returned is a member whose store was restored from an older state: its own epoch is lower
	// than an epoch that another peer has noted for it. Its replies are not used.
	Returned
	// WrongCluster is a peer whose cluster is not the one that the ring knows under its name.
	// Its replies are not used.
	WrongCluster
)

// Mismatch is a property of a cluster that differs from the expected one.
type Mismatch string

// The properties that identify a peer's cluster.
const (
	MismatchName Mismatch = "name"
	MismatchUID  Mismatch = "uid"
	MismatchRing Mismatch = "ring"
)

// Identification is the judgement of one peer.
type Identification struct {
	Standing Standing
	// Of WrongCluster: the property that differs, its found and its wanted value, and the peers
	// that know the wanted value. By is empty if the peer's own PeerSet decides.
	Mismatch    Mismatch
	Found, Want string
	By          []string
	Tied        bool // as many peers know the found value as the wanted value

	// Of Returned: the epoch of the peer's PeerSet, and the higher epoch that the peers in By
	// noted.
	Epoch, Noted int64
}

// Trusted reports whether a coordinator may use the replies of the peer.
func (i Identification) Trusted() bool { return i.Standing == Believed || i.Standing == NotMember }

// Identify judges the peers that replied. A peer's PeerSet must have the peer's name and its
// cluster's UID. Where the peers disagree about a UID or a ring, the larger group decides; without
// a larger group all of them are refused. ring is the ID of the ring that the caller already knows,
// or empty; a known ring decides instead of the larger group. Rings are compared only if both
// PeerSets have a ring ID. Last, Identify compares each PeerSet's epoch with the epochs that the
// other peers have noted for it.
func Identify(ring string, peers map[string]Presence) map[string]Identification {
	j := jury{ring: ring, peers: peers, out: map[string]Identification{}}
	for peer, p := range peers {
		j.out[peer] = j.alone(peer, p)
	}
	j.poll()
	for peer, p := range peers {
		if j.out[peer].Trusted() {
			j.out[peer] = j.compared(peer, p)
		}
	}
	for peer, p := range peers {
		if j.out[peer].Trusted() {
			j.out[peer] = j.enrolled(peer, p)
		}
	}
	for peer, p := range peers {
		if j.out[peer].Trusted() && p.HasSet {
			j.out[peer] = j.aged(peer, p)
		}
	}
	return j.out
}

// aged returns the standing Returned if another peer has noted a higher epoch for peer's PeerSet.
// Otherwise it returns the judgement that j.out has for peer.
func (j *jury) aged(peer string, p Presence) Identification {
	old := Identification{Standing: Returned, Epoch: p.Set.Epoch, Noted: p.Set.Epoch}
	for _, other := range slices.Sorted(maps.Keys(j.peers)) {
		q := j.peers[other]
		if other == peer || !q.HasSet || j.out[other].Standing != Believed && j.out[other].Standing != Returned {
			continue
		}
		if q.Set.Ring != p.Set.Ring && q.Set.Ring != "" && p.Set.Ring != "" {
			continue
		}
		seen := noted(peer, p.claimed(), map[string]PeerSet{other: q.Set})
		if seen > p.Set.Epoch {
			old.Noted, old.By = max(old.Noted, seen), append(old.By, other)
		}
	}
	if len(old.By) == 0 {
		return j.out[peer]
	}
	return old
}

// ballot is a ring and its members, on which all voters agree.
type ballot struct {
	ring   string
	uids   map[string]string // UID of each member's cluster, by the member's name
	voters []string
}

type jury struct {
	ring    string
	peers   map[string]Presence
	out     map[string]Identification
	ballots []ballot
}

// claimed returns the UID of the cluster. If the credentials may not read that UID, it returns the
// UID in the cluster's PeerSet, which a caller may use only if the PeerSet also has a ring ID.
func (p Presence) claimed() string {
	if p.UID != "" {
		return p.UID
	}
	return p.Set.Self.UID
}

// alone judges a peer by its own data.
func (j *jury) alone(peer string, p Presence) Identification {
	self := p.Set.Self
	switch {
	case p.HasSet && self.Peer != peer:
		return Identification{Standing: WrongCluster, Mismatch: MismatchName, Found: self.Peer, Want: peer}
	case p.HasSet && p.UID != "" && self.UID != p.UID:
		return Identification{Standing: WrongCluster, Mismatch: MismatchUID, Found: p.UID, Want: self.UID}
	case p.HasSet && p.Set.Ring != "" && j.ring != "" && p.Set.Ring != j.ring:
		return Identification{Standing: WrongCluster, Mismatch: MismatchRing, Found: p.Set.Ring, Want: j.ring, By: j.of(j.ring)}
	case p.UID == "" && (!p.HasSet || p.Set.Ring == ""):
		return Identification{Standing: UnknownIdentity}
	default:
		return Identification{Standing: NotMember}
	}
}

// of returns the peers whose PeerSets name ring, sorted.
func (j *jury) of(ring string) []string {
	var peers []string
	for peer, p := range j.peers {
		if p.HasSet && p.Set.Ring == ring {
			peers = append(peers, peer)
		}
	}
	slices.Sort(peers)
	return peers
}

// poll collects the ballots of the peers that are members by their own PeerSets.
func (j *jury) poll() {
	for _, peer := range slices.Sorted(maps.Keys(j.peers)) {
		p := j.peers[peer]
		if !j.out[peer].Trusted() || !p.HasSet || !p.Set.current() || j.dropped(peer) {
			continue
		}
		at := slices.IndexFunc(j.ballots, func(b ballot) bool { return b.ring == p.Set.Ring && b.says(p.Set.Members) })
		if at < 0 {
			b := ballot{ring: p.Set.Ring, uids: map[string]string{}}
			for _, m := range p.Set.Members {
				b.uids[m.Peer] = m.UID
			}
			j.ballots, at = append(j.ballots, b), len(j.ballots)
		}
		j.ballots[at].voters = append(j.ballots[at].voters, peer)
	}
	known := func(b ballot) bool { return b.ring == j.ring }
	if j.ring != "" && slices.ContainsFunc(j.ballots, known) {
		// Peers without a ring ID may be of another ring.
		j.ballots = slices.DeleteFunc(j.ballots, func(b ballot) bool { return !known(b) })
	}
}

func (b ballot) says(members []Member) bool {
	return len(b.uids) == len(members) && !slices.ContainsFunc(members, func(m Member) bool {
		uid, ok := b.uids[m.Peer]
		return !ok || uid != m.UID
	})
}

// dropped reports whether another peer lists peer as departed while peer's own PeerSet, which is
// then outdated, does not show the departure.
func (j *jury) dropped(peer string) bool {
	p := j.peers[peer]
	for other, q := range j.peers {
		if other == peer || !j.out[other].Trusted() || !q.HasSet || !q.Set.current() || !q.Set.Gone(peer) || p.Set.Gone(other) {
			continue
		}
		if uid := q.Set.cluster(peer); uid != "" && uid != p.claimed() {
			continue // the departed peer was another cluster
		}
		if p.Set.Ring != "" && q.Set.Ring != "" && p.Set.Ring != q.Set.Ring {
			continue
		}
		if !p.Set.Lists(other) || p.Set.cluster(other) == q.claimed() {
			return true
		}
	}
	return false
}

// compared judges a peer by the ballots.
func (j *jury) compared(peer string, p Presence) Identification {
	if own := p.Set.Ring; p.HasSet && own != "" && j.ring == "" {
		same, others := 0, map[string][]string{}
		for _, b := range j.ballots {
			switch b.ring {
			case "":
			case own:
				same += len(b.voters)
			default:
				others[b.ring] = append(others[b.ring], b.voters...)
			}
		}
		if wrong, ok := outvoted(same, others); ok {
			wrong.Mismatch, wrong.Found = MismatchRing, own
			return wrong
		}
	}
	same, others := 0, map[string][]string{}
	for _, b := range j.ballots {
		uid, listed := b.uids[peer]
		switch {
		case slices.Contains(b.voters, peer):
			// The peer vouches for itself, whatever it lists; the other voters of its ballot
			// count by the UID that they list.
			same++
			if rest := slices.DeleteFunc(slices.Clone(b.voters), func(v string) bool { return v == peer }); uid == p.claimed() {
				same += len(rest)
			} else if listed && len(rest) > 0 {
				others[uid] = append(others[uid], rest...)
			}
		case !listed:
		case uid == p.claimed():
			same += len(b.voters)
		default:
			others[uid] = append(others[uid], b.voters...)
		}
	}
	if wrong, ok := outvoted(same, others); ok {
		wrong.Mismatch, wrong.Found = MismatchUID, p.claimed()
		return wrong
	}
	return j.out[peer]
}

// outvoted reports whether some group in others is at least as large as same. same is the number of
// peers that agree with a peer's own value; others has the peers that agree on another value, by
// that value.
func outvoted(same int, others map[string][]string) (Identification, bool) {
	worst := Identification{Standing: WrongCluster}
	for _, want := range slices.Sorted(maps.Keys(others)) {
		if by := others[want]; len(by) > len(worst.By) {
			worst.Want, worst.By = want, by
		}
	}
	if len(worst.By) == 0 || same > len(worst.By) {
		return Identification{}, false
	}
	slices.Sort(worst.By)
	worst.Tied = same == len(worst.By)
	return worst, true
}

// enrolled decides whether a peer that no other peer contradicts is a member.
func (j *jury) enrolled(peer string, p Presence) Identification {
	if !p.HasSet || j.dropped(peer) {
		return Identification{Standing: NotMember}
	}
	if p.Set.current() {
		return Identification{Standing: Believed}
	}
	for _, b := range j.ballots {
		if _, listed := b.uids[peer]; listed && slices.ContainsFunc(b.voters, func(v string) bool { return j.out[v].Trusted() }) {
			return Identification{Standing: Believed}
		}
	}
	return Identification{Standing: NotMember}
}

// Ring returns the ID of the ring of the Believed peers, if the peers that are Believed and have
// this ID in their PeerSets are more than half of the members that one of them lists. Otherwise it
// returns "". A caller may rely on the returned ring from then on.
func Ring(peers map[string]Presence, judged map[string]Identification) string {
	count := map[string]int{}
	for peer, p := range peers {
		if judged[peer].Standing == Believed && p.Set.Ring != "" && p.Set.Lists(peer) {
			count[p.Set.Ring]++
		}
	}
	for peer, p := range peers {
		if judged[peer].Standing == Believed && count[p.Set.Ring]*2 > len(p.Set.Members) {
			return p.Set.Ring
		}
	}
	return ""
}
