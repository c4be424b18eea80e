// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// A peer that is given up may leave a change behind that cannot go on without
// it, and what that has come to differs from member to member. Who gives the
// peer up has the slots of all, and levels that: whom one has dropped, all drop;
// whom one has let in, all let in. Without, no list would ever be like the others
// again.

// agreed are the full members by set on which the members' lists must agree, but
// the peer concerned.
func (c *Change) agreed(set PeerSet) []string {
	return slices.DeleteFunc(set.full(c.Op.Peer), func(p string) bool {
		return c.Op.Kind == Force && (c.Sets[c.Record.Anchor].Gone(p) || c.halfway(p))
	})
}

// halfway says whether a member lists peer as one that joins.
func (c *Change) halfway(peer string) bool {
	return slices.ContainsFunc(c.ring(), func(p string) bool {
		return slices.Contains(c.Sets[p].peers(peerJoining), peer)
	})
}

// furthest is how peer is listed by those who know most of its join, as a full
// member before one that joins.
func (c *Change) furthest(peer string) (Member, bool) {
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

func (c *Change) wantedByForce(set PeerSet) (PeerSet, edited) {
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
		m, ok := c.furthest(p)
		if ok && p != set.Self.Peer && !slices.Contains(set.Members, m) && !anchor.Gone(p) {
			set, what = set.with(m), changed
		}
	}
	return set, what
}
