// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "fmt"

// changeStrand is the state of a task of a Change: one sequence of commands in a phase.
type changeStrand struct {
	Task  changeTask
	Peer  string
	Step  step
	Seq   int
	Busy  bool
	Over  bool
	Tries int
	Seen  string // the heartbeat of another change, as last read
	Quiet int    // quanta since that heartbeat changed
	Set   PeerSet
	Key   string
	Sub   Operation
}

type changeTask string

const (
	chBegin   changeTask = "begin"
	chAdvance changeTask = "advance"
	chForget  changeTask = "forget"
	chLook    changeTask = "look"
	chTake    changeTask = "take"
	chWrite   changeTask = "write"
	chSurvey  changeTask = "survey"
	chSub     changeTask = "sub"
	chBeat    changeTask = "beat"
)

// changeHandle is strand i of a change. The tasks of a change embed a changeHandle. A changeHandle
// is valid until the change adds another strand.
type changeHandle struct {
	*changeStrand
	c *Change
	i int
}

func (c *Change) strand(i int) changeHandle { return changeHandle{&c.Strands[i], c, i} }

func (s changeHandle) send(next step, cmd Command) {
	c := s.c
	s.Seq++
	s.Busy = true
	s.Step = next
	cmd.Strand, cmd.Seq = c.Earlier+s.i, s.Seq
	c.out = append(c.out, cmd)
}

func (s changeHandle) pause(next step) { s.send(next, Command{Verb: Sleep}) }

func (c *Change) spawn(j changeTask, peer string) {
	c.start(changeStrand{Task: j, Peer: peer})
}

// start adds a strand and takes its first step.
func (c *Change) start(s changeStrand) {
	c.Strands = append(c.Strands, s)
	c.step(len(c.Strands)-1, Reply{})
}

func (s changeHandle) finish() { s.Over = true }

func (c *Change) step(i int, r Reply) {
	switch s := c.strand(i); s.Task {
	case chBegin, chAdvance, chForget:
		changeLogTask{s}.step(r)
	case chLook:
		lookSetTask{s}.step(r)
	case chTake:
		takeSlotTask{s}.step(r)
	case chWrite:
		writeSetTask{s}.step(r)
	case chSurvey:
		surveyPeerTask{s}.step(r)
	case chSub:
		subTask{s}.step(r)
	case chBeat:
		changeBeatTask{s}.step(r)
	}
}

// again retries a peer that did not reply, from step next, or stops the change as Unreachable.
func (s changeHandle) again(next step) {
	c := s.c
	if s.Tries++; c.Expired || c.Op.Patience != Patient && s.Tries >= tries {
		s.refuse(Unreachable, "")
		return
	}
	s.pause(next)
}

// failed handles a request that did not succeed: it stops the change if the request was denied,
// and repeats the request otherwise.
func (s changeHandle) failed(r Reply) {
	if r.Code == Denied {
		s.refuse(Refused, "")
		return
	}
	s.again(stepRetry)
}

// A changeLogTask begins, writes or ends the entry of the change in the log.
type changeLogTask struct{ changeHandle }

func (s changeLogTask) step(r Reply) {
	c := s.c
	verb := map[changeTask]Verb{chBegin: Begin, chAdvance: Advance, chForget: Forget}[s.Task]
	switch {
	case s.Step == stepStart:
		s.send(stepLog, Command{Verb: verb})
	case r.Class != Applied && c.Phase != chEnding:
		// Another coordinator that has the entry, or a recovery, may carry out the change.
		c.Sent = c.Sent || r.Class == Unknown || r.Code == Conflict
		s.refuse(LogFailed, "")
	default:
		s.finish()
	}
}

// A changeBeatTask writes a heartbeat at the anchor while listed objects are processed.
type changeBeatTask struct{ changeHandle }

func (s changeBeatTask) step(r Reply) {
	c := s.c
	read := Command{Verb: ReadPeerSet, Peer: s.Peer}
	switch s.Step {
	case stepStart:
		s.pause(stepWait)
	case stepWait:
		if s.Tries++; s.Tries < max(1, c.Op.Lease/2) {
			s.pause(stepWait)
			return
		}
		s.Tries = 0
		s.send(stepBeat, read)
	case stepBeat:
		set := r.PeerSet
		switch {
		case r.Code != OK && r.Class != Unknown:
			s.pause(stepWait)
		case r.Code != OK || !c.holds(set) || set.Change.Over:
			s.finish()
		default:
			set.Change.Heartbeat++
			s.sendSet(stepBeaten, set)
		}
	case stepBeaten:
		s.pause(stepWait)
	}
}

// sendSet writes set, with the next epoch, into the strand's peer, if the PeerSet there has the
// version set.RV.
func (s changeHandle) sendSet(next step, set PeerSet) {
	set.Epoch++
	s.send(next, Command{Verb: PutPeerSet, Peer: s.Peer, RV: set.RV, Set: &set})
}

// A writeSetTask writes the PeerSet that the phase wants into its peer, if the change holds the
// peer's slot. If the phase has a witness, the task reads the witness's PeerSet between the read
// and the write, and writes only if writeJob.vouches accepts that PeerSet.
type writeSetTask struct{ changeHandle }

func (s writeSetTask) step(r Reply) {
	c := s.c
	switch s.Step {
	case stepStart, stepRetry:
		s.send(stepRead, Command{Verb: ReadPeerSet, Peer: s.Peer})
	case stepRead:
		s.afterRead(r)
	case stepWitness:
		switch {
		case r.Code != OK:
			s.failed(r)
		case !writeJob{c}.vouches(r.PeerSet):
			c.Again = true
			s.finish()
		default:
			c.Sets[writeJob{c}.witness(s.Peer)] = r.PeerSet
			s.edit()
		}
	case stepPut:
		if r.Class == Applied {
			c.Sets[s.Peer] = r.PeerSet
			s.finish()
			return
		}
		if r.Code == Conflict {
			s.send(stepRead, Command{Verb: ReadPeerSet, Peer: s.Peer})
			return
		}
		s.failed(r)
	}
}

func (s writeSetTask) afterRead(r Reply) {
	c := s.c
	switch {
	case closeJob{c}.leaving() && (r.Code == NotFound || r.Code == OK && !c.holds(r.PeerSet)):
		c.Sets[s.Peer] = r.PeerSet
		s.finish()
	case r.Code == NotFound:
		s.refuse(Membership, fmt.Sprintf("peer %s has no PeerSet", s.Peer))
	case r.Code != OK:
		s.failed(r)
	case !c.holds(r.PeerSet):
		c.Again = true
		s.finish()
	default:
		s.Set = r.PeerSet
		if w := (writeJob{c}).witness(s.Peer); w != "" {
			s.send(stepWitness, Command{Verb: ReadPeerSet, Peer: w})
			return
		}
		s.edit()
	}
}

// edit writes the PeerSet that the phase wants in place of the one that was read.
func (s writeSetTask) edit() {
	c := s.c
	set, what := writeJob{c}.wanted(s.Peer, s.Set)
	switch what {
	case changed:
		s.sendSet(stepPut, set)
	case unchanged:
		c.Sets[s.Peer] = s.Set
		s.finish()
	default:
		c.Again = true
		s.finish()
	}
}

// edited is the second result of wanted: whether the PeerSet must be written.
type edited uint8

const (
	changed   edited = iota
	unchanged        // the PeerSet is already as wanted
	elsewhere        // another process has continued the change, with another result: read all PeerSets again
)
