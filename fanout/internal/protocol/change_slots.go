// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"slices"
)

// A slotsJob takes the slots (the locks in the PeerSets that a change must hold) of the members and
// of the peer concerned, the anchor's first.
type slotsJob struct{ c *Change }

// takeNext takes the next slot: the anchor's, then those of the members that the anchor lists,
// by name, then the newcomer's.
func (j slotsJob) takeNext() {
	c := j.c
	c.Order = []string{c.Record.Anchor}
	if c.At > 0 {
		c.Order = j.order(c.Sets[c.Record.Anchor])
	}
	switch {
	case c.Order[0] != c.Record.Anchor:
		j.retreat("")
	case c.At > 0 && j.idle():
		closeJob{c}.begin()
	case c.At < len(c.Order) && c.newcomer() && c.Order[c.At] == c.Op.Peer && joinJob{c}.otherRing(c.Sets[c.Op.Peer]):
		// The newcomer joined another ring after the PeerSets were read.
		j.retreat("")
	case c.At < len(c.Order):
		c.enter(chTaking)
		c.spawn(chTake, c.Order[c.At])
	default:
		j.verify()
	}
}

func (j slotsJob) order(anchor PeerSet) []string {
	c := j.c
	order := slices.DeleteFunc(anchor.names(c.Op.Peer), func(p string) bool {
		// A peer that another full member has dropped need not be configured any longer. verify
		// finds that the anchor still lists this peer.
		_, read := c.Sets[p]
		return !read && anchorState{c}.dropped(p)
	})
	switch c.Op.Kind {
	case Leave:
		// The peer may have joined after the PeerSets were read.
		if _, ok := c.Sets[c.Op.Peer]; ok || anchor.Lists(c.Op.Peer) {
			order = append(order, c.Op.Peer)
		}
		if anchor.Lists(c.Op.Peer) {
			slices.Sort(order)
		}
	case Join, Return:
		order = append(order, c.Op.Peer)
	}
	return order
}

// idle reports whether the change has nothing to do, because its effect is there already or the peer
// concerned is no member. It records which of the two is the reason.
func (j slotsJob) idle() bool {
	c := j.c
	anchor, own := c.Sets[c.Record.Anchor], c.Sets[c.Op.Peer]
	listed := anchor.Lists(c.Op.Peer)
	switch {
	case c.holds(own) && c.Op.Peer != c.Record.Anchor:
		return false
	case c.Op.Kind == Join && slices.Contains(anchor.peers(peerActive), c.Op.Peer):
		c.because(alreadyDone, c.Op.Peer)
	case c.newcomer(), listed:
		return false
	case c.Op.Kind == Leave && anchor.left(c.Op.Peer) && own.Self.State != peerOut:
		// This very leave may have dropped the peer at the anchor after own was read.
		return false
	case c.Op.Kind == Force && c.mayFollowAnother():
		// Another process may have dropped the peer and not yet replaced the lost homes.
		return false
	case anchor.departed(c.Op.Peer):
		c.because(alreadyDone, c.Op.Peer)
	default:
		c.Result.Problem = c.Op.Peer + " is no member"
		c.because(Missing, c.Op.Peer)
	}
	return true
}

// ring returns the members without the peer concerned.
func (c *Change) ring() []string {
	return slices.DeleteFunc(slices.Clone(c.Order), func(p string) bool { return p == c.Op.Peer })
}

// A takeSlotTask takes the slot of one peer.
type takeSlotTask struct{ changeHandle }

func (s takeSlotTask) step(r Reply) {
	switch s.Step {
	case stepStart, stepRetry:
		s.send(stepRead, Command{Verb: ReadPeerSet, Peer: s.Peer})
	case stepRead:
		s.afterRead(r)
	case stepAnchor:
		s.afterAnchor(r)
	case stepFinished:
		s.afterFinish()
	case stepPut:
		s.afterPut(r)
	}
}

func (s takeSlotTask) afterRead(r Reply) {
	c := s.c
	s.Set = r.PeerSet
	switch {
	case r.Code == NotFound && s.Peer == c.Op.Peer && c.newcomer():
		s.Set = PeerSet{Self: Member{Peer: s.Peer, UID: c.Op.UID}}
		s.send(stepAnchor, Command{Verb: ReadPeerSet, Peer: c.Record.Anchor})
	case r.Code == NotFound:
		s.refuse(Membership, fmt.Sprintf("peer %s has no PeerSet", s.Peer))
	case r.Code != OK:
		s.failed(r)
	case c.holds(s.Set):
		c.Shared = c.Shared || s.Peer == c.Record.Anchor
		s.hold()
	case s.Peer != c.Op.Peer && anchorState{c}.cutAt(s.Set):
		// The removal of the anchor ended the change, whatever the anchor's slot holds.
		c.Again = true
		s.finish()
	case s.Set.Change.ID != "" && (s.Peer != c.Op.Peer || !c.newcomer()) && !s.usurps():
		s.occupied()
	case s.Peer != c.Record.Anchor:
		s.send(stepAnchor, Command{Verb: ReadPeerSet, Peer: c.Record.Anchor})
	case c.Held || c.Resumed || c.Op.Anchor != "" || !s.Set.current():
		c.Again = true
		s.finish()
	default:
		c.Sent = true
		s.Set.Change = c.slot()
		s.sendSet(stepPut, s.Set)
	}
}

func (s takeSlotTask) afterAnchor(r Reply) {
	c := s.c
	// r was read after the free slot. If the change is not over in r, the free slot may be taken:
	// no process frees a slot of the change before the change is over at the anchor.
	switch {
	case r.Code != OK:
		s.failed(r)
	case !c.holds(r.PeerSet) || r.PeerSet.Change.Over:
		c.Again = true
		s.finish()
	default:
		set := s.Set
		if s.Peer == c.Op.Peer && c.newcomer() {
			if (joinJob{c}).otherRing(set) {
				c.Sets[s.Peer] = set
				c.Again = true
				s.finish()
				return
			}
			set = restoreJob{c}.outgrown(joinJob{c}.quarantined(set))
		}
		set.Change = c.slot()
		s.sendSet(stepPut, set)
	}
}

func (s takeSlotTask) afterPut(r Reply) {
	switch {
	case r.Class == Applied:
		s.Set = r.PeerSet
		s.hold()
	case r.Code == Conflict || r.Code == Exists:
		s.send(stepRead, Command{Verb: ReadPeerSet, Peer: s.Peer})
	default:
		s.failed(r)
	}
}

// usurps reports whether a removal by force takes an occupied slot from the change that holds it.
// It does if occupied could not finish that change and its heartbeat has not changed since: it
// cannot finish without the removed peer. The other change is over then, and may be requested
// again. Even a process that can reach the anchor of the other change does not continue that
// change, because the members' lists differ.
func (s takeSlotTask) usurps() bool {
	c := s.c
	return c.Op.Kind == Force && s.Tries > 0 && s.Seen == sign(s.Set)
}

// sign returns a value that changes with each heartbeat of the change that holds a slot.
func sign(set PeerSet) string { return set.Change.ID + "@" + set.RV }

func (s takeSlotTask) hold() {
	c := s.c
	c.Sets[s.Peer] = s.Set
	if s.Peer == c.Record.Anchor {
		c.Held = true
	}
	s.finish()
}

// occupied waits for the change that holds the slot, and finishes it after a lease without a
// heartbeat.
func (s takeSlotTask) occupied() {
	c := s.c
	if sign := sign(s.Set); sign != s.Seen {
		s.Seen, s.Quiet, s.Tries = sign, 0, 0
	} else {
		s.Quiet++
	}
	switch {
	case c.Expired:
		s.late()
	case s.Quiet >= c.Op.Lease && c.Op.Kind == Force && s.Set.Change.Anchor == c.Op.Peer:
		// The other change has the removed peer as its anchor, so no process can end it there. If
		// that peer is reachable after all, the two changes would wait for each other.
		s.Tries++
		s.send(stepRead, Command{Verb: ReadPeerSet, Peer: s.Peer})
	case s.Quiet >= c.Op.Lease:
		other := s.Set.Change
		s.send(stepFinished, Command{Verb: Finish, Other: &other})
	default:
		s.pause(stepRetry)
	}
}

// afterFinish reads the slot again after an attempt to finish the change that holds it.
func (s takeSlotTask) afterFinish() {
	if s.c.Expired {
		s.late()
		return
	}
	s.again(stepRetry)
}

// late refuses the change because another one still holds the slot at the deadline.
func (s takeSlotTask) late() {
	other := s.Set.Change
	s.refuse(Late, fmt.Sprintf("%s of %s is under way (%s)", other.Kind, other.Peer, other.Coordinator))
}

func (j slotsJob) afterTaking() {
	c := j.c
	if c.At == 0 && c.Sets[c.Record.Anchor].Change.Over {
		closeJob{c}.release()
		return
	}
	c.At++
	j.takeNext()
}

// attempts bounds how often a change determines its anchor.
const attempts = 9

// retreat frees all slots and begins again: the ring differs from the PeerSets that were read
// before the first slot was taken.
func (j slotsJob) retreat(problem string) {
	c := j.c
	c.Result.Problem = problem
	c.Retreat = true
	closeJob{c}.begin()
}

// verify compares the lists of the members, which do not change while all slots are held, and
// starts the work of the change.
func (j slotsJob) verify() {
	c := j.c
	anchor := c.Sets[c.Record.Anchor]
	members := forceJob{c}.agreed(anchor)
	compared := members
	if c.Op.Kind == Leave && anchor.Lists(c.Op.Peer) {
		// The leaving peer may know that the anchor was removed by force.
		compared = append(slices.Clone(members), c.Op.Peer)
	}
	for _, p := range compared {
		// agreed leaves out the peer of an interrupted join, whose progress differs from member to member.
		names := forceJob{c}.agreed(c.Sets[p])
		if !slices.Equal(names, members) {
			j.retreat(fmt.Sprintf("%s lists %v, and %s %v", c.Record.Anchor, members, p, names))
			return
		}
	}
	c.At = 0
	switch c.Op.Kind {
	case Join, Return:
		joinJob{c}.begin()
	case Leave:
		leaveJob{c}.begin()
	case Force:
		leaveJob{c}.drop()
	}
}
