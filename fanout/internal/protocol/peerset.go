// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"cmp"
	"slices"
)

// Member is a peer as a PeerSet names it.
type Member struct {
	Peer, UID string
	State     string // Joining, Active, Leaving, Quarantined, Out
}

// The states of a peer.
const (
	peerJoining     = "Joining"
	peerActive      = "Active"
	peerLeaving     = "Leaving"
	peerQuarantined = "Quarantined"
	peerOut         = "Out"
)

// Departure is a peer that is no longer a member.
type Departure struct {
	Peer string
	UID  string // UID of the peer's cluster; empty if the first release noted the departure
	How  string // Left, Forced
	By   string
}

// Slot names the one membership change that may write a PeerSet. The zero value is a free
// slot.
type Slot struct {
	ID          string
	Kind        ChangeKind
	Peer, UID   string // the peer concerned and its cluster
	Coordinator string
	By          string // the person who vouches for a force-remove
	Anchor      string // the peer whose slot was taken first and is freed last
	Heartbeat   int64
	Over        bool // the change is over, and its only remaining write here frees the slot
}

// PeerSet is one peer's knowledge of the ring.
type PeerSet struct {
	UID, RV  string
	Ring     string // the ring's ID; empty if it has none yet
	Self     Member
	Members  []Member
	Departed []Departure
	Change   Slot
	Epoch    int64
	Notes    []Note // the epochs of the other members, as read
}

// Note is the epoch of another member's PeerSet as it was read. If that PeerSet later has a
// lower epoch, the member was restored from an older state.
type Note struct {
	Peer, UID string
	Epoch     int64
}

// Notes returns the notes that each member's PeerSet is to store, by the member's name. sets are
// the PeerSets that were read, without those of wrong clusters. Notes leaves out a peer that is no
// full member by its own PeerSet, and a peer whose slot is taken.
func Notes(sets map[string]PeerSet) map[string][]Note {
	out := map[string][]Note{}
	for peer, set := range sets {
		if !set.current() || set.Change.ID != "" {
			continue
		}
		var notes []Note
		for _, m := range set.Members {
			seen := noted(m.Peer, m.UID, map[string]PeerSet{peer: set})
			if other, ok := sets[m.Peer]; ok && other.Self.UID == m.UID {
				seen = max(seen, other.Epoch)
			}
			if m.Peer != peer && seen > 0 {
				notes = append(notes, Note{Peer: m.Peer, UID: m.UID, Epoch: seen})
			}
		}
		out[peer] = notes
	}
	return out
}

// noted returns the highest epoch that sets have noted for the PeerSet of peer in cluster
// uid.
func noted(peer, uid string, sets map[string]PeerSet) int64 {
	var highest int64
	for _, set := range sets {
		for _, n := range set.Notes {
			if n.Peer == peer && n.UID == uid {
				highest = max(highest, n.Epoch)
			}
		}
	}
	return highest
}

// Lists reports whether s lists peer as a member.
func (s PeerSet) Lists(peer string) bool {
	return slices.ContainsFunc(s.Members, func(m Member) bool { return m.Peer == peer })
}

// Gone reports whether s lists peer as departed and not as a member. Secondaries whose primary is in
// a departed peer are to be deleted; for an Active replica judgeStray makes an exception.
func (s PeerSet) Gone(peer string) bool {
	return !s.Lists(peer) && s.departed(peer)
}

// current reports whether the peer is a full member by its own PeerSet. The PeerSet of a
// peer that is no full member is outdated.
func (s PeerSet) current() bool { return s.Self.State == peerActive || s.Self.State == peerLeaving }

// left reports whether peer departed by a planned leave.
func (s PeerSet) left(peer string) bool {
	return slices.ContainsFunc(s.Departed, func(d Departure) bool { return d.Peer == peer && d.How == "Left" })
}

// forced reports whether peer was removed by force and has not become a member again.
func (s PeerSet) forced(peer string) bool { return s.Gone(peer) && !s.left(peer) }

func (s PeerSet) departed(peer string) bool {
	return slices.ContainsFunc(s.Departed, func(d Departure) bool { return d.Peer == peer })
}

// peers returns the members in one of the states.
func (s PeerSet) peers(states ...string) []string {
	var peers []string
	for _, m := range s.Members {
		if slices.Contains(states, m.State) {
			peers = append(peers, m.Peer)
		}
	}
	return peers
}

// held returns the peers in which an add must hold the name: the Active and the Joining members.
func (s PeerSet) held() []string { return s.peers(peerActive, peerJoining) }

// reached returns the peers that a change of an existing object must reach: the Active, Joining and
// Leaving members.
func (s PeerSet) reached() []string { return s.peers(peerActive, peerJoining, peerLeaving) }

// with returns s with m among its members, and m's peer not among the departed.
func (s PeerSet) with(m Member) PeerSet {
	s.Departed = slices.DeleteFunc(slices.Clone(s.Departed), func(d Departure) bool { return d.Peer == m.Peer })
	s.Members = slices.Clone(s.Members)
	for i := range s.Members {
		if s.Members[i].Peer == m.Peer {
			s.Members[i] = m
			return s
		}
	}
	s.Members = append(s.Members, m)
	slices.SortFunc(s.Members, func(a, b Member) int { return cmp.Compare(a.Peer, b.Peer) })
	return s
}

// without returns s with d's peer among the departed, and not among the members, and without notes
// about that peer. If d has no UID, it gets the UID that s knows.
func (s PeerSet) without(d Departure) PeerSet {
	if d.UID == "" {
		d.UID = s.cluster(d.Peer)
	}
	s.Members = slices.DeleteFunc(slices.Clone(s.Members), func(m Member) bool { return m.Peer == d.Peer })
	s.Departed = slices.DeleteFunc(slices.Clone(s.Departed), func(x Departure) bool { return x.Peer == d.Peer })
	s.Departed = append(s.Departed, d)
	s.Notes = slices.DeleteFunc(slices.Clone(s.Notes), func(n Note) bool { return n.Peer == d.Peer })
	return s
}

// cluster returns the UID of the cluster of peer, which may be a member or departed. It returns ""
// if s does not know the UID.
func (s PeerSet) cluster(peer string) string {
	for _, m := range append([]Member{s.Self}, s.Members...) {
		if m.Peer == peer && m.UID != "" {
			return m.UID
		}
	}
	for _, d := range s.Departed {
		if d.Peer == peer {
			return d.UID
		}
	}
	return ""
}

// names returns the sorted names of the members, without the peer named by the parameter but.
func (s PeerSet) names(but string) []string {
	var names []string
	for _, m := range s.Members {
		if m.Peer != but {
			names = append(names, m.Peer)
		}
	}
	slices.Sort(names)
	return names
}

// full returns the sorted names of the members that are not Joining, without the peer named by the
// parameter but.
func (s PeerSet) full(but string) []string {
	return slices.DeleteFunc(s.names(but), func(p string) bool { return slices.Contains(s.peers(peerJoining), p) })
}
