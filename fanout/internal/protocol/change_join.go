// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"cmp"
	"fmt"
	"slices"
)

// newcomer reports whether the change makes the peer concerned a member.
func (c *Change) newcomer() bool { return c.Op.Kind == Join || c.Op.Kind == Return }

// A joinJob makes the peer concerned a member.
type joinJob struct{ c *Change }

// quarantined returns the newcomer's PeerSet for the write that takes its slot. From that write on
// the newcomer lists the members of the ring, and no add commits in it, whatever its state was.
func (j joinJob) quarantined(set PeerSet) PeerSet {
	c := j.c
	anchor := c.Sets[c.Record.Anchor]
	set.Self.State = peerQuarantined
	set.Members = slices.DeleteFunc(slices.Clone(anchor.Members), func(m Member) bool { return m.Peer == c.Op.Peer })
	set.Departed = anchor.Departed
	set.Ring = anchor.Ring
	return set
}

// foreign returns a peer whose PeerSet belongs to another ring than the anchor's PeerSet, and a
// message for people. It returns two empty strings if it finds no such peer. A member without a
// ring ID belongs to this ring: it has not received the ID yet. If this ring has no ID, a newcomer
// with a ring ID belongs to another ring.
func (j joinJob) foreign() (peer, problem string) {
	c := j.c
	ring := c.Sets[c.Record.Anchor].Ring
	for _, p := range c.Op.Peers {
		set, read := c.Sets[p]
		newcomer := c.newcomer() && p == c.Op.Peer
		switch {
		case !read || set.Ring == "" || set.Ring == ring:
		case !newcomer && (ring == "" || !set.current() || !set.Lists(c.Record.Anchor)):
		default:
			return p, fmt.Sprintf("peer %s belongs to ring %s, and %s to %s: correct the peer's credentials; if it is to leave its ring for this one, delete its PeerSet first",
				p, set.Ring, c.Record.Anchor, cmp.Or(ring, "a ring without an ID yet"))
		}
	}
	return "", ""
}

// otherRing reports whether a newcomer with this PeerSet belongs to another ring.
func (j joinJob) otherRing(set PeerSet) bool {
	c := j.c
	return set.Ring != "" && set.Ring != c.Sets[c.Record.Anchor].Ring
}

// returned reports whether the newcomer was removed by force. Then the objects that had their home
// in it may have another home by now, or none.
func (j joinJob) returned() bool {
	c := j.c
	return c.Sets[c.Op.Peer].forced(c.Op.Peer)
}

// listedByAny reports whether a member lists the newcomer. Then a join of the newcomer was
// interrupted, or the newcomer is a member that was restored.
func (j joinJob) listedByAny() bool {
	c := j.c
	return slices.ContainsFunc(c.ring(), func(p string) bool { return c.Sets[p].Lists(c.Op.Peer) })
}

// expulsion returns the departure to record for a newcomer that cannot join. If the newcomer's
// PeerSet already lists a departure of the newcomer, it returns that one.
func (j joinJob) expulsion() Departure {
	c := j.c
	for _, d := range c.Sets[c.Op.Peer].Departed {
		if d.Peer == c.Op.Peer {
			return d
		}
	}
	return Departure{Peer: c.Op.Peer, UID: c.Op.UID, How: "Left", By: c.Op.By}
}

// begin starts the join once all slots are held, or continues where another process stopped.
func (j joinJob) begin() {
	c := j.c
	set := c.Sets[c.Op.Peer]
	switch {
	case writeJob{c}.activated(set):
		closeJob{c}.begin()
	case set.Change.Over:
		j.expel()
	case set.Self.State == peerJoining && !c.restored():
		j.enlist()
	default:
		listJob{c}.begin(chSettling, c.Op.Peer)
	}
}

func (j joinJob) admit() {
	c := j.c
	c.enter(chAdmitting)
	c.spawn(chWrite, c.Op.Peer)
}

// enlist adds the newcomer to the next member's list. From then on, an add that creates its primary
// in that member commits only if it also has a secondary in the newcomer.
func (j joinJob) enlist() {
	c := j.c
	if ring := c.ring(); c.At < len(ring) {
		c.enter(chTelling)
		c.spawn(chWrite, ring[c.At])
		return
	}
	c.Rounds = 0
	j.survey()
}

// mayFollowAnother reports whether another process may have worked on this change, too.
func (c *Change) mayFollowAnother() bool {
	return c.Resumed || c.Shared || c.Op.Anchor != "" || c.Runs > 0
}

// survey begins to list the primaries of the members, which all list the newcomer by now.
func (j joinJob) survey() {
	c := j.c
	c.At, c.Later = 0, nil
	c.Result.Blocking = nil
	c.Worked, c.Stuck, c.HomeRetired = false, false, false
	listJob{c}.begin(chCovering, c.ring()[0])
}

// covered returns the peers whose objects are listed to give the newcomer their secondaries. After
// the first round it includes the newcomer: an object in the newcomer that is being removed may
// have obstructed the first round.
func (j joinJob) covered() []string {
	c := j.c
	if c.Rounds > 0 {
		return append(c.ring(), c.Op.Peer)
	}
	return c.ring()
}

// complete gives the newcomer its secondaries of objects in namespaces, once it has the owners
// of the namespaces.
func (j joinJob) complete() {
	c := j.c
	c.enter(chCompleting)
	for _, s := range c.Later {
		c.start(s)
	}
	c.Later = nil
}

func (j joinJob) joined() {
	c := j.c
	switch c.Phase {
	case chAdmitting:
		c.At = 0
		j.enlist()
	case chTelling:
		c.At++
		j.enlist()
	case chActivating:
		closeJob{c}.begin()
	}
}

func (j joinJob) activate() {
	c := j.c
	c.enter(chActivating)
	c.spawn(chWrite, c.Op.Peer)
}

// expel ends a join that cannot be completed. It writes the newcomer's PeerSet first, so that no
// other process activates the newcomer, and then those of the members, the anchor's last.
func (j joinJob) expel() {
	c := j.c
	c.At = len(c.Order) - 1
	c.enter(chExpelling)
	c.spawn(chWrite, c.Op.Peer)
}

func (j joinJob) expelled() {
	c := j.c
	if c.At--; c.At >= 0 {
		c.enter(chForgetting)
		c.spawn(chWrite, c.ring()[c.At])
		return
	}
	closeJob{c}.release()
}

func (j joinJob) wanted(peer string, set PeerSet) (PeerSet, edited) {
	c := j.c
	if peer == c.Op.Peer {
		return j.wantedOfNewcomer(set)
	}
	here := set.Lists(c.Op.Peer)
	switch {
	case c.Phase == chForgetting && set.Change.Over:
		return set, unchanged
	case c.Phase == chForgetting:
		// Write even if the newcomer is not listed: another process may have sent a write that
		// would list the newcomer, and this write voids that one.
		set = set.without(j.expulsion())
		set.Change.Over = true
		return set, changed
	case set.Change.Over:
		return set, elsewhere
	case here:
		return set, unchanged
	default:
		return set.with(Member{Peer: c.Op.Peer, UID: c.Sets[c.Op.Peer].Self.UID, State: peerJoining}), changed
	}
}

func (j joinJob) wantedOfNewcomer(set PeerSet) (PeerSet, edited) {
	c := j.c
	joined := set.Change.Over && set.Self.State == peerActive
	switch {
	case c.Phase == chActivating && joined, c.Phase == chExpelling && set.Change.Over && !joined:
		return set, unchanged
	case set.Change.Over:
		return set, elsewhere
	case c.Phase == chAdmitting && set.Self.State == peerJoining:
		return set, unchanged
	case c.Phase == chAdmitting:
		set.Self.State = peerJoining
	case c.Phase == chExpelling:
		set.Self.State = peerOut
		set.Change.Over = true
	default:
		set.Self.State = peerActive
		ring := c.Sets[c.Record.Anchor].with(set.Self)
		set.Members, set.Departed, set.Ring = ring.Members, ring.Departed, ring.Ring
		set.Change.Over = true
	}
	return set, changed
}
