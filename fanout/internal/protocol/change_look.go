// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"slices"
)

// look reads every PeerSet, to find the ring and the progress of this change.
func (c *Change) look() {
	c.enter(chLooking)
	c.At, c.Absent = 0, nil
	for _, p := range c.Op.Peers {
		if c.Op.Kind != Force || p != c.Op.Peer {
			c.spawn(chLook, p)
		}
	}
}

func (c *Change) stepLook(i int, r Reply) {
	s := &c.Strands[i]
	switch {
	case s.Step != "read":
		c.send(i, "read", Command{Verb: ReadPeerSet, Peer: s.Peer})
	case r.Code == NotFound:
		c.Absent = append(c.Absent, s.Peer)
		delete(c.Sets, s.Peer)
		c.finish(i)
	case r.Code != OK:
		c.failed(i, r)
	case r.PeerSet.Self.Peer != s.Peer:
		c.refuse(i, Membership, fmt.Sprintf("the cluster behind peer %s calls itself %s", s.Peer, r.PeerSet.Self.Peer))
	default:
		c.Sets[s.Peer] = r.PeerSet
		c.finish(i)
	}
}

// afterLooking takes the anchor's slot, or continues the change if it holds that slot. A begun
// change that no longer holds the anchor's slot is over: it never takes the anchor twice.
func (c *Change) afterLooking() {
	begun := c.Record.Anchor != "" && (c.Held || c.Resumed || c.Op.Anchor != "")
	at, read := c.Sets[c.Record.Anchor]
	switch {
	case begun && !read && !slices.Contains(c.Absent, c.Record.Anchor) && !c.departed(c.Record.Anchor):
		c.because(Unreachable, c.Record.Anchor)
		c.Result.Problem = "its anchor " + c.Record.Anchor + " is not configured"
		c.stop()
	case begun && c.mine(at) && c.vacated():
		c.retreat(c.Record.Anchor + " has left")
	case begun && (!c.mine(at) || at.Change.Over || c.cut()):
		c.release()
	case begun:
		c.Held = true
		c.takeNext()
	default:
		c.Record.Anchor = c.anchor()
		if problem := c.unconfigured(); problem != "" {
			c.Record.Anchor = ""
			c.Result.Problem = problem
			c.because(Membership, c.Op.Peer)
			c.end(Aborted)
			return
		}
		if peer, problem := c.foreign(); problem != "" {
			c.Record.Anchor = ""
			c.Result.Problem = problem
			c.because(OtherRing, peer)
			c.end(Aborted)
			return
		}
		c.Record.Epoch = c.Sets[c.Op.Peer].Epoch
		c.enter(chAdvancing)
		c.spawn(chAdvance, "")
	}
}

// anchor returns the first member by name, at which all changes compete, or "".
func (c *Change) anchor() string {
	for _, p := range slices.Sorted(slices.Values(c.Op.Peers)) {
		set, ok := c.Sets[p]
		member := ok && set.Lists(p) && set.current()
		if !member || p == c.Op.Peer && c.Op.Kind != Leave || c.dropped(p) {
			continue
		}
		return p
	}
	return ""
}

// dropped reports whether another full member lists peer as departed. peer itself need not
// know.
func (c *Change) dropped(peer string) bool {
	for p, set := range c.Sets {
		if p != peer && p != c.Op.Peer && set.current() && set.Gone(peer) && !c.Sets[peer].Gone(p) {
			return true
		}
	}
	return false
}

// departed reports whether a peer that is not configured has left the ring.
func (c *Change) departed(peer string) bool {
	for _, set := range c.Sets {
		if set.current() && set.Gone(peer) {
			return true
		}
	}
	return false
}

// anchorless reports whether the anchor is no longer a member, so that no process ends the
// change there.
func (c *Change) anchorless() bool {
	return !slices.Contains(c.Op.Peers, c.Record.Anchor) || c.cut() && !c.vacated()
}

// vacated reports whether the anchor had left, as another member knew, when its slot was taken.
// The anchor is reachable, so its slot is freed.
func (c *Change) vacated() bool {
	given := false
	for p, set := range c.Sets {
		given = given || p != c.Record.Anchor && set.current() && set.forced(c.Record.Anchor)
	}
	return c.cut() && !given
}

// cut reports whether the anchor was removed from the ring, which ends the change.
func (c *Change) cut() bool {
	for p, set := range c.Sets {
		if p != c.Record.Anchor && p != c.Op.Peer && set.current() && !c.Sets[c.Record.Anchor].Gone(p) && c.cutAt(set) {
			return true
		}
	}
	return false
}

// cutAt reports whether set lists the anchor as departed, unless the anchor leaves by this very
// change.
func (c *Change) cutAt(set PeerSet) bool {
	return set.Gone(c.Record.Anchor) && (c.Op.Peer != c.Record.Anchor || !set.left(c.Record.Anchor))
}

func (c *Change) unconfigured() string {
	if c.Record.Anchor == "" {
		return "no configured peer is an Active member of a ring"
	}
	for _, p := range c.Sets[c.Record.Anchor].names("") {
		if !slices.Contains(c.Op.Peers, p) && (c.Op.Kind != Force || p != c.Op.Peer) {
			return fmt.Sprintf("by the PeerSet of %s, %s is a member and not configured", c.Record.Anchor, p)
		}
	}
	return ""
}
