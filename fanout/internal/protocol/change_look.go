// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"slices"
)

// A lookJob reads every PeerSet, to find the ring and the progress of the change.
type lookJob struct{ c *Change }

// begin reads the PeerSet of every configured peer, except that of a peer to be removed by force.
func (j lookJob) begin() {
	c := j.c
	c.enter(chLooking)
	c.At, c.Absent = 0, nil
	for _, p := range c.Op.Peers {
		if c.Op.Kind != Force || p != c.Op.Peer {
			c.spawn(chLook, p)
		}
	}
}

// A lookSetTask reads the PeerSet of one peer.
type lookSetTask struct{ changeHandle }

func (s lookSetTask) step(r Reply) {
	c := s.c
	switch {
	case s.Step != stepRead:
		s.send(stepRead, Command{Verb: ReadPeerSet, Peer: s.Peer})
	case r.Code == NotFound:
		c.Absent = append(c.Absent, s.Peer)
		delete(c.Sets, s.Peer)
		s.finish()
	case r.Code != OK:
		s.failed(r)
	case r.PeerSet.Self.Peer != s.Peer:
		s.refuse(Membership, fmt.Sprintf("the cluster behind peer %s calls itself %s", s.Peer, r.PeerSet.Self.Peer))
	default:
		c.Sets[s.Peer] = r.PeerSet
		s.finish()
	}
}

// afterLooking begins the change, or continues it if it holds the slot of its anchor (the member
// whose slot every change takes first). A change takes that slot only once. So if the change has
// begun and no longer holds that slot, it is over: afterLooking frees its other slots.
func (j lookJob) afterLooking() {
	c := j.c
	begun := c.Record.Anchor != "" && (c.Held || c.Resumed || c.Op.Anchor != "")
	at, read := c.Sets[c.Record.Anchor]
	switch {
	case begun && !read && !slices.Contains(c.Absent, c.Record.Anchor) && !anchorState{c}.departed(c.Record.Anchor):
		c.because(Unreachable, c.Record.Anchor)
		c.Result.Problem = "its anchor " + c.Record.Anchor + " is not configured"
		c.stop()
	case begun && c.holds(at) && anchorState{c}.vacated():
		slotsJob{c}.retreat(c.Record.Anchor + " has left")
	case begun && (!c.holds(at) || at.Change.Over || anchorState{c}.cut()):
		closeJob{c}.release()
	case begun:
		c.Held = true
		slotsJob{c}.takeNext()
	default:
		j.start()
	}
}

// start begins a change that holds no slot yet.
func (j lookJob) start() {
	c := j.c
	c.Record.Anchor = j.anchor()
	if problem := j.unconfigured(); problem != "" {
		j.reject(Membership, c.Op.Peer, problem)
		return
	}
	if peer, problem := (joinJob{c}).foreign(); problem != "" {
		j.reject(OtherRing, peer, problem)
		return
	}
	c.Record.Epoch = c.Sets[c.Op.Peer].Epoch
	c.enter(chAdvancing)
	c.spawn(chAdvance, "")
}

// reject ends the change before it holds a slot.
func (j lookJob) reject(reason Reason, peer, problem string) {
	c := j.c
	c.Record.Anchor = ""
	c.Result.Problem = problem
	c.because(reason, peer)
	c.end(Aborted)
}

// anchor returns the first member by name, at which all changes compete, or "" if no configured
// peer can be the anchor.
func (j lookJob) anchor() string {
	c := j.c
	for _, p := range slices.Sorted(slices.Values(c.Op.Peers)) {
		set, ok := c.Sets[p]
		member := ok && set.Lists(p) && set.current()
		if !member || p == c.Op.Peer && c.Op.Kind != Leave || (anchorState{c}).dropped(p) {
			continue
		}
		return p
	}
	return ""
}

// An anchorState judges by the PeerSets that were read whether the anchor, or another peer, is
// still a member.
type anchorState struct{ c *Change }

// dropped reports whether another full member (Active or Leaving by its own PeerSet) lists peer as
// departed, while peer does not list that member as departed. The PeerSet of peer itself need not
// show its departure.
func (j anchorState) dropped(peer string) bool {
	c := j.c
	for p, set := range c.Sets {
		if p != peer && p != c.Op.Peer && set.current() && set.Gone(peer) && !c.Sets[peer].Gone(p) {
			return true
		}
	}
	return false
}

// departed reports whether a full member lists peer as departed. Use it for a peer whose own
// PeerSet was not read, because the peer is not configured.
func (j anchorState) departed(peer string) bool {
	c := j.c
	for _, set := range c.Sets {
		if set.current() && set.Gone(peer) {
			return true
		}
	}
	return false
}

// anchorless reports whether the change cannot be ended at the anchor, because the anchor is not
// configured or was removed by force.
func (j anchorState) anchorless() bool {
	c := j.c
	return !slices.Contains(c.Op.Peers, c.Record.Anchor) || j.cut() && !j.vacated()
}

// vacated reports whether the anchor had left the ring when its slot was taken: a full member lists
// the anchor as departed, and no full member lists it as removed by force. Such an anchor is
// reachable, so its slot is freed.
func (j anchorState) vacated() bool {
	c := j.c
	given := false
	for p, set := range c.Sets {
		given = given || p != c.Record.Anchor && set.current() && set.forced(c.Record.Anchor)
	}
	return j.cut() && !given
}

// cut reports whether a full member lists the anchor as departed, and not by this very change. The
// change, or this attempt of it, is over then.
func (j anchorState) cut() bool {
	c := j.c
	for p, set := range c.Sets {
		if p != c.Record.Anchor && p != c.Op.Peer && set.current() && !c.Sets[c.Record.Anchor].Gone(p) && j.cutAt(set) {
			return true
		}
	}
	return false
}

// cutAt reports whether set lists the anchor as departed, unless the anchor leaves by this very
// change.
func (j anchorState) cutAt(set PeerSet) bool {
	c := j.c
	return set.Gone(c.Record.Anchor) && (c.Op.Peer != c.Record.Anchor || !set.left(c.Record.Anchor))
}

func (j lookJob) unconfigured() string {
	c := j.c
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
