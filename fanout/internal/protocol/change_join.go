// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"cmp"
	"fmt"
	"slices"
)

// newcomer says that the peer concerned is to become a member.
func (c *Change) newcomer() bool { return c.Op.Kind == Join || c.Op.Kind == Return }

// quarantined is the newcomer's PeerSet as its slot is taken: whatever it was
// before, no add commits there from now on, and its own list is the ring's.
func (c *Change) quarantined(set PeerSet) PeerSet {
	anchor := c.Sets[c.Record.Anchor]
	set.Self.State = peerQuarantined
	set.Members = slices.DeleteFunc(slices.Clone(anchor.Members), func(m Member) bool { return m.Peer == c.Op.Peer })
	set.Departed = anchor.Departed
	set.Ring = anchor.Ring
	return set
}

// foreign says whose PeerSet belongs to another ring than the anchor, and why the
// change is refused; empty if none does. A member without a ring ID has not got it
// yet; a newcomer with one, to a ring that has none yet, comes from another ring.
func (c *Change) foreign() (peer, problem string) {
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

// otherRing says that a newcomer with this PeerSet belongs to another ring.
func (c *Change) otherRing(set PeerSet) bool {
	return set.Ring != "" && set.Ring != c.Sets[c.Record.Anchor].Ring
}

// returned says that the newcomer was given up: what it was home of may have
// another one by now, or none.
func (c *Change) returned() bool {
	return c.Sets[c.Op.Peer].forced(c.Op.Peer)
}

// listedByAny says whether a member lists the newcomer: it was cut short as it
// joined, or is a member that was restored.
func (c *Change) listedByAny() bool {
	return slices.ContainsFunc(c.ring(), func(p string) bool { return c.Sets[p].Lists(c.Op.Peer) })
}

// expulsion is the departure of a newcomer that cannot join: as it was before.
func (c *Change) expulsion() Departure {
	for _, d := range c.Sets[c.Op.Peer].Departed {
		if d.Peer == c.Op.Peer {
			return d
		}
	}
	return Departure{Peer: c.Op.Peer, UID: c.Op.UID, How: "Left", By: c.Op.By}
}

// join goes to work under the slots, or on from where another process has come.
func (c *Change) join() {
	set := c.Sets[c.Op.Peer]
	switch {
	case c.activated(set):
		c.over()
	case set.Change.Over:
		c.expel()
	case set.Self.State == peerJoining && !c.restored():
		c.tell()
	default:
		c.list(chSettling, c.Op.Peer)
	}
}

func (c *Change) admit() {
	c.enter(chAdmitting)
	c.spawn(chWrite, c.Op.Peer)
}

// tell gives the next member the newcomer. What is created there from then on is
// not committed without it.
func (c *Change) tell() {
	if ring := c.ring(); c.At < len(ring) {
		c.enter(chTelling)
		c.spawn(chWrite, ring[c.At])
		return
	}
	c.Rounds = 0
	c.survey()
}

// succeeds says that another process may have worked on the join before. One that
// was killed with a secondary made, and its primary not yet looked at again, may
// have left a dead one in the newcomer.
func (c *Change) succeeds() bool { return c.Resumed || c.Op.Anchor != "" || c.Runs > 0 }

// survey begins to list the primaries of the members, all of which know the
// newcomer by now.
func (c *Change) survey() {
	c.At, c.Later = 0, nil
	c.Result.Blocking = nil
	c.Worked, c.Stuck, c.Taken = false, false, false
	c.list(chCovering, c.ring()[0])
}

// covered are the peers whose primaries are listed for the newcomer. What is on
// its way out of the newcomer itself may be in the way of the first attempt.
func (c *Change) covered() []string {
	if c.Rounds > 0 {
		return append(c.ring(), c.Op.Peer)
	}
	return c.ring()
}

// complete gives the newcomer its secondaries of what lives in namespaces, once
// it has the owners of these.
func (c *Change) complete() {
	c.enter(chCompleting)
	for _, s := range c.Later {
		c.Strands = append(c.Strands, s)
		c.step(len(c.Strands)-1, Reply{})
	}
	c.Later = nil
}

func (c *Change) joined() {
	switch c.Phase {
	case chAdmitting:
		c.At = 0
		c.tell()
	case chTelling:
		c.At++
		c.tell()
	case chActivating:
		c.over()
	}
}

func (c *Change) activate() {
	c.enter(chActivating)
	c.spawn(chWrite, c.Op.Peer)
}

// expel ends a join that cannot be completed: the newcomer first, so that it is
// certain that nobody activates it, then the members, the anchor last.
func (c *Change) expel() {
	c.At = len(c.Order) - 1
	c.enter(chExpelling)
	c.spawn(chWrite, c.Op.Peer)
}

func (c *Change) expelled() {
	if c.At--; c.At >= 0 {
		c.enter(chForgetting)
		c.spawn(chWrite, c.ring()[c.At])
		return
	}
	c.release()
}

func (c *Change) wantedByJoin(peer string, set PeerSet) (PeerSet, edited) {
	if peer == c.Op.Peer {
		return c.wantedOfNewcomer(set)
	}
	here := set.Lists(c.Op.Peer)
	switch {
	case c.Phase == chForgetting && set.Change.Over:
		return set, unchanged
	case c.Phase == chForgetting:
		// Written even where the newcomer is not listed: what another process has
		// on its way to list it there is void by that.
		set = set.without(c.expulsion())
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

func (c *Change) wantedOfNewcomer(set PeerSet) (PeerSet, edited) {
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
