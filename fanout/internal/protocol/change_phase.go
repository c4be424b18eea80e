// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// next chooses the phase that follows once all strands have ended.
func (c *Change) next() {
	switch c.Phase {
	case chBeginning:
		if c.Stopping {
			c.end(Aborted)
			return
		}
		lookJob{c}.begin()
	case chLooking:
		lookJob{c}.afterLooking()
	case chAdvancing, chTaking:
		if c.Phase == chAdvancing {
			slotsJob{c}.takeNext()
			return
		}
		slotsJob{c}.afterTaking()
	case chSettling, chCovering, chPlacing, chCompleting, chDraining, chEmptying, chRehoming:
		listJob{c}.afterList()
	case chAdmitting, chTelling, chActivating:
		joinJob{c}.joined()
	case chExpelling, chForgetting:
		joinJob{c}.expelled()
	case chMarking, chDropping, chRefusing, chClosing:
		leaveJob{c}.left()
	case chFinishing:
		closeJob{c}.release()
	case chReleasing:
		closeJob{c}.free()
	case chFreeing:
		closeJob{c}.conclude()
	case chEnding:
		c.Phase = chOver
	}
}

// A writeJob decides which PeerSet a phase writes into a peer.
type writeJob struct{ c *Change }

// witness returns the peer whose PeerSet is read between the read and the write of peer's PeerSet,
// or "" if the write needs no witness. The write is sent only if vouches accepts that PeerSet.
func (j writeJob) witness(peer string) string {
	c := j.c
	if c.Phase == chReleasing && !(anchorState{c}).anchorless() {
		return c.Record.Anchor
	}
	if (c.Phase == chTelling || c.Phase == chDropping && c.Op.Kind == Leave) && peer != c.Op.Peer {
		return c.Op.Peer
	}
	return ""
}

// vouches reports whether set, the PeerSet of the witness, permits the write.
func (j writeJob) vouches(set PeerSet) bool {
	c := j.c
	if c.Phase == chReleasing {
		// A late write may have taken the anchor's slot for this change: then no other slot is
		// freed yet.
		return !c.holds(set) || set.Change.Over
	}
	want := peerJoining
	if c.Phase == chDropping {
		want = peerLeaving
	}
	return c.holds(set) && !set.Change.Over && set.Self.State == want
}

// wanted returns the PeerSet that the phase wants in peer, given set, the PeerSet that was read
// there.
func (j writeJob) wanted(peer string, set PeerSet) (PeerSet, edited) {
	c := j.c
	if c.Phase == chFreeing && (!set.Change.Over || c.AnchorNotHeld) {
		// The write that took the anchor's slot was late. Other processes may have found the change there and
		// continued it: first read all PeerSets again and free the slots that they took.
		return set, elsewhere
	}
	if (closeJob{c}).leaving() {
		return j.freed(peer, set), changed
	}
	if c.Phase == chFinishing {
		if set.Change.Over {
			return set, unchanged
		}
		if c.newcomer() && !c.Retreat && j.activated(c.Sets[c.Op.Peer]) {
			set = set.with(c.Sets[c.Op.Peer].Self)
		}
		set.Change.Over = true
		return set, changed
	}
	switch c.Op.Kind {
	case Leave:
		return leaveJob{c}.wanted(peer, set)
	case Force:
		return forceJob{c}.wanted(set)
	default:
		return joinJob{c}.wanted(peer, set)
	}
}

// freed returns the PeerSet set of peer without the slot. Where the change is over, it also writes the
// result: the newcomer's entry as the anchor has it, Quarantined for a restored peer whose rejoin
// failed, and the former state of a peer whose leave was refused.
func (j writeJob) freed(peer string, set PeerSet) PeerSet {
	c := j.c
	anchor := c.Sets[c.Record.Anchor]
	if peer == c.Record.Anchor {
		anchor = set
	}
	over := c.holds(anchor) && anchor.Change.Over
	set.Change = Slot{}
	switch {
	case c.newcomer() && over && set.Lists(c.Op.Peer):
		// Copy the anchor's entry for the newcomer: it is Active after a join, and still Joining
		// after a join that was interrupted.
		if i := slices.IndexFunc(anchor.Members, func(m Member) bool { return m.Peer == c.Op.Peer }); i >= 0 {
			set = set.with(anchor.Members[i])
		}
	case c.restored() && over && peer == c.Op.Peer && set.Self.State == peerJoining:
		set.Self.State = peerQuarantined
	case c.Op.Kind == Leave && peer == c.Op.Peer && set.Self.State == peerLeaving && over && j.refused(anchor, peer):
		set.Self.State = peerActive
		if slices.Contains(anchor.peers(peerJoining), peer) {
			set.Self.State = peerJoining
		}
	}
	return set
}

// refused reports whether peer is still a member after its leave is over.
func (j writeJob) refused(anchor PeerSet, peer string) bool {
	return anchor.Lists(peer) && !anchorState(j).dropped(peer)
}

// activated reports whether this change made the newcomer with PeerSet set a full member.
func (j writeJob) activated(set PeerSet) bool {
	c := j.c
	return c.holds(set) && set.Change.Over && set.Self.State == peerActive
}
