// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"slices"
)

// takeNext takes the next slot: of the anchor, of the members as it lists them,
// in order of names, then of a newcomer.
func (c *Change) takeNext() {
	c.Order = []string{c.Record.Anchor}
	if c.At > 0 {
		c.Order = c.order(c.Sets[c.Record.Anchor])
	}
	switch {
	case c.Order[0] != c.Record.Anchor:
		c.retreat("")
	case c.At > 0 && c.idle():
		c.over()
	case c.At < len(c.Order) && c.newcomer() && c.Order[c.At] == c.Op.Peer && c.otherRing(c.Sets[c.Op.Peer]):
		// It changed rings since the ring was looked at.
		c.retreat("")
	case c.At < len(c.Order):
		c.enter(chTaking)
		c.spawn(chTake, c.Order[c.At])
	default:
		c.verify()
	}
}

func (c *Change) order(anchor PeerSet) []string {
	order := slices.DeleteFunc(anchor.names(c.Op.Peer), func(p string) bool {
		// Nobody has whom others have dropped configured any more. That the anchor
		// lists it is found when the lists are compared.
		_, read := c.Sets[p]
		return !read && c.dropped(p)
	})
	switch c.Op.Kind {
	case Leave:
		// It may have joined since the ring was looked at.
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

// idle says that there is nothing to do, and why.
func (c *Change) idle() bool {
	anchor, own := c.Sets[c.Record.Anchor], c.Sets[c.Op.Peer]
	listed := anchor.Lists(c.Op.Peer)
	switch {
	case c.mine(own) && c.Op.Peer != c.Record.Anchor:
		return false
	case c.Op.Kind == Join && slices.Contains(anchor.peers(peerActive), c.Op.Peer):
		c.because(alreadyDone, c.Op.Peer)
	case c.newcomer(), listed:
		return false
	case c.Op.Kind == Leave && anchor.left(c.Op.Peer) && own.Self.State != peerOut:
		// It may be this very leave that the anchor has seen drop it, after own
		// was read.
		return false
	case c.Op.Kind == Force && (c.Op.Anchor != "" || c.Resumed || c.Runs > 0):
		return false
	case anchor.departed(c.Op.Peer):
		c.because(alreadyDone, c.Op.Peer)
	default:
		c.Result.Problem = c.Op.Peer + " is no member"
		c.because(Missing, c.Op.Peer)
	}
	return true
}

// ring are the members but the peer concerned.
func (c *Change) ring() []string {
	return slices.DeleteFunc(slices.Clone(c.Order), func(p string) bool { return p == c.Op.Peer })
}

func (c *Change) stepTake(i int, r Reply) {
	s := &c.Strands[i]
	switch s.Step {
	case "", "retry":
		c.send(i, "read", Command{Verb: ReadPeerSet, Peer: s.Peer})
	case "read":
		s.Set = r.PeerSet
		switch {
		case r.Code == NotFound && s.Peer == c.Op.Peer && c.newcomer():
			s.Set = PeerSet{Self: Member{Peer: s.Peer, UID: c.Op.UID}}
			c.send(i, "anchor", Command{Verb: ReadPeerSet, Peer: c.Record.Anchor})
		case r.Code == NotFound:
			c.refuse(i, Membership, fmt.Sprintf("peer %s has no PeerSet", s.Peer))
		case r.Code != OK:
			c.failed(i, r)
		case c.mine(s.Set):
			c.hold(i)
		case s.Peer != c.Op.Peer && c.cutAt(s.Set):
			// The change was over when its anchor was given up, whatever that holds.
			c.Again = true
			c.finish(i)
		case s.Set.Change.ID != "" && (s.Peer != c.Op.Peer || !c.newcomer()) && !c.usurps(s):
			c.occupied(i)
		case s.Peer != c.Record.Anchor:
			c.send(i, "anchor", Command{Verb: ReadPeerSet, Peer: c.Record.Anchor})
		case c.Held || c.Resumed || c.Op.Anchor != "" || !s.Set.current():
			c.Again = true
			c.finish(i)
		default:
			c.Sent = true
			s.Set.Change = c.slot()
			c.sendSet(i, "put", s.Set)
		}
	case "anchor":
		// A slot that was free before the change was over at the anchor can be
		// taken for it: nobody frees it before.
		switch {
		case r.Code != OK:
			c.failed(i, r)
		case !c.mine(r.PeerSet) || r.PeerSet.Change.Over:
			c.Again = true
			c.finish(i)
		default:
			set := s.Set
			if s.Peer == c.Op.Peer && c.newcomer() {
				if c.otherRing(set) {
					c.Sets[s.Peer] = set
					c.Again = true
					c.finish(i)
					return
				}
				set = c.outgrown(c.quarantined(set))
			}
			set.Change = c.slot()
			c.sendSet(i, "put", set)
		}
	case "finished":
		c.again(i, "retry")
	case "put":
		switch {
		case r.Class == Applied:
			s.Set = r.PeerSet
			c.hold(i)
		case r.Code == Conflict || r.Code == Exists:
			c.send(i, "read", Command{Verb: ReadPeerSet, Peer: s.Peer})
		default:
			c.failed(i, r)
		}
	}
}

// usurps says that the slot in s is taken from the change that holds it: that
// one cannot be finished without the peer that is given up. It is over by that,
// and may be asked for again: who reaches its anchor finds that the members
// differ.
func (c *Change) usurps(s *changeStrand) bool {
	return c.Op.Kind == Force && s.Tries > 0 && s.Seen == sign(s.Set)
}

// sign is what changes with each sign of life of the change that holds a slot.
func sign(set PeerSet) string { return set.Change.ID + "@" + set.RV }

func (c *Change) hold(i int) {
	s := &c.Strands[i]
	c.Sets[s.Peer] = s.Set
	if s.Peer == c.Record.Anchor {
		c.Held = true
	}
	c.finish(i)
}

// occupied waits for the change that holds the slot, and finishes it when it
// shows no sign of life.
func (c *Change) occupied(i int) {
	s := &c.Strands[i]
	if sign := sign(s.Set); sign != s.Seen {
		s.Seen, s.Quiet, s.Tries = sign, 0, 0
	} else {
		s.Quiet++
	}
	switch {
	case c.Expired:
		c.refuse(i, Late, fmt.Sprintf("%s of %s is under way (%s)", s.Set.Change.Kind, s.Set.Change.Peer, s.Set.Change.Coordinator))
	case s.Quiet >= c.Op.Lease && c.Op.Kind == Force && s.Set.Change.Anchor == c.Op.Peer:
		// Nobody can end it there. If the peer answers nevertheless, the two would
		// wait for each other.
		s.Tries++
		c.send(i, "read", Command{Verb: ReadPeerSet, Peer: s.Peer})
	case s.Quiet >= c.Op.Lease:
		other := s.Set.Change
		c.send(i, "finished", Command{Verb: Finish, Other: &other})
	default:
		c.pause(i, "retry")
	}
}

func (c *Change) afterTaking() {
	if c.At == 0 && c.Sets[c.Record.Anchor].Change.Over {
		c.release()
		return
	}
	c.At++
	c.takeNext()
}

// attempts bounds how often a change looks for its anchor.
const attempts = 9

// retreat gives all slots back and begins again: the ring is another one than
// it seemed when the first slot was taken.
func (c *Change) retreat(problem string) {
	c.Result.Problem = problem
	c.Retreat = true
	c.over()
}

// verify compares the lists of the members, which do not change any more, and
// goes to work.
func (c *Change) verify() {
	anchor := c.Sets[c.Record.Anchor]
	members := c.agreed(anchor)
	compared := members
	if c.Op.Kind == Leave && anchor.Lists(c.Op.Peer) {
		// The anchor may have been given up, as the peer knows that it is about to drop.
		compared = append(slices.Clone(members), c.Op.Peer)
	}
	for _, p := range compared {
		// What an interrupted join has come to differs from member to member.
		names := c.agreed(c.Sets[p])
		if !slices.Equal(names, members) {
			c.retreat(fmt.Sprintf("%s lists %v, and %s %v", c.Record.Anchor, members, p, names))
			return
		}
	}
	c.At = 0
	switch c.Op.Kind {
	case Join, Return:
		c.join()
	case Leave:
		c.leave()
	case Force:
		c.drop()
	}
}
