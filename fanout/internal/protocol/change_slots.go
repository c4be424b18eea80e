// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"slices"
)

// look reads every PeerSet, to find the ring or what has become of this change.
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

// afterLooking takes the anchor's slot, or goes on with the change that it is
// held for. A change whose slot the anchor does not hold any more is over: it
// never takes the anchor twice.
func (c *Change) afterLooking() {
	begun := c.Record.Anchor != "" && (c.Held || c.Resumed || c.Op.Anchor != "")
	at, read := c.Sets[c.Record.Anchor]
	switch {
	case begun && !read && !slices.Contains(c.Absent, c.Record.Anchor) && !c.departed(c.Record.Anchor):
		c.because(Unreachable, c.Record.Anchor)
		c.Result.Problem = "its anchor " + c.Record.Anchor + " is not configured"
		c.stop()
	case begun && (!c.mine(at) || at.Change.Over):
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
		c.enter(chAdvancing)
		c.spawn(chAdvance, "")
	}
}

// anchor is the first member in order of names: there all changes meet.
func (c *Change) anchor() string {
	for _, p := range slices.Sorted(slices.Values(c.Op.Peers)) {
		set, ok := c.Sets[p]
		member := ok && set.lists(p) && (set.Self.State == peerActive || set.Self.State == peerLeaving)
		if !member || p == c.Op.Peer && c.Op.Kind != Leave || c.dropped(p) {
			continue
		}
		return p
	}
	return ""
}

// dropped says whether another member has seen peer depart: peer itself need not
// know.
func (c *Change) dropped(peer string) bool {
	for p, set := range c.Sets {
		if p != peer && p != c.Op.Peer && set.Gone(peer) && !c.Sets[peer].Gone(p) {
			return true
		}
	}
	return false
}

// departed says whether a peer that is not configured has left the ring.
func (c *Change) departed(peer string) bool {
	for _, set := range c.Sets {
		if set.Gone(peer) {
			return true
		}
	}
	return false
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
	case c.At < len(c.Order):
		c.enter(chTaking)
		c.spawn(chTake, c.Order[c.At])
	default:
		c.verify()
	}
}

func (c *Change) order(anchor PeerSet) []string {
	order := anchor.names(c.Op.Peer)
	switch c.Op.Kind {
	case Leave:
		if _, ok := c.Sets[c.Op.Peer]; ok {
			order = append(order, c.Op.Peer)
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
	listed := anchor.lists(c.Op.Peer)
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
		case s.Set.Change.ID != "" && (s.Peer != c.Op.Peer || !c.newcomer()) && !c.usurps(s):
			c.occupied(i)
		case s.Peer != c.Record.Anchor:
			c.send(i, "anchor", Command{Verb: ReadPeerSet, Peer: c.Record.Anchor})
		case c.Held || c.Resumed || c.Op.Anchor != "" || s.Set.Self.State != peerActive && s.Set.Self.State != peerLeaving:
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
				set = c.quarantined(set)
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
	members := anchor.full(c.Op.Peer)
	for _, p := range members {
		// What an interrupted join has come to differs from member to member.
		if names := c.Sets[p].full(c.Op.Peer); !slices.Equal(names, members) {
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

// over marks the change as over at the anchor, before any slot is freed: whoever
// is late takes none for it any more.
func (c *Change) over() {
	c.enter(chFinishing)
	c.spawn(chWrite, c.Record.Anchor)
}

// release frees the slots, the anchor's last.
func (c *Change) release() {
	c.Strange = !c.mine(c.Sets[c.Record.Anchor])
	c.enter(chReleasing)
	at := slices.Concat(c.Op.Peers, c.Order)
	slices.Sort(at)
	for _, p := range slices.Compact(at) {
		if p != c.Record.Anchor && (c.Op.Kind != Force || p != c.Op.Peer) {
			c.spawn(chWrite, p)
		}
	}
}

func (c *Change) free() {
	c.enter(chFreeing)
	c.spawn(chWrite, c.Record.Anchor)
}

// leaving says that the slots are being given back.
func (c *Change) leaving() bool { return c.Phase == chReleasing || c.Phase == chFreeing }

// conclude tells what came of the change once its slots are free.
func (c *Change) conclude() {
	if c.Retreat && c.Op.Anchor == "" && c.Record.Attempt < attempts && !c.Expired {
		attempt := c.Record.Attempt + 1
		c.Record = ChangeRecord{Attempt: attempt}
		c.Retreat, c.Held, c.Sent, c.Resumed = false, false, false, false
		c.Result = ChangeResult{}
		c.look()
		return
	}
	member := false
	for _, p := range c.Op.Peers {
		if p != c.Op.Peer && p != "" && c.Sets[p].lists(c.Op.Peer) && !c.dropped(p) {
			member = true
		}
	}
	done := !member
	if c.newcomer() {
		done = member && c.Sets[c.Op.Peer].Self.State == peerActive
	}
	switch {
	case c.Result.Reason == alreadyDone:
		c.end(AlreadyDone)
	case done:
		c.Result.Reason, c.Result.Peer, c.Result.Problem = "", "", ""
		c.end(Done)
	case c.Result.Reason == "" && c.Retreat:
		c.because(Membership, c.Op.Peer)
		c.end(Aborted)
	case c.Result.Reason == "":
		// Somebody else ended it, and what it did may have been undone since.
		c.end(Ended)
	default:
		c.end(Aborted)
	}
}
