// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// Strand is the state of a task: one sequence of commands in a phase.
type Strand struct {
	Task   task
	Peer   string
	Step   step
	Seq    int
	Busy   bool // a command is outstanding
	Over   bool
	X, Y   Object // the object that the task reads or writes, and the primary of X
	Tries  int    // how often a peer did not answer, or an object was still there
	Turns  int    // how often the name changed its owner
	Seen   string // UID and version, as last read, of the rival's primary or record, or of an object that is read twice
	Quiet  int    // quanta since Seen changed
	Unsure bool   // a create of this strand may still be applied
	Fresh  bool   // X was written by this strand
	Asked  int    // how many members were asked which of two peers was restored
}

// task is the kind of a strand.
type task string

// tries bounds how often an operation that is not Patient asks a peer that does not answer.
// takeovers bounds how often any operation begins again because a name changed its owner, or an
// object its home.
const (
	tries     = 3
	takeovers = 16
)

const (
	taskBegin    task = "begin"
	taskAcquire  task = "acquire"
	taskPeerSet  task = "peerset"
	taskOwner    task = "owner"
	taskBeat     task = "beat"
	taskAdvance  task = "advance"
	taskForget   task = "forget"
	taskCommit   task = "commit"
	taskBring    task = "bring"
	taskActivate task = "activate"
	taskFence    task = "fence"
	taskClean    task = "clean"
	taskFind     task = "find"
	taskList     task = "list"
	taskMark     task = "mark"
	taskCount    task = "count"
	taskHold     task = "hold"
	taskEmpty    task = "empty"
	taskClear    task = "clear"
	taskRelease  task = "release"
	taskDrop     task = "drop"
	taskRevise   task = "revise"
	taskGuard    task = "guard"
	taskJudge    task = "judge"
	taskLook     task = "look"
	taskDiscard  task = "discard"
	taskFollow   task = "follow"
	taskYield    task = "yield"
	taskRetire   task = "retire"
	taskMeet     task = "meet"
	taskAdopt    task = "adopt"
	taskAccept   task = "accept"
	taskSurvey   task = "survey"
	taskFreeze   task = "freeze"
	taskCrown    task = "crown"
	taskResign   task = "resign"
	taskSeal     task = "seal"
	taskMend     task = "mend"
	taskAttest   task = "attest"
)

// strand is strand i of a machine. The tasks embed a strand. A strand is valid until the machine
// adds another one.
type strand struct {
	*Strand
	m *Machine
	i int
}

func (m *Machine) strand(i int) strand { return strand{&m.Strands[i], m, i} }

// send emits command c. next is the step that handles the reply.
func (s strand) send(next step, c Command) {
	m := s.m
	s.Seq++
	s.Busy = true
	s.Step = next
	c.Strand, c.Seq = m.Earlier+s.i, s.Seq
	m.out = append(m.out, c)
}

// pause makes the strand wait for one quantum before step next.
func (s strand) pause(next step) { s.send(next, Command{Verb: Sleep}) }

// spawn starts a task in peer.
func (m *Machine) spawn(kind task, peer string) { m.start(Strand{Task: kind, Peer: peer}) }

// start adds a strand and takes its first step.
func (m *Machine) start(s Strand) {
	m.Strands = append(m.Strands, s)
	m.step(len(m.Strands)-1, Reply{})
}

// finish ends the strand.
func (s strand) finish() { s.Over = true }

// step advances strand i by one reply.
func (m *Machine) step(i int, r Reply) {
	switch s := m.strand(i); s.Task {
	case taskBegin:
		beginTask{s}.step(r)
	case taskAcquire:
		acquireTask{s}.step(r)
	case taskPeerSet:
		peerSetTask{s}.step(r)
	case taskOwner:
		ownerTask{s}.step(r)
	case taskBeat:
		beatTask{s}.step(r)
	case taskAdvance, taskForget:
		logTask{s}.step(r)
	case taskCommit:
		commitTask{attempt{s}}.step(r)
	case taskBring:
		bringTask{secondaryTask{s}}.step(r)
	case taskActivate:
		activateTask{s}.step(r)
	case taskAttest:
		attestTask{s}.step(r)
	case taskFence:
		fenceTask{s}.step(r)
	case taskClean:
		cleanTask{s}.step(r)
	case taskFind:
		findTask{s}.step(r)
	case taskList:
		listTask{s}.step(r)
	case taskMark:
		markTask{attempt{s}}.step(r)
	case taskCount:
		countTask{s}.step(r)
	case taskHold:
		holdTask{s}.step(r)
	case taskEmpty:
		emptyTask{removedTask{s}}.step(r)
	case taskClear:
		clearTask{removedTask{s}}.step(r)
	case taskRelease:
		releaseTask{s}.step(r)
	case taskDrop:
		dropTask{removedTask{s}}.step(r)
	case taskRevise:
		reviseTask{attempt{s}}.step(r)
	case taskGuard:
		guardTask{secondaryTask{s}}.step(r)
	case taskJudge:
		judgeTask{s}.step(r)
	case taskLook:
		lookTask{s}.step(r)
	case taskConvert:
		convertTask{sealedTask{s}}.step(r)
	case taskBind:
		bindTask{sealedTask{s}}.step(r)
	case taskWithdraw:
		withdrawTask{s}.step(r)
	case taskRecord:
		recordTask{s}.step(r)
	case taskDeparted:
		departedTask{s}.step(r)
	case taskDiscard:
		discardTask{s}.step(r)
	case taskFollow:
		followTask{s}.step(r)
	case taskYield:
		yieldTask{attempt{s}}.step(r)
	case taskRetire:
		retireTask{s}.step(r)
	case taskMeet:
		meetTask{s}.step(r)
	case taskAdopt:
		adoptTask{attempt{s}}.step(r)
	case taskAccept:
		acceptTask{s}.step(r)
	case taskSurvey:
		surveyTask{s}.step(r)
	case taskFreeze:
		freezeTask{s}.step(r)
	case taskCrown:
		crownTask{s}.step(r)
	case taskResign:
		resignTask{s}.step(r)
	case taskSeal:
		sealTask{sealedTask{s}}.step(r)
	case taskMend:
		mendTask{s}.step(r)
	}
}
