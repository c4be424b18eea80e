// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "fmt"

// changeStrand is one thread of a phase of a Change.
type changeStrand struct {
	Job   changeJob
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

type changeJob string

const (
	chBegin   changeJob = "begin"
	chAdvance changeJob = "advance"
	chForget  changeJob = "forget"
	chLook    changeJob = "look"
	chTake    changeJob = "take"
	chWrite   changeJob = "write"
	chSurvey  changeJob = "survey"
	chSub     changeJob = "sub"
	chBeat    changeJob = "beat"
)

func (c *Change) send(i int, next step, cmd Command) {
	s := &c.Strands[i]
	s.Seq++
	s.Busy = true
	s.Step = next
	cmd.Strand, cmd.Seq = c.Earlier+i, s.Seq
	c.out = append(c.out, cmd)
}

func (c *Change) pause(i int, next step) { c.send(i, next, Command{Verb: Sleep}) }

func (c *Change) spawn(j changeJob, peer string) {
	c.Strands = append(c.Strands, changeStrand{Job: j, Peer: peer})
	c.step(len(c.Strands)-1, Reply{})
}

func (c *Change) finish(i int) { c.Strands[i].Over = true }

func (c *Change) step(i int, r Reply) {
	switch c.Strands[i].Job {
	case chBegin, chAdvance, chForget:
		c.stepLog(i, r)
	case chLook:
		c.stepLook(i, r)
	case chTake:
		c.stepTake(i, r)
	case chWrite:
		c.stepWrite(i, r)
	case chSurvey:
		c.stepSurvey(i, r)
	case chSub:
		c.stepSub(i, r)
	case chBeat:
		c.stepBeat(i, r)
	}
}

// again retries a peer that did not reply, from step next, or stops the change as Unreachable.
func (c *Change) again(i int, next step) {
	s := &c.Strands[i]
	if s.Tries++; c.Expired || c.Op.Patience != Patient && s.Tries >= tries {
		c.refuse(i, Unreachable, "")
		return
	}
	c.pause(i, next)
}

// failed handles a request that did not succeed: it stops the change if the request was denied,
// and retries it otherwise.
func (c *Change) failed(i int, r Reply) {
	if r.Code == Denied {
		c.refuse(i, Refused, "")
		return
	}
	c.again(i, "retry")
}

func (c *Change) stepLog(i int, r Reply) {
	s := &c.Strands[i]
	verb := map[changeJob]Verb{chBegin: Begin, chAdvance: Advance, chForget: Forget}[s.Job]
	switch {
	case s.Step == "":
		c.send(i, "log", Command{Verb: verb})
	case r.Class != Applied && c.Phase != chEnding:
		// Another coordinator that has the entry, or a recovery, carries the change out.
		c.Sent = c.Sent || r.Class == Unknown || r.Code == Conflict
		c.refuse(i, LogFailed, "")
	default:
		c.finish(i)
	}
}

// stepBeat writes a heartbeat at the anchor while listed objects are processed.
func (c *Change) stepBeat(i int, r Reply) {
	s := &c.Strands[i]
	read := Command{Verb: ReadPeerSet, Peer: s.Peer}
	switch s.Step {
	case "":
		c.pause(i, "wait")
	case "wait":
		if s.Tries++; s.Tries < max(1, c.Op.Lease/2) {
			c.pause(i, "wait")
			return
		}
		s.Tries = 0
		c.send(i, "beat", read)
	case "beat":
		set := r.PeerSet
		switch {
		case r.Code != OK && r.Class != Unknown:
			c.pause(i, "wait")
		case r.Code != OK || !c.mine(set) || set.Change.Over:
			c.finish(i)
		default:
			set.Change.Heartbeat++
			c.sendSet(i, "beaten", set)
		}
	case "beaten":
		c.pause(i, "wait")
	}
}

// sendSet writes a PeerSet, on condition of the version that was read.
func (c *Change) sendSet(i int, next step, set PeerSet) {
	set.Epoch++
	c.send(i, next, Command{Verb: PutPeerSet, Peer: c.Strands[i].Peer, RV: set.RV, Set: &set})
}

// stepWrite writes the PeerSet that the phase wants into the strand's peer, if the change holds
// its slot. If the phase has a witness, it reads the witness's PeerSet after the one to write,
// and writes only if the witness still agreed by then.
func (c *Change) stepWrite(i int, r Reply) {
	s := &c.Strands[i]
	switch s.Step {
	case "", "retry":
		c.send(i, "read", Command{Verb: ReadPeerSet, Peer: s.Peer})
	case "read":
		switch {
		case c.leaving() && (r.Code == NotFound || r.Code == OK && !c.mine(r.PeerSet)):
			c.Sets[s.Peer] = r.PeerSet
			c.finish(i)
		case r.Code == NotFound:
			c.refuse(i, Membership, fmt.Sprintf("peer %s has no PeerSet", s.Peer))
		case r.Code != OK:
			c.failed(i, r)
		case !c.mine(r.PeerSet):
			c.Again = true
			c.finish(i)
		default:
			s.Set = r.PeerSet
			if w := c.witness(s.Peer); w != "" {
				c.send(i, "witness", Command{Verb: ReadPeerSet, Peer: w})
				return
			}
			c.edit(i)
		}
	case "witness":
		switch {
		case r.Code != OK:
			c.failed(i, r)
		case !c.vouches(r.PeerSet):
			c.Again = true
			c.finish(i)
		default:
			c.Sets[c.witness(s.Peer)] = r.PeerSet
			c.edit(i)
		}
	case "put":
		if r.Class == Applied {
			c.Sets[s.Peer] = r.PeerSet
			c.finish(i)
			return
		}
		if r.Code == Conflict {
			c.send(i, "read", Command{Verb: ReadPeerSet, Peer: s.Peer})
			return
		}
		c.failed(i, r)
	}
}

// edit writes the PeerSet that the phase wants in place of the one that was read.
func (c *Change) edit(i int) {
	s := &c.Strands[i]
	set, what := c.wanted(s.Peer, s.Set)
	switch what {
	case changed:
		c.sendSet(i, "put", set)
	case unchanged:
		c.Sets[s.Peer] = s.Set
		c.finish(i)
	default:
		c.Again = true
		c.finish(i)
	}
}

// edited is the outcome of wanted.
type edited uint8

const (
	changed   edited = iota
	unchanged        // it is already as wanted
	elsewhere        // another process has made another change: read all PeerSets again
)
