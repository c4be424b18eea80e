// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

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
	if c.anchorless() {
		// It has departed. Whoever brings it back takes its slot, whatever stands
		// in it.
		c.conclude()
		return
	}
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
		if p != c.Op.Peer && c.Sets[p].current() && c.Sets[p].Lists(c.Op.Peer) && !c.dropped(p) {
			member = true
		}
	}
	own, known := c.Sets[c.Op.Peer]
	done := !member
	switch {
	case c.newcomer():
		done = member && own.Self.State == peerActive && c.reborn(own)
	case c.Op.Kind == Leave:
		// Who is dropped and not emptied was cut short.
		done = !member && (!known || own.Self.State == peerOut)
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
