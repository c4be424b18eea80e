// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// Strand is one sequence of commands in a phase.
type Strand struct {
	Job    job
	Peer   string
	Step   step
	Seq    int
	Busy   bool // a command is outstanding
	Over   bool
	X, Y   Object // the object in the way, or to be brought, and its primary
	Tries  int    // how often a peer did not answer, or an object lingered
	Turns  int    // how often the name changed its owner
	Seen   string // incarnation of the rival's primary when last read
	Quiet  int    // quanta since Seen changed
	Unsure bool   // a create of this strand may still be applied
	Fresh  bool   // X was written by this strand
	Asked  int    // how many members were asked which of two peers was restored
}

type (
	job  string
	step string
)

// tries bounds how often a Hasty operation asks a peer that does not answer. takeovers
// bounds how often any operation begins again because a name changed its owner.
const (
	tries     = 3
	takeovers = 16
)

const (
	jobBegin    job = "begin"
	jobAcquire  job = "acquire"
	jobPeerSet  job = "peerset"
	jobOwner    job = "owner"
	jobBeat     job = "beat"
	jobAdvance  job = "advance"
	jobForget   job = "forget"
	jobCommit   job = "commit"
	jobBring    job = "bring"
	jobActivate job = "activate"
	jobFence    job = "fence"
	jobClean    job = "clean"
	jobFind     job = "find"
	jobList     job = "list"
	jobMark     job = "mark"
	jobCount    job = "count"
	jobHold     job = "hold"
	jobEmpty    job = "empty"
	jobClear    job = "clear"
	jobRelease  job = "release"
	jobDrop     job = "drop"
	jobRevise   job = "revise"
	jobGuard    job = "guard"
	jobJudge    job = "judge"
	jobLook     job = "look"
	jobDiscard  job = "discard"
	jobFollow   job = "follow"
	jobYield    job = "yield"
	jobRetire   job = "retire"
	jobMeet     job = "meet"
	jobAdopt    job = "adopt"
	jobAccept   job = "accept"
	jobSurvey   job = "survey"
	jobFreeze   job = "freeze"
	jobCrown    job = "crown"
	jobResign   job = "resign"
	jobSeal     job = "seal"
	jobMend     job = "mend"
	jobAttest   job = "attest"
)

// send emits a command of strand i.
func (m *Machine) send(i int, next step, c Command) {
	s := &m.Strands[i]
	s.Seq++
	s.Busy = true
	s.Step = next
	c.Strand, c.Seq = m.Earlier+i, s.Seq
	m.out = append(m.out, c)
}

// pause makes strand i wait for one quantum before step next.
func (m *Machine) pause(i int, next step) { m.send(i, next, Command{Verb: Sleep}) }

// spawn adds a strand and takes its first step.
func (m *Machine) spawn(j job, peer string) {
	m.Strands = append(m.Strands, Strand{Job: j, Peer: peer})
	m.step(len(m.Strands)-1, Reply{})
}

// finish ends strand i.
func (m *Machine) finish(i int) { m.Strands[i].Over = true }

// step advances strand i by one reply.
func (m *Machine) step(i int, r Reply) {
	switch m.Strands[i].Job {
	case jobBegin:
		m.stepBegin(i, r)
	case jobAcquire:
		m.stepAcquire(i, r)
	case jobPeerSet:
		m.stepPeerSet(i, r)
	case jobOwner:
		m.stepOwner(i, r)
	case jobBeat:
		m.stepBeat(i, r)
	case jobAdvance, jobForget:
		m.stepLog(i, r)
	case jobCommit:
		m.stepCommit(i, r)
	case jobBring:
		m.stepBring(i, r)
	case jobActivate:
		m.stepActivate(i, r)
	case jobAttest:
		m.stepAttest(i, r)
	case jobFence:
		m.stepFence(i, r)
	case jobClean:
		m.stepClean(i, r)
	case jobFind:
		m.stepFind(i, r)
	case jobList:
		m.stepList(i, r)
	case jobMark:
		m.stepMark(i, r)
	case jobCount:
		m.stepCount(i, r)
	case jobHold:
		m.stepHold(i, r)
	case jobEmpty:
		m.stepEmpty(i, r)
	case jobClear:
		m.stepClear(i, r)
	case jobRelease:
		m.stepRelease(i, r)
	case jobDrop:
		m.stepDrop(i, r)
	case jobRevise:
		m.stepRevise(i, r)
	case jobGuard:
		m.stepGuard(i, r)
	case jobJudge:
		m.stepJudge(i, r)
	case jobLook:
		m.stepLook(i, r)
	case jobConvert:
		m.stepConvert(i, r)
	case jobBind:
		m.stepBind(i, r)
	case jobWithdraw:
		m.stepWithdraw(i, r)
	case jobRecord:
		m.stepRecord(i, r)
	case jobDeparted:
		m.stepDeparted(i, r)
	case jobDiscard:
		m.stepDiscard(i, r)
	case jobFollow:
		m.stepFollow(i, r)
	case jobYield:
		m.stepYield(i, r)
	case jobRetire:
		m.stepRetire(i, r)
	case jobMeet:
		m.stepMeet(i, r)
	case jobAdopt:
		m.stepAdopt(i, r)
	case jobAccept:
		m.stepAccept(i, r)
	case jobSurvey:
		m.stepSurvey(i, r)
	case jobFreeze:
		m.stepFreeze(i, r)
	case jobCrown:
		m.stepCrown(i, r)
	case jobResign:
		m.stepResign(i, r)
	case jobSeal:
		m.stepSeal(i, r)
	case jobMend:
		m.stepMend(i, r)
	}
}
