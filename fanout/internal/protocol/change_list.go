// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "cmp"

// A listJob lists the objects in a peer and runs an operation on each, as the phase demands.
type listJob struct{ c *Change }

// begin enters phase p and lists the objects in peer, to process them as the phase demands.
func (j listJob) begin(p changePhase, peer string) {
	c := j.c
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

// A surveyPeerTask lists the objects in one peer.
type surveyPeerTask struct{ changeHandle }

func (s surveyPeerTask) step(r Reply) {
	c := s.c
	switch {
	case s.Step == stepStart && c.Rounds > 0:
		s.pause(stepRest)
	case s.Step != stepSurvey:
		s.send(stepSurvey, Command{Verb: Survey, Peer: s.Peer})
	case r.Code != OK:
		s.failed(r)
	default:
		s.finish()
		listJob{c}.surveyed(s.Peer, r.Found)
	}
}

// surveyed starts the phase's sub-operations for the objects found in peer.
func (j listJob) surveyed(peer string, found []Found) {
	c := j.c
	if peer == c.Op.Peer && c.restored() {
		restoreJob{c}.inventory(found)
	}
	var errands []changeStrand
	for _, f := range found {
		if op, ok := j.errand(f); ok {
			errands = append(errands, j.strandFor(op, peer, f))
		}
	}
	if c.Phase == chDraining && len(c.Result.Blocking) > 0 {
		// The leave is refused, so no object need be moved.
		return
	}
	for _, s := range errands {
		if c.Phase == chCovering && s.Sub.Mode == Once {
			c.Later = append(c.Later, s)
			continue
		}
		c.start(s)
	}
}

// strandFor returns the strand that runs op on f, an object in peer.
func (j listJob) strandFor(op Operation, peer string, f Found) changeStrand {
	c := j.c
	op.ID, op.Coordinator, op.Mode, op.Target, op.Met = c.id(), c.Op.Coordinator, f.Mode, peer, f.Object
	if c.newcomer() {
		op.Doubted = c.Op.Peer
	}
	return changeStrand{Task: chSub, Peer: peer, Key: f.Key, Sub: op}
}

// errand returns the phase's sub-operation for object f, or false if the phase has none.
func (j listJob) errand(f Found) (Operation, bool) {
	c := j.c
	switch c.Phase {
	case chSettling:
		return j.settling(f)
	case chCovering:
		return j.covering(f)
	case chPlacing:
		return j.placing(f)
	case chDraining:
		return leaveJob{c}.drainage(f)
	case chRehoming:
		return j.rehoming(f)
	case chEmptying:
		return leaveJob{c}.emptying(f)
	}
	return Operation{}, false
}

// settling returns the sub-operation that judges object f of a newcomer that is Quarantined.
func (j listJob) settling(f Found) (Operation, bool) {
	c := j.c
	o := f.Object
	primary := o.Primary(f.Mode)
	switch {
	case f.Mode == Everywhere && o.Stage != Reserved && (primary || o.former(f.Mode) || o.yielded(f.Mode)):
		return Operation{Action: Resign, Into: c.ring()}, true
	case primary:
		return j.settlingPrimary(o)
	case !o.Claimed:
		return Operation{}, false
	case !o.Undecided() && !joinJob{c}.listedByAny():
		// No member lists the newcomer, so this secondary proves no commit. A late write from the time when
		// the newcomer was a member, such as the end of a move, may still reach the secondary: the delete
		// voids that write.
		return Operation{Action: Discard}, true
	default:
		return Operation{Action: Sweep, Watch: true}, true
	}
}

func (j listJob) settlingPrimary(o Object) (Operation, bool) {
	c := j.c
	switch {
	case o.Leaving():
		// The sweep finishes the removal. In the members another object may have the name by now.
		c.Worked = true
		return Operation{Action: Sweep}, true
	case o.Stage.committed():
		return Operation{}, false
	case o.Undecided():
		// Only the object's record shows whether the object is committed.
		c.Worked = true
		return Operation{Action: Sweep, Watch: true}, true
	case o.Stage == Reserved:
		c.Worked = true
		return Operation{Action: Discard}, true
	default:
		return Operation{Action: Sweep, Watch: true}, true
	}
}

// covering returns the sub-operation that brings object f of a member to the newcomer.
func (j listJob) covering(f Found) (Operation, bool) {
	c := j.c
	o := f.Object
	primary := o.Primary(f.Mode)
	switch {
	case restoreJob{c}.forgotten(f):
		return restoreJob{c}.lose(f)
	case o.Claim.Peer == c.Op.Peer && o.Terminating && o.former(f.Mode):
		// Another process has begun to delete this former home, which is in the place of the replica.
		return Operation{Action: Resign, Into: c.ring()}, true
	case o.Claim.Peer == c.Op.Peer:
		return Operation{Action: Sweep}, primary && o.Leaving()
	case primary && o.Pending() && !o.Undecided() && c.Sets[o.Claim.Peer].Self.State == peerJoining:
		// The reservation cannot be committed in a peer that is no full member yet.
		c.Worked = true
		return Operation{Action: Discard}, true
	case f.Mode == Everywhere && o.Pending() && primary && c.Rounds == 0:
		c.Worked = true // the object may be committed without a secondary in the newcomer: list again
	}
	into := []string{c.Op.Peer}
	if c.restored() && f.Mode == Everywhere && primary && o.InEffect() && o.term() >= generation {
		// This home may have replaced a lost one while the restored peer's objects proved nothing. A process
		// may have judged a replica dead then, so all members must get the object again.
		into = append(into, c.ring()...)
	}
	return Operation{Action: Cover, Into: into}, f.covers()
}

// covers reports whether a newcomer gets a secondary of f: f is a primary, an unclaimed object or a
// former home (which names a later home), and is not being removed or deleted. A mere request for a
// removal does not count.
func (f Found) covers() bool {
	o := f.Object
	leads := o.Primary(f.Mode) || !o.Claimed || o.former(f.Mode) || o.yielded(f.Mode)
	return leads && !o.Leaving() && (!o.Terminating || o.Requested())
}

// placing returns the sub-operation that brings object f of the newcomer to the members.
func (j listJob) placing(f Found) (Operation, bool) {
	c := j.c
	o := f.Object
	primary := o.Primary(f.Mode)
	if primary && o.Pending() && !o.Undecided() {
		// A secondary of this reservation may be older than the newcomer's entry in the members' lists. A
		// process may have judged it dead before, and its delete may be on its way.
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
		// A removal may have missed this replica, because the members did not list the newcomer then. A
		// process that was killed between the create of a secondary and its next read of the primary may have
		// left a dead secondary. Other dead guards can wait for a later sweep.
		return Operation{Action: Sweep}, c.mayFollowAnother() || f.Mode == Everywhere && o.Stage != Reserved
	}
	return Operation{Action: Cover, Into: c.ring(), Prove: c.restored()}, primary && o.InEffect()
}

// A subTask runs an operation on one listed object.
type subTask struct{ changeHandle }

func (s subTask) step(r Reply) {
	c := s.c
	switch {
	case s.Step != stepSub:
		sub := s.Sub
		s.send(stepSub, Command{Verb: Sub, Peer: s.Peer, Key: s.Key, Sub: &sub})
	case r.Code != OK:
		s.failed(r)
	default:
		s.finish()
		listJob{c}.subbed(s.Key, s.Sub, r.Result)
	}
}

// subbed records the result of a sub-operation.
func (j listJob) subbed(key string, op Operation, r Result) {
	c := j.c
	j.progressed(op, r)
	found := Found{Key: key, Mode: op.Mode, Object: op.Met}
	missing := op.Action == Resign && r.Reason == Missing && (joinJob{c}.returned() || c.restored() && c.Phase == chPlacing)
	switch {
	case len(r.Unproved) > 0 && c.Rounds < tries:
		// The operation that committed the object may be about to bind the guards, which makes them proofs.
		j.stuck(r.Unproved[0])
	case missing, len(r.Unproved) > 0:
		c.Result.Blocking = append(c.Result.Blocking, found)
	case op.Action == Sweep && c.Phase == chPlacing && !op.Met.Leaving():
		// An operation that is still running settles the object.
	case op.Action == Succeed && r.Reason == HeldByOther:
		restoreJob{c}.reportLost(found)
	case op.Action == Move && r.Ending != Done && r.Ending != AlreadyDone:
		j.stuck(cmp.Or(r.Peer, op.Into[0]))
	case len(r.Pending) > 0:
		j.pending(found, op, r)
	}
}

// stuck records that an object in peer keeps the change from continuing. The phase then lists its
// peer once more.
func (j listJob) stuck(peer string) { j.c.Stuck, j.c.StuckAt = true, peer }

// pending records a sub-operation that some peers have not confirmed.
func (j listJob) pending(found Found, op Operation, r Result) {
	c := j.c
	held := op.Action == Cover && r.HolderAt != ""
	switch {
	case held && r.Holder.Leaving():
		// Only the end of the holder's removal frees the name, and any process may end that removal.
		j.stuck(r.HolderAt)
		c.start(j.strandFor(Operation{Action: Sweep}, r.HolderAt, Found{found.Key, found.Mode, r.Holder}))
	case held && op.Met.Pending():
		j.await(op.Target, found)
	case held && !op.Met.Claimed:
		// Two unclaimed objects may have the same name.
	case held && c.Rounds > 0:
		found.Object = r.Holder
		c.Result.Blocking = append(c.Result.Blocking, found)
	default:
		j.stuck(r.Pending[0])
	}
}

// await sweeps the reservation f in peer, which keeps the change from continuing: the sweep deletes
// f after a lease without a heartbeat. The process that created f may have ended, and no other
// process need ever sweep f.
func (j listJob) await(peer string, f Found) {
	j.stuck(peer)
	j.c.start(j.strandFor(Operation{Action: Sweep, Watch: true}, peer, f))
}

// progressed records whether a sub-operation changed something, so that the peer is listed again.
func (j listJob) progressed(op Operation, r Result) {
	c := j.c
	switch op.Action {
	case Resign:
		if r.Removed || r.Mended || op.Met.Leaving() {
			c.Worked = true
			c.HomeRetired = c.HomeRetired || c.Phase == chPlacing
		}
	case Sweep:
		j.swept(op, r)
	case Discard:
		c.Worked = c.Worked || r.Reason != Membership
	}
}

func (j listJob) swept(op Operation, r Result) {
	c := j.c
	switch {
	case c.Phase == chCovering && !op.Met.Primary(op.Mode) && !r.Removed && !op.Met.Terminating:
		// The sweep did not delete the object, so it is no reservation: it was activated or became home since
		// it was listed.
		c.Worked = true
	case c.Phase == chPlacing && r.Removed:
		// A finalizer that is not ours may keep a terminating object, so count this round: their number is
		// limited.
		c.Worked, c.Stuck = true, c.Stuck || op.Met.Terminating
		c.StuckAt = cmp.Or(c.StuckAt, c.Op.Peer)
	}
}

// afterList lists the peer again if the last list found work, and otherwise continues.
func (j listJob) afterList() {
	c := j.c
	if c.Phase == chCovering {
		j.afterCovering()
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
		leaveJob{c}.refuse()
	case again && j.tired():
		if c.StuckAt != "" {
			c.Result.Problem = "an object in " + c.StuckAt + " does not settle"
		}
		c.because(Contended, c.StuckAt)
		c.stop()
	case again && c.Phase == chCompleting:
		joinJob{c}.survey()
	case again:
		j.begin(c.Phase, peer)
	case blocked && c.restored():
		c.because(Occupied, peer)
		restoreJob{c}.withhold()
	case blocked:
		c.because(Occupied, peer)
		joinJob{c}.expel()
	default:
		j.listed()
	}
}

// afterCovering lists the next member whose objects are brought to the newcomer.
func (j listJob) afterCovering() {
	c := j.c
	covered := joinJob{c}.covered()
	if c.At++; c.At < len(covered) {
		j.begin(chCovering, covered[c.At])
		return
	}
	joinJob{c}.complete()
}

// tired reports whether the change stops although the peer should be listed again: its caller no
// longer waits, or a change that is not Patient has listed often enough.
func (j listJob) tired() bool {
	c := j.c
	return c.Expired || c.Op.Patience != Patient && c.Rounds > max(tries, c.Op.Lease)
}

// listed continues when a list of the peer finds no work for the phase.
func (j listJob) listed() {
	c := j.c
	switch c.Phase {
	case chSettling:
		joinJob{c}.admit()
	case chCompleting:
		j.begin(chPlacing, c.Op.Peer)
	case chPlacing:
		if c.HomeRetired {
			// The newcomer lost a home: give it the object again, as a replica.
			joinJob{c}.survey()
			return
		}
		joinJob{c}.activate()
	case chDraining:
		c.At = 0
		leaveJob{c}.drop()
	case chEmptying:
		c.enter(chClosing)
		c.spawn(chWrite, c.Op.Peer)
	case chRehoming:
		c.At++
		leaveJob{c}.rehome()
	}
}
