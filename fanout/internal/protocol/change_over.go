// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// A closeJob ends the change and frees its slots.
type closeJob struct{ c *Change }

// begin marks the change as over at the anchor before any slot is freed, so that a late process
// takes no further slot for the change.
func (j closeJob) begin() {
	c := j.c
	c.enter(chFinishing)
	c.spawn(chWrite, c.Record.Anchor)
}

// release frees the slots, the anchor's last.
func (j closeJob) release() {
	c := j.c
	c.AnchorNotHeld = !c.holds(c.Sets[c.Record.Anchor])
	c.enter(chReleasing)
	at := slices.Concat(c.Op.Peers, c.Order)
	slices.Sort(at)
	for _, p := range slices.Compact(at) {
		if p != c.Record.Anchor && (c.Op.Kind != Force || p != c.Op.Peer) {
			c.spawn(chWrite, p)
		}
	}
}

func (j closeJob) free() {
	c := j.c
	if (anchorState{c}).anchorless() {
		// The anchor's slot is not freed: a change that readmits the anchor takes the slot,
		// whatever the slot holds.
		j.conclude()
		return
	}
	c.enter(chFreeing)
	c.spawn(chWrite, c.Record.Anchor)
}

// leaving reports whether the change is freeing its slots.
func (j closeJob) leaving() bool {
	c := j.c
	return c.Phase == chReleasing || c.Phase == chFreeing
}

// conclude determines the ending once the slots are free, or begins the next attempt.
func (j closeJob) conclude() {
	c := j.c
	done := j.done()
	switch {
	case c.Retreat && c.Op.Anchor == "" && c.Record.Attempt < attempts && !c.Expired:
		j.repeat()
	case c.Result.Reason == alreadyDone:
		c.end(AlreadyDone)
	case done:
		c.Result.Reason, c.Result.Peer, c.Result.Problem = "", "", ""
		c.end(Done)
	case c.Result.Reason == "" && c.Retreat:
		c.because(Membership, c.Op.Peer)
		c.end(Aborted)
	case c.Result.Reason == "":
		// Another process ended the change, and its effect may have been undone since.
		c.end(Ended)
	default:
		c.end(Aborted)
	}
}

// repeat begins the next attempt.
func (j closeJob) repeat() {
	c := j.c
	attempt := c.Record.Attempt + 1
	c.Record = ChangeRecord{Attempt: attempt}
	c.Retreat, c.Held, c.Sent, c.Resumed, c.Shared = false, false, false, false, false
	c.Result = ChangeResult{}
	lookJob{c}.begin()
}

// done reports whether the PeerSets show the intended effect of the change.
func (j closeJob) done() bool {
	c := j.c
	member := slices.ContainsFunc(c.Op.Peers, func(p string) bool {
		return p != c.Op.Peer && c.Sets[p].current() && c.Sets[p].Lists(c.Op.Peer) && !(anchorState{c}).dropped(p)
	})
	own, known := c.Sets[c.Op.Peer]
	switch {
	case c.newcomer():
		return member && own.Self.State == peerActive && restoreJob{c}.reborn(own)
	case c.Op.Kind == Leave:
		// A peer that was dropped but not emptied has not finished its leave.
		return !member && (!known || own.Self.State == peerOut)
	default:
		return !member
	}
}
