// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// A Machine carries out one operation. It is pure: it is told what happened and
// says what is to be done next, without I/O, clock, randomness or goroutine.
// The runtime executes its commands in any order and feeds back their replies.
//
// A machine works in phases. A phase is a set of strands, each with at most one
// command outstanding; when all have ended the next phase is chosen.
type Machine struct {
	Op      Operation
	Record  Record
	Phase   Phase
	Strands []Strand
	Earlier int // how many strands there were in earlier phases
	Result  Result

	Primary  Object // as last seen, in Record.Primary.Peer
	Claims   map[string]Claimed
	Set      PeerSet // of the primary's peer, read after what it must follow
	HaveSet  bool
	Sets     map[string]PeerSet // of the claimed peers
	Present  bool               // the primary is known to exist, or may
	Adrift   bool               // a create of the primary may be applied yet
	Unsure   bool               // a commit attempt may be applied yet or may have been
	Stopping bool               // no new attempts: the phase has failed
	Expired  bool               // the deadline has passed
	Resumed  bool               // its process had ended: nobody waits for it

	out []Command
}

// Phase is what a machine is at.
type Phase string

const (
	beginning  Phase = "beginning"
	reserving  Phase = "reserving" // the primary
	claiming   Phase = "claiming"  // the others
	advancing  Phase = "advancing" // making durable that a commit may be sent
	committing Phase = "committing"
	bringing   Phase = "bringing" // replicas after the commit
	fencing    Phase = "fencing"  // own primary, after a failure
	cleaning   Phase = "cleaning" // own secondaries
	finding    Phase = "finding"  // the primary of an update or removal
	listing    Phase = "listing"  // the namespace, before a removal
	emptying   Phase = "emptying" // foreign finalizers
	clearing   Phase = "clearing" // guards or replicas of a removal
	releasing  Phase = "releasing"
	dropping   Phase = "dropping" // our finalizer
	judging    Phase = "judging"
	recovering Phase = "recovering"
	ending     Phase = "ending"
	over       Phase = "over"
)

// Claimed is what an operation knows of its secondary in a peer.
type Claimed struct {
	Object Object
	Held   bool
	Unsure bool // a create may be applied yet
}

// Strand is one thread of a phase.
type Strand struct {
	Job    job
	Peer   string
	Step   step
	Seq    int
	Busy   bool // a command is outstanding
	Over   bool
	X, Y   Object // what is in the way or to be brought, and its primary
	Tries  int    // how often a peer did not answer, or an object lingered
	Turns  int    // how often the name changed hands
	Seen   string // incarnation of the rival's primary when last read
	Quiet  int    // quanta since it moved
	Unsure bool   // a create of this strand may be applied yet
}

type (
	job  string
	step string
)

// tries bounds how often a Hasty operation asks a peer that does not answer,
// and how often any operation begins again because a name changed hands.
const (
	tries     = 3
	takeovers = 16
)

// New returns a machine at the beginning of op.
func New(op Operation) *Machine {
	m := &Machine{Op: op, Phase: beginning, Claims: map[string]Claimed{}, Sets: map[string]PeerSet{}}
	m.Record.Primary.Peer = op.Target
	return m
}

// Recover returns a machine that settles an operation whose process ended, from
// what the log holds of it.
func Recover(op Operation, record Record) *Machine {
	m := New(op)
	m.Record = record
	m.Phase = recovering
	m.Unsure = record.Committing
	m.Resumed = true
	return m
}

// Start returns the first commands.
func (m *Machine) Start() []Command {
	switch {
	case m.Phase == recovering:
		m.recover()
	case m.Op.Action == Sweep:
		m.sweep()
	default:
		m.spawn(jobBegin, "")
	}
	m.proceed()
	return m.take()
}

// Handle takes the reply to a command and returns the next ones. Replies to
// commands of ended strands are ignored.
func (m *Machine) Handle(r Reply) []Command {
	i := r.Strand - m.Earlier
	if m.Phase == over || i < 0 || i >= len(m.Strands) {
		return nil
	}
	s := &m.Strands[i]
	if s.Over || !s.Busy || s.Seq != r.Seq {
		return nil
	}
	s.Busy = false
	m.step(i, r)
	m.proceed()
	return m.take()
}

// Expire tells that the caller waits no longer. What is not committed is
// aborted; what may be committed is found out.
func (m *Machine) Expire() []Command {
	m.Expired = true
	return nil
}

// Over says whether the machine has stopped. Result is final then.
func (m *Machine) Over() bool { return m.Phase == over }

func (m *Machine) take() []Command {
	out := m.out
	m.out = nil
	return out
}

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

// settled says whether all strands of the present phase have ended. A heartbeat
// that is not on its way does not count.
func (m *Machine) settled() bool {
	return !slices.ContainsFunc(m.Strands, func(s Strand) bool {
		return !s.Over && (s.Job != jobBeat || s.Step == "beat")
	})
}

// enter begins a phase: the strands of the last one are forgotten, but not
// their numbers, so that a late reply cannot be taken for one of the new phase.
func (m *Machine) enter(p Phase) {
	m.Earlier += len(m.Strands)
	m.Strands = nil
	m.Phase = p
}

// fail ends strand i and makes the phase's others stop at their next reply. The
// first failure is the one that is told.
func (m *Machine) fail(i int, reason Reason) {
	m.finish(i)
	m.because(reason, m.Strands[i].Peer)
	m.Stopping = true
}

func (m *Machine) because(reason Reason, peer string) {
	if m.Result.Reason == "" {
		m.Result.Reason, m.Result.Peer = reason, peer
	}
}

// heldBy ends strand i because o in peer has the name.
func (m *Machine) heldBy(i int, reason Reason, peer string, o Object) {
	if m.Result.Reason == "" {
		m.Result.Holder, m.Result.HolderAt = o, peer
	}
	m.fail(i, reason)
}

// again asks a peer that did not answer once more, from step next, or gives it
// up. It returns false when it gave up.
func (m *Machine) again(i int, next step) bool {
	s := &m.Strands[i]
	s.Tries++
	if m.Stopping || m.Expired || m.Op.Patience != Patient && s.Tries >= tries {
		return false
	}
	m.pause(i, next)
	return true
}

// reread follows up a write that was not answered with yes. An object that has
// changed is read again at once; a peer that did not take the write is asked
// again after a pause, at most limit times. It returns false when it gave up.
func (m *Machine) reread(i int, r Reply, limit int) bool {
	s := &m.Strands[i]
	switch r.Code {
	case Denied, NoSuchPeer:
		return false
	case Unavailable:
		if s.Tries++; s.Tries >= limit {
			return false
		}
		m.pause(i, "reread")
	default:
		m.send(i, "read", Command{Verb: Read, Peer: s.Peer})
	}
	return true
}

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
	}
}

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
	jobEmpty    job = "empty"
	jobClear    job = "clear"
	jobRelease  job = "release"
	jobDrop     job = "drop"
	jobRevise   job = "revise"
	jobGuard    job = "guard"
	jobJudge    job = "judge"
	jobLook     job = "look"
)

// proceed chooses the next phases once all strands of this one have ended. A
// phase that has nothing to do is passed at once.
func (m *Machine) proceed() {
	for m.Phase != over && m.settled() {
		m.next()
	}
}

func (m *Machine) next() {
	switch m.Phase {
	case beginning:
		m.afterBegin()
	case reserving:
		m.afterReserving()
	case claiming:
		m.afterClaiming()
	case advancing:
		m.afterAdvancing()
	case committing:
		m.afterCommitting()
	case bringing:
		m.afterBringing()
	case fencing:
		m.afterFencing()
	case cleaning:
		m.afterCleaning()
	case finding:
		m.afterFinding()
	case listing:
		m.afterListing()
	case emptying:
		m.afterEmptying()
	case clearing:
		m.afterClearing()
	case releasing:
		m.afterReleasing()
	case dropping:
		m.afterDropping()
	case judging:
		m.afterJudging()
	case recovering:
		m.afterRecovering()
	case ending:
		m.Phase = over
	}
}

// end stops the machine with an ending. The log's entry goes unless it must be
// kept to settle what is left.
func (m *Machine) end(e Ending) {
	m.Result.Ending = e
	m.Result.Primary = m.Record.Primary
	if e == AlreadyDone && m.Op.Action == Add {
		// The log's entry is about this operation's own reservations.
		m.Record.Primary = Ref{Peer: m.Op.Target}
	}
	m.enter(ending)
	switch {
	case m.Op.Action == Sweep:
	case e == InDoubt || m.Result.Keep:
		m.Result.Keep = true
		m.spawn(jobAdvance, "")
	case m.Result.Reason == LogFailed:
	default:
		m.spawn(jobForget, "")
	}
}

// stepBegin makes the operation durable.
func (m *Machine) stepBegin(i int, r Reply) {
	switch m.Strands[i].Step {
	case "":
		m.send(i, "begin", Command{Verb: Begin})
	default:
		if r.Class != Applied {
			m.fail(i, LogFailed)
			return
		}
		m.finish(i)
	}
}

func (m *Machine) afterBegin() {
	switch {
	case m.Stopping:
		m.end(Aborted)
	case m.Op.Action == Add:
		m.enter(reserving)
		m.spawn(jobAcquire, m.Op.Target)
	default:
		m.find()
	}
}

// stepLog writes the log once. Its failure is not undone by anything: before a
// commit it stops the operation, afterwards the entry is found open and settled
// again.
func (m *Machine) stepLog(i int, r Reply) {
	s := &m.Strands[i]
	switch {
	case s.Step == "" && s.Job == jobForget:
		m.send(i, "log", Command{Verb: Forget})
	case s.Step == "":
		m.send(i, "log", Command{Verb: Advance})
	case r.Class != Applied && m.Phase == advancing:
		m.fail(i, LogFailed)
	default:
		m.finish(i)
	}
}
