// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// leave starts the leave once all slots are held, or continues where another process stopped.
// The PeerSet of the first member decides: it drops the peer, or refuses the leave.
func (c *Change) leave() {
	set, ring := c.Sets[c.Op.Peer], c.ring()
	switch {
	case len(c.Sets[c.Record.Anchor].full(c.Op.Peer)) == 0:
		c.Result.Problem = "the last peer of a ring cannot leave it"
		c.because(Membership, c.Op.Peer)
		c.over()
	case c.Sets[ring[0]].Change.Over:
		c.over()
	case set.Self.State == peerOut:
		c.over()
	default:
		c.enter(chMarking)
		c.spawn(chWrite, c.Op.Peer)
	}
}

// drop removes the peer from the next member's list. Writes to the peer may still be in flight,
// so it is emptied only after all members have dropped it.
func (c *Change) drop() {
	if ring := c.ring(); c.At < len(ring) {
		c.enter(chDropping)
		c.spawn(chWrite, ring[c.At])
		return
	}
	if c.Op.Kind == Force {
		c.At = 0
		c.rehome()
		return
	}
	c.list(chEmptying, c.Op.Peer)
}

func (c *Change) left() {
	switch c.Phase {
	case chMarking:
		c.At = 0
		c.list(chDraining, c.Op.Peer)
	case chDropping:
		c.At++
		c.drop()
	default:
		c.over()
	}
}

// keep refuses the leave at the first member.
func (c *Change) keep() {
	c.enter(chRefusing)
	c.spawn(chWrite, c.ring()[0])
}

func (c *Change) wantedByLeave(peer string, set PeerSet) (PeerSet, edited) {
	switch {
	case c.Phase == chMarking && set.Self.State != peerLeaving && set.Self.State != peerOut && !set.Change.Over:
		set.Self.State = peerLeaving
	case c.Phase == chMarking:
		return set, unchanged
	case c.Phase == chClosing && set.Self.State == peerOut:
		return set, unchanged
	case c.Phase == chClosing:
		set.Self.State = peerOut
		set.Members = c.Sets[c.ring()[0]].Members
		set = set.without(Departure{Peer: peer, How: "Left", By: c.Op.By})
	case c.Phase == chRefusing && set.Change.Over:
		return set, unchanged
	case c.Phase == chRefusing && !set.Lists(c.Op.Peer), c.Phase == chDropping && set.Change.Over:
		return set, elsewhere
	case c.Phase == chRefusing:
		set.Change.Over = true
	case !set.Lists(c.Op.Peer):
		return set, unchanged
	default:
		set = set.without(Departure{Peer: c.Op.Peer, How: "Left", By: c.Op.By})
	}
	return set, changed
}

// rehome gives a new home to the Accounts whose home was lost.
func (c *Change) rehome() {
	if ring := c.ring(); c.At < len(ring) {
		c.list(chRehoming, ring[c.At])
		return
	}
	c.over()
}
