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
		c.look()
	case chLooking:
		c.afterLooking()
	case chAdvancing, chTaking:
		if c.Phase == chAdvancing {
			c.takeNext()
			return
		}
		c.afterTaking()
	case chSettling, chCovering, chPlacing, chCompleting, chDraining, chEmptying, chRehoming:
		c.afterList()
	case chAdmitting, chTelling, chActivating:
		c.joined()
	case chExpelling, chForgetting:
		c.expelled()
	case chMarking, chDropping, chRefusing, chClosing:
		c.left()
	case chFinishing:
		c.release()
	case chReleasing:
		c.free()
	case chFreeing:
		c.conclude()
	case chEnding:
		c.Phase = chOver
	}
}

// witness returns the peer whose PeerSet is read after the PeerSet of peer and before its
// write, or "". The write is sent only if the witness still agrees.
func (c *Change) witness(peer string) string {
	if c.Phase == chReleasing && !c.anchorless() {
		return c.Record.Anchor
	}
	if (c.Phase == chTelling || c.Phase == chDropping && c.Op.Kind == Leave) && peer != c.Op.Peer {
		return c.Op.Peer
	}
	return ""
}

// vouches reports whether the witness still agrees.
func (c *Change) vouches(set PeerSet) bool {
	if c.Phase == chReleasing {
		// The write that took the anchor's slot may have been late.
		return !c.mine(set) || set.Change.Over
	}
	want := peerJoining
	if c.Phase == chDropping {
		want = peerLeaving
	}
	return c.mine(set) && !set.Change.Over && set.Self.State == want
}

// wanted returns the PeerSet that the phase wants in peer, given the one that was read.
func (c *Change) wanted(peer string, set PeerSet) (PeerSet, edited) {
	if c.Phase == chFreeing && (!set.Change.Over || c.Strange) {
		// The write that took the anchor's slot was late, and other processes may have
		// continued from it: free their slots first.
		return set, elsewhere
	}
	if c.leaving() {
		return c.freed(peer, set), changed
	}
	if c.Phase == chFinishing {
		if set.Change.Over {
			return set, unchanged
		}
		if c.newcomer() && !c.Retreat && c.activated(c.Sets[c.Op.Peer]) {
			set = set.with(c.Sets[c.Op.Peer].Self)
		}
		set.Change.Over = true
		return set, changed
	}
	switch c.Op.Kind {
	case Leave:
		return c.wantedByLeave(peer, set)
	case Force:
		return c.wantedByForce(set)
	default:
		return c.wantedByJoin(peer, set)
	}
}

// freed returns set without the slot and with the result of the change.
func (c *Change) freed(peer string, set PeerSet) PeerSet {
	anchor := c.Sets[c.Record.Anchor]
	if peer == c.Record.Anchor {
		anchor = set
	}
	over := c.mine(anchor) && anchor.Change.Over
	set.Change = Slot{}
	switch {
	case c.newcomer() && over && set.Lists(c.Op.Peer):
		// Copy the anchor's entry: an interrupted join is still Joining there.
		for _, m := range anchor.Members {
			if m.Peer == c.Op.Peer {
				set = set.with(m)
			}
		}
	case c.restored() && over && peer == c.Op.Peer && set.Self.State == peerJoining:
		set.Self.State = peerQuarantined
	case c.Op.Kind == Leave && peer == c.Op.Peer && set.Self.State == peerLeaving && over && anchor.Lists(peer) && !c.dropped(peer):
		// The leave was refused.
		set.Self.State = peerActive
		if slices.Contains(anchor.peers(peerJoining), peer) {
			set.Self.State = peerJoining
		}
	}
	return set
}

// activated reports whether this change made the newcomer with PeerSet set a full member.
func (c *Change) activated(set PeerSet) bool {
	return c.mine(set) && set.Change.Over && set.Self.State == peerActive
}
