// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

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

	Decision  Decision // the operation's own record, as last seen
	Primary   Object   // as last seen, in Record.Primary.Peer
	Claims    map[string]Claimed
	Set       PeerSet // of the primary's peer, read after what it must follow
	HaveSet   bool
	Sets      map[string]PeerSet // of the claimed peers
	Present   bool               // the primary is known to exist, or may
	Adrift    bool               // a create of the primary may be applied yet
	Unsure    bool               // a commit attempt may be applied yet or may have been
	Withdrawn bool               // the record is gone
	Stopping  bool               // no new attempts: the phase has failed
	Expired   bool               // the deadline has passed
	Resumed   bool               // its process had ended: nobody waits for it
	Unlogged  bool               // it is not known whether the log says that a commit may have been sent

	Astray   bool   // the primary is not where it was known to be
	Lead     Object // which leads to it, from LeadAt; without a claim: it is looked for everywhere
	LeadAt   string
	Named    string // whose object, by its claim, has the UID that a removal means
	Searched bool   // all peers were asked for it
	Turns    int    // how often it was lost, or changed while it was removed

	Requests Requests // what was counted at the home
	Forked   Object   // a replica in force with a revision that its home never had
	Revoked  bool     // a replica was taken away again, since its home is gone
	Undone   bool     // the home does not have the revision that this update committed
	Reverted bool     // it was committed, and its peer was restored from before that
	Changed  bool     // it changed since its secondaries were cleared
	Promised bool     // what is left to do the caller need not wait for

	Departed []string // whom a member knows to be one no more

	out []Command
}

// Claimed is what an operation knows of its secondary in a peer.
type Claimed struct {
	Object Object
	Held   bool
	Unsure bool // a create may be applied yet
}

// New returns a machine at the beginning of op.
func New(op Operation) *Machine {
	m := &Machine{Op: op, Phase: beginning, Claims: map[string]Claimed{}, Sets: map[string]PeerSet{}}
	m.Record.Primary.Peer = op.Target
	return m
}

// Recover returns a machine that settles an operation whose process ended, from
// what the log holds of it. However patient the operation was, nobody waits for
// it any more: what a peer does not answer is left to the next recovery.
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
		m.recover()
	case m.Op.Action == Sweep:
		m.sweep()
	case m.Op.Action == Succeed:
		m.succeed()
	case m.Op.Action == Move && !m.Op.logged():
		m.Op.Target = m.Op.Into[0]
		m.find()
	case m.Op.Action == Cover:
		m.cover()
	case m.Op.Action == Resign:
		m.resign()
	case m.Op.Action == Discard:
		m.discard()
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
