// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "cmp"

// list lists what peer holds and works it off, as the phase p demands.
func (c *Change) list(p changePhase, peer string) {
	if p != c.Phase && p != chCovering {
		c.Rounds = 0
	}
	c.enter(p)
	if p != chCovering {
		c.Worked, c.Stuck = false, false
		c.Result.Blocking = nil
	}
	c.spawn(chSurvey, peer)
	if c.Op.Lease > 1 {
		c.spawn(chBeat, c.Record.Anchor)
	}
}

func (c *Change) stepSurvey(i int, r Reply) {
	s := &c.Strands[i]
	switch {
	case s.Step == "" && c.Rounds > 0:
		c.pause(i, "rest")
	case s.Step != "survey":
		c.send(i, "survey", Command{Verb: Survey, Peer: s.Peer})
	case r.Code != OK:
		c.failed(i, r)
	default:
		c.finish(i)
		c.surveyed(s.Peer, r.Found)
	}
}

// surveyed begins the errands that the phase has for what was found in peer.
func (c *Change) surveyed(peer string, found []Found) {
	if peer == c.Op.Peer && c.restored() {
		c.inventory(found)
	}
	var errands []changeStrand
	for _, f := range found {
		if op, ok := c.errand(f); ok {
			op.ID, op.Coordinator, op.Mode, op.Target, op.Met = c.id(), c.Op.Coordinator, f.Mode, peer, f.Object
			if c.newcomer() {
				op.Doubted = c.Op.Peer
			}
			errands = append(errands, changeStrand{Job: chSub, Peer: peer, Key: f.Key, Sub: op})
		}
	}
	if c.Phase == chDraining && len(c.Result.Blocking) > 0 {
		// It is refused to leave, so nothing need go from it.
		return
	}
	for _, s := range errands {
		if c.Phase == chCovering && s.Sub.Mode == Once {
			c.Later = append(c.Later, s)
			continue
		}
		c.Strands = append(c.Strands, s)
		c.step(len(c.Strands)-1, Reply{})
	}
}

// errand is what the phase does about an object that was found.
func (c *Change) errand(f Found) (Operation, bool) {
	o := f.Object
	primary := o.Primary(f.Mode)
	switch c.Phase {
	case chSettling:
		switch {
		case f.Mode == Everywhere && o.Stage != Reserved && (primary || o.former(f.Mode) || o.yielded(f.Mode)):
			return Operation{Action: Resign, Into: c.ring()}, true
		case o.Claimed && !primary && !o.Undecided() && !c.listedByAny():
			// The members have what counts, and this is no evidence. A move, or whatever
			// else was begun while the peer was a member, may be on its way to it.
			return Operation{Action: Discard}, true
		case primary && o.Leaving():
			// Somebody else may own the name by now.
			c.Worked = true
			return Operation{Action: Sweep}, true
		case !o.Claimed, primary && o.Stage.committed():
			return Operation{}, false
		case primary && o.Undecided():
			// Only its record can say whether it is committed.
			c.Worked = true
			return Operation{Action: Sweep, Watch: true}, true
		case primary && o.Stage == Reserved:
			c.Worked = true
			return Operation{Action: Discard}, true
		default:
			return Operation{Action: Sweep, Watch: true}, true
		}
	case chCovering:
		if c.forgotten(f) {
			return c.lose(f)
		}
		if o.Claim.Peer == c.Op.Peer {
			return Operation{Action: Sweep}, primary && o.Leaving()
		}
		if primary && o.Pending() && !o.Undecided() && c.Sets[o.Claim.Peer].Self.State == peerJoining {
			// It cannot be committed in a peer that is no full member yet.
			c.Worked = true
			return Operation{Action: Discard}, true
		}
		if f.Mode == Everywhere && o.Pending() && primary && c.Rounds == 0 {
			c.Worked = true // it may be committed before the newcomer is asked for
		}
		into := []string{c.Op.Peer}
		if c.restored() && f.Mode == Everywhere && primary && o.InEffect() && o.term() >= generation {
			// It became home while the peer was not believed, when a replica may have been judged dead.
			into = append(into, c.ring()...)
		}
		return Operation{Action: Cover, Into: into}, (primary || !o.Claimed || o.former(f.Mode) || o.yielded(f.Mode)) && !o.Leaving() && (!o.Terminating || o.Requested())
	case chPlacing:
		if primary && o.Pending() && !o.Undecided() {
			// Its secondaries may be older than the lists that have the newcomer.
			c.Worked = true
			return Operation{Action: Discard}, true
		}
		if primary && o.Leaving() {
			c.Worked = true
			return Operation{Action: Sweep}, true
		}
		if f.Mode == Everywhere && o.Stage != Reserved && (o.former(f.Mode) || o.yielded(f.Mode)) {
			return Operation{Action: Resign, Into: c.ring()}, true
		}
		if o.Claimed && !primary {
			// What was judged before the members knew the newcomer may have been removed
			// without it since. A guard that is dead can wait for a sweep.
			return Operation{Action: Sweep}, c.succeeds() || f.Mode == Everywhere && o.Stage != Reserved
		}
		return Operation{Action: Cover, Into: c.ring(), Prove: c.restored()}, primary && o.InEffect()
	case chDraining:
		return c.drainage(f)
	case chRehoming:
		return c.rehoming(f)
	case chEmptying:
		return c.emptying(f)
	}
	return Operation{}, false
}

func (c *Change) stepSub(i int, r Reply) {
	s := &c.Strands[i]
	switch {
	case s.Step != "sub":
		sub := s.Sub
		c.send(i, "sub", Command{Verb: Sub, Peer: s.Peer, Key: s.Key, Sub: &sub})
	case r.Code != OK:
		c.failed(i, r)
	default:
		c.subbed(s.Key, s.Sub, r.Result)
		c.finish(i)
	}
}

// subbed takes note of what a sub-operation came to.
func (c *Change) subbed(key string, op Operation, r Result) {
	if op.Action == Resign && (r.Removed || r.Mended || op.Met.Leaving()) {
		c.Worked = true
		c.Taken = c.Taken || c.Phase == chPlacing
	}
	if op.Action == Sweep && c.Phase == chCovering && !op.Met.Primary(op.Mode) && !r.Removed && !op.Met.Terminating {
		// It is no reservation any more: it came into force meanwhile, or became home.
		c.Worked = true
	}
	if op.Action == Sweep && c.Phase == chPlacing && r.Removed {
		// Somebody's finalizer may hold it.
		c.Worked, c.Stuck = true, c.Stuck || op.Met.Terminating
		c.StuckAt = cmp.Or(c.StuckAt, c.Op.Peer)
	}
	if op.Action == Discard && r.Reason != Membership {
		c.Worked = true
	}
	switch {
	case len(r.Unproved) > 0 && c.Rounds < tries:
		// Its operation may be about to bind its guards.
		c.Stuck = true
		c.StuckAt = r.Unproved[0]
	case op.Action == Resign && r.Reason == Missing && (c.returned() || c.restored() && c.Phase == chPlacing), len(r.Unproved) > 0:
		c.Result.Blocking = append(c.Result.Blocking, Found{Key: key, Mode: op.Mode, Object: op.Met})
	case op.Action == Sweep && c.Phase == chPlacing && !op.Met.Leaving():
		// Whoever is alive ends it itself.
	case op.Action == Succeed && r.Reason == HeldByOther:
		c.lost(Found{Key: key, Mode: op.Mode, Object: op.Met})
	case op.Action == Move && r.Ending != Done && r.Ending != AlreadyDone:
		c.Stuck = true
		c.StuckAt = cmp.Or(r.Peer, op.Into[0])
	case len(r.Pending) == 0:
	case op.Action == Cover && r.HolderAt != "" && !op.Met.Claimed:
		// Two objects that nobody has claimed stand side by side.
	case op.Action == Cover && r.HolderAt != "" && c.Rounds > 0 && !op.Met.Pending():
		c.Result.Blocking = append(c.Result.Blocking, Found{Key: key, Mode: op.Mode, Object: r.Holder})
	default:
		c.Stuck = true
		c.StuckAt = r.Pending[0]
	}
}

// afterList lists the peer again if there was something to do, or goes on.
func (c *Change) afterList() {
	if c.Phase == chCovering {
		if c.At++; c.At < len(c.covered()) {
			c.list(chCovering, c.covered()[c.At])
			return
		}
		c.complete()
		return
	}
	peer := c.Op.Peer
	if c.Phase == chRehoming {
		peer = c.ring()[c.At]
	}
	again := c.Worked || c.Stuck
	if again && (c.Stuck || c.Phase == chCompleting) {
		c.Rounds++
	}
	blocked := len(c.Result.Blocking) > 0
	switch {
	case blocked && c.Phase == chDraining:
		c.because(Occupied, peer)
		c.keep()
	case again && (c.Expired || c.Op.Patience != Patient && c.Rounds > max(tries, c.Op.Lease)):
		c.because(Contended, c.StuckAt)
		c.stop()
	case again && c.Phase == chCompleting:
		c.survey()
	case again:
		c.list(c.Phase, peer)
	case blocked && c.restored():
		c.because(Occupied, peer)
		c.withhold()
	case blocked:
		c.because(Occupied, peer)
		c.expel()
	default:
		c.listed()
	}
}

// listed goes on when a peer holds nothing any more that the phase is about.
func (c *Change) listed() {
	switch c.Phase {
	case chSettling:
		c.admit()
	case chCompleting:
		c.list(chPlacing, c.Op.Peer)
	case chPlacing:
		if c.Taken {
			// What was home comes again as a replica.
			c.survey()
			return
		}
		c.activate()
	case chDraining:
		c.At = 0
		c.drop()
	case chEmptying:
		c.enter(chClosing)
		c.spawn(chWrite, c.Op.Peer)
	case chRehoming:
		c.At++
		c.rehome()
	}
}
