// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// A peer that is removed by force may leave behind a change that cannot continue without this
// peer, and whose progress differs from member to member. The removal by force holds the slots
// of all remaining members and makes their lists equal. All of them drop each peer that the
// anchor has dropped. They list each peer that the anchor lists, in the most advanced state
// that one of them has for this peer.

// A forceJob removes an unreachable member from the ring.
type forceJob struct{ c *Change }

// agreed returns those peers in set that the lists of all members must have in common: the members
// that are not Joining, without the peer concerned. For a removal by force it also leaves out the
// peers that the anchor (the member whose slot is taken first) has dropped, and the peers whose
// join is unfinished.
func (j forceJob) agreed(set PeerSet) []string {
	c := j.c
	return slices.DeleteFunc(set.full(c.Op.Peer), func(p string) bool {
		return c.Op.Kind == Force && (c.Sets[c.Record.Anchor].Gone(p) || j.halfway(p))
	})
}

// halfway reports whether a member lists peer as Joining.
func (j forceJob) halfway(peer string) bool {
	c := j.c
	return slices.ContainsFunc(c.ring(), func(p string) bool {
		return slices.Contains(c.Sets[p].peers(peerJoining), peer)
	})
}

// furthest returns the most advanced entry for peer in any member's list: Active before Joining.
func (j forceJob) furthest(peer string) (Member, bool) {
	c := j.c
	var m Member
	for _, p := range c.ring() {
		for _, o := range c.Sets[p].Members {
			if o.Peer == peer && m.State != peerActive {
				m = o
			}
		}
	}
	return m, m.Peer != ""
}

func (j forceJob) wanted(set PeerSet) (PeerSet, edited) {
	c := j.c
	what := unchanged
	if !set.Gone(c.Op.Peer) {
		set, what = set.without(Departure{Peer: c.Op.Peer, How: "Forced", By: c.Op.By}), changed
	}
	anchor := c.Sets[c.Record.Anchor]
	for _, d := range anchor.Departed {
		if anchor.Gone(d.Peer) && set.Lists(d.Peer) {
			set, what = set.without(d), changed
		}
	}
	for _, p := range c.ring() {
		m, ok := j.furthest(p)
		if ok && p != set.Self.Peer && !slices.Contains(set.Members, m) && !anchor.Gone(p) {
			set, what = set.with(m), changed
		}
	}
	return set, what
}
