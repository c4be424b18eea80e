// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// A Machine carries out one operation. It is pure: it takes replies and returns commands, without
// I/O, clock, randomness or goroutine. The runtime executes its commands in any order and feeds
// back their replies.
//
// A machine runs jobs, one after the other: addJob, abortJob, bringJob and so on. A job works in
// phases. A phase is a set of tasks that run in parallel; each works in one peer or on the log, and
// has at most one command outstanding. When all tasks of a phase have ended, the job begins the
// next phase or another job. All state is in the Machine and in its strands, one for each running
// task; jobs and tasks are only the rules.
type Machine struct {
	Op      Operation
	Record  Record
	Phase   Phase
	Strands []Strand
	Earlier int // number of strands of earlier phases
	Result  Result

	Primary   Object  // the primary as last read, in Record.Primary.Peer
	Set       PeerSet // PeerSet of the primary's peer, read after the create or commit whose members it lists
	HaveSet   bool
	Unsure    bool // a commit attempt may have been applied, or may be applied later
	Stopping  bool // no new attempts: the phase has failed
	Expired   bool // the deadline has passed
	Resumed   bool // recovered after its process ended: no caller waits for it
	LogUnsure bool // the result of a write of the log is unknown: the log may have the entry, or state that a commit may be sent
	Turns     int  // how often the search for the primary began again, or the primary changed during its removal

	reservations
	centralRecord
	search
	contradictions

	Requests    Requests // of a hold: the homes and requested removals counted in the home's peer
	Changed     bool     // of a removal: the primary changed since its secondaries were deleted
	ResultReady bool     // the caller can have its result now; the guards are bound after that

	out []Command
}

// reservations are the operation's own objects, as addJob, adoptJob and abortJob know them.
type reservations struct {
	Present bool // the primary exists, or may exist
	Adrift  bool // a create of the primary may still be applied
	Claims  map[string]Claimed
	Sets    map[string]PeerSet // PeerSets of the claimed peers
}

// centralRecord is the record that decides an add of the first release, as centralJob knows it.
type centralRecord struct {
	Decision  Decision // the decision in the record, as last read
	Withdrawn bool     // the record is deleted
	Departed  []string // peers that a member lists as departed
}

// search is the state of findJob, which searches for a primary.
type search struct {
	Astray   bool   // the primary is not where it was last known to be
	Lead     Object // the object in LeadAt that names the next home; without a claim: search all peers
	LeadAt   string
	Named    string // the operation in the claim of the replica with the UID Op.UID
	Searched bool   // all peers were searched for the primary
}

// contradictions are the effects of peers restored from older states, as bringJob and mendJob met
// them.
type contradictions struct {
	Forked   Object // an Active replica with a revision that its home never had
	Revoked  bool   // a replica was deleted: its home is gone, or its peer is no member
	Undone   bool   // the home does not have the revision that this update committed
	Reverted bool   // the commit was applied, and a restore of the peer has undone it
}

// Claimed is the known state of an operation's secondary in a peer.
type Claimed struct {
	Object Object
	Held   bool
	Unsure bool // a create may still be applied
}

// New returns a machine for op that has not started.
func New(op Operation) *Machine {
	m := &Machine{Op: op, Phase: beginning, reservations: reservations{Claims: map[string]Claimed{}, Sets: map[string]PeerSet{}}}
	m.Record.Primary.Peer = op.Target
	return m
}

// Recover returns a machine that settles op, whose process has ended. record is the state of
// the operation in the log. Op's Patience does not apply, because no caller waits: a peer that
// does not answer is left to the next recovery.
func Recover(op Operation, record Record) *Machine {
	op.Patience = Hasty
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
		recoverJob{m}.begin()
	case m.Op.Action == Sweep:
		sweepJob{m}.begin()
	case m.Op.Action == Succeed:
		succeedJob{m}.begin()
	case m.Op.Action == Move && !m.Op.logged():
		m.Op.Target = m.Op.Into[0]
		findJob{m}.begin()
	case m.Op.Action == Cover:
		coverJob{m}.begin()
	case m.Op.Action == Resign:
		resignJob{m}.begin()
	case m.Op.Action == Discard:
		coverJob{m}.discard()
	default:
		m.spawn(taskBegin, "")
	}
	m.proceed()
	return m.take()
}

// Handle takes the reply to a command and returns the next commands. It ignores replies to
// commands of ended strands.
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

// Expire marks the caller's deadline as passed. From then on the machine aborts the operation
// if it is not committed. After an attempt to commit, it first finds out by reads whether the
// commit was applied.
func (m *Machine) Expire() []Command {
	m.Expired = true
	return nil
}

// Over reports whether the machine has stopped. Result is final then.
func (m *Machine) Over() bool { return m.Phase == over }

func (m *Machine) take() []Command {
	out := m.out
	m.out = nil
	return out
}
