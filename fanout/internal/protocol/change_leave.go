// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// A leaveJob removes a reachable member from the ring.
type leaveJob struct{ c *Change }

// begin starts the leave once all slots are held, or continues where another process stopped. A
// write of the PeerSet of the first other member decides: it drops the peer, or it marks the change
// over and so refuses the leave.
func (j leaveJob) begin() {
	c := j.c
	set, ring := c.Sets[c.Op.Peer], c.ring()
	switch {
	case len(c.Sets[c.Record.Anchor].full(c.Op.Peer)) == 0:
		c.Result.Problem = "the last peer of a ring cannot leave it"
		c.because(Membership, c.Op.Peer)
		closeJob{c}.begin()
	case c.Sets[ring[0]].Change.Over:
		closeJob{c}.begin()
	case set.Self.State == peerOut:
		closeJob{c}.begin()
	default:
		c.enter(chMarking)
		c.spawn(chWrite, c.Op.Peer)
	}
}

// drop removes the peer from the next member's list. Until all members have dropped the peer,
// secondaries may still be written to it, so it is emptied only after that.
func (j leaveJob) drop() {
	c := j.c
	if ring := c.ring(); c.At < len(ring) {
		c.enter(chDropping)
		c.spawn(chWrite, ring[c.At])
		return
	}
	if c.Op.Kind == Force {
		c.At = 0
		j.rehome()
		return
	}
	listJob{c}.begin(chEmptying, c.Op.Peer)
}

func (j leaveJob) left() {
	c := j.c
	switch c.Phase {
	case chMarking:
		c.At = 0
		listJob{c}.begin(chDraining, c.Op.Peer)
	case chDropping:
		c.At++
		j.drop()
	default:
		closeJob{c}.begin()
	}
}

// refuse refuses the leave: it marks the change over at the first other member.
func (j leaveJob) refuse() {
	c := j.c
	c.enter(chRefusing)
	c.spawn(chWrite, c.ring()[0])
}

func (j leaveJob) wanted(peer string, set PeerSet) (PeerSet, edited) {
	c := j.c
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

// rehome lists the next remaining member, and gives a new home to each Everywhere object whose home
// was lost.
func (j leaveJob) rehome() {
	c := j.c
	if ring := c.ring(); c.At < len(ring) {
		listJob{c}.begin(chRehoming, ring[c.At])
		return
	}
	closeJob{c}.begin()
}
