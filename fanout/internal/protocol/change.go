// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// ChangeKind is what a change of the membership does.
type ChangeKind string

const (
	// Join makes a peer a member.
	Join ChangeKind = "Join"
	// Leave takes a member out of the ring that still answers.
	Leave ChangeKind = "Leave"
	// Force takes a member out of the ring that will never answer again.
	Force ChangeKind = "ForceRemove"
	// Return makes a peer a member again that was one, with what it holds; a
	// member, too, that was restored from an older state.
	Return ChangeKind = "Comeback"
)

// ChangeOperation is what a Change is told. It does not change.
type ChangeOperation struct {
	ID          string
	Kind        ChangeKind
	Peer        string // the peer concerned
	UID         string // of its cluster
	Coordinator string
	By          string   // who answers for it
	Peers       []string // configured, sorted
	Patience    Patience
	Lease       int // quanta without a sign of life after which anybody may finish a change

	// Anchor is set for a change that was found in a slot. It is rolled forward
	// and never begun.
	Anchor string
}

// ChangeRecord is what the log holds of a change beside ChangeOperation itself.
type ChangeRecord struct {
	Attempt int    // which slot it takes
	Anchor  string // whose slot it may have taken
	Epoch   int64  `json:",omitempty"` // of the PeerSet of the peer concerned, before that
}

// ChangeResult is what a Change found out.
type ChangeResult struct {
	Ending   Ending
	Reason   Reason
	Peer     string
	Problem  string  // for people
	Blocking []Found // what keeps a peer from joining or leaving, in Peer
	Lost     []Found // guards, in other members, of what a restored peer has forgotten
	Left     []Found // what stays behind and is nobody's business but a person's
	Pending  []string
	Keep     bool // the log's entry must stay
}

// Change is a machine like Machine that changes who the members are. There is
// one change at a time: it holds a slot in the PeerSet of every member and of
// the peer concerned, and each of its writes of a PeerSet requires that slot.
// All its steps may be repeated, by anybody at any time, so it is recovered by
// running it again.
type Change struct {
	Op      ChangeOperation
	Record  ChangeRecord
	Phase   changePhase
	Strands []changeStrand
	Earlier int
	Result  ChangeResult

	Sets     map[string]PeerSet // as last seen
	Kept     map[string]string  // UIDs of what a peer holds that comes back, by key
	Absent   []string           // peers without a PeerSet
	Order    []string           // whose slots are taken, in this order
	At       int                // whose turn it is
	Runs     int                // how often it began anew
	Rounds   int                // how often a peer was listed again
	Later    []changeStrand     // errands of a newcomer that others come before
	Worked   bool               // the last list had something to do
	Stuck    bool               // and some of it could not be done
	StuckAt  string             // in this peer
	Taken    bool               // what the newcomer was covered with was taken from it again
	Held     bool               // the anchor's slot was seen to be its own
	Sent     bool               // it may be
	Retreat  bool               // another peer is the anchor
	Strange  bool               // the anchor's slot was not its own as it began to free the others
	Stopping bool
	Expired  bool
	Resumed  bool
	Again    bool // begin anew: somebody else works on the same change

	out []Command
}

type changePhase string

const (
	chBeginning  changePhase = "beginning"
	chLooking    changePhase = "looking"   // who is there
	chAdvancing  changePhase = "advancing" // making durable that the anchor may be taken
	chTaking     changePhase = "taking"    // the slots
	chReleasing  changePhase = "releasing" // all but the anchor's
	chFreeing    changePhase = "freeing"   // the anchor's
	chFinishing  changePhase = "finishing" // marking the change as over, at the anchor
	chEnding     changePhase = "ending"
	chOver       changePhase = "over"
	chQuarantine changePhase = "quarantining"
	chSettling   changePhase = "settling" // what the newcomer holds
	chAdmitting  changePhase = "admitting"
	chTelling    changePhase = "telling"    // a member
	chCovering   changePhase = "covering"   // a member's primaries
	chPlacing    changePhase = "placing"    // the newcomer's own primaries
	chCompleting changePhase = "completing" // what was pending when it was covered
	chActivating changePhase = "activating"
	chExpelling  changePhase = "expelling" // a newcomer that cannot join
	chForgetting changePhase = "forgetting"

	chMarking  changePhase = "marking" // who leaves
	chDraining changePhase = "draining"
	chDropping changePhase = "dropping"
	chRefusing changePhase = "refusing"
	chEmptying changePhase = "emptying"
	chClosing  changePhase = "closing"
	chRehoming changePhase = "rehoming" // after a force-remove
)

// NewChange returns a machine at the beginning of op.
func NewChange(op ChangeOperation) *Change {
	c := &Change{Op: op, Phase: chBeginning, Sets: map[string]PeerSet{}}
	if op.Anchor != "" {
		c.Phase, c.Record.Anchor = chLooking, op.Anchor
	}
	return c
}

// RecoverChange returns a machine that goes on with a change whose process
// ended. What had not begun by then is not begun any more.
func RecoverChange(op ChangeOperation, record ChangeRecord) *Change {
	c := NewChange(op)
	c.Record, c.Resumed, c.Phase = record, true, chLooking
	return c
}

// HelpChange returns the operation that goes on with the change that holds slot.
func HelpChange(slot Slot, op ChangeOperation) ChangeOperation {
	op.ID, op.Kind, op.Peer, op.UID = slot.ID, slot.Kind, slot.Peer, slot.UID
	op.By, op.Anchor = slot.By, slot.Anchor
	return op
}

// Start returns the first commands.
func (c *Change) Start() []Command {
	if c.Phase == chBeginning {
		c.spawn(chBegin, "")
	} else {
		c.look()
	}
	c.proceed()
	return c.take()
}

// Handle takes the reply to a command and returns the next ones.
func (c *Change) Handle(r Reply) []Command {
	i := r.Strand - c.Earlier
	if c.Phase == chOver || i < 0 || i >= len(c.Strands) {
		return nil
	}
	s := &c.Strands[i]
	if s.Over || !s.Busy || s.Seq != r.Seq {
		return nil
	}
	s.Busy = false
	c.step(i, r)
	c.proceed()
	return c.take()
}

// Expire tells that the caller waits no longer. A change that is under way stays
// so, and is gone on with later.
func (c *Change) Expire() []Command {
	c.Expired = true
	return nil
}

// Over says whether the machine has stopped. Result is final then.
func (c *Change) Over() bool { return c.Phase == chOver }

func (c *Change) take() []Command {
	out := c.out
	c.out = nil
	return out
}

// id is the name of the change in the slots.
func (c *Change) id() string {
	if c.Record.Attempt == 0 {
		return c.Op.ID
	}
	return c.Op.ID + "-" + string(rune('0'+c.Record.Attempt))
}

// slot is what it writes into the PeerSets.
func (c *Change) slot() Slot {
	return Slot{
		ID: c.id(), Kind: c.Op.Kind, Peer: c.Op.Peer, UID: c.Op.UID,
		Coordinator: c.Op.Coordinator, By: c.Op.By, Anchor: c.Record.Anchor,
	}
}

func (c *Change) mine(s PeerSet) bool { return s.Change.ID == c.id() }

// enter begins a phase. Late replies cannot be taken for ones of the new phase.
func (c *Change) enter(p changePhase) {
	c.Earlier += len(c.Strands)
	c.Strands = nil
	c.Phase = p
}

func (c *Change) settled() bool {
	return !slices.ContainsFunc(c.Strands, func(s changeStrand) bool {
		return !s.Over && (s.Job != chBeat || s.Step == "beat" || s.Step == "beaten")
	})
}

func (c *Change) proceed() {
	for c.Phase != chOver && c.settled() {
		switch {
		case c.Phase == chBeginning, c.Phase == chEnding:
			c.next()
		case c.Again:
			c.anew()
		case c.Stopping:
			c.stop()
		default:
			c.next()
		}
	}
}

// runs bounds how often a change begins anew because another one works on it.
const runs = 16

// anew looks at what others have done of the change, and goes on from there.
func (c *Change) anew() {
	c.Again, c.Stopping = false, false
	if c.Runs++; c.Runs > runs {
		c.because(Contended, c.Op.Peer)
		c.stop()
		return
	}
	c.look()
}

// stop leaves the change under way.
func (c *Change) stop() {
	if !c.Held && !c.Sent && !c.Resumed && c.Op.Anchor == "" {
		c.end(Aborted)
		return
	}
	c.Result.Keep = true
	c.end(InDoubt)
}

// end stops the machine.
func (c *Change) end(e Ending) {
	c.Result.Ending = e
	c.Stopping, c.Again = false, false
	c.enter(chEnding)
	switch {
	case c.Op.Anchor != "":
	case c.Result.Keep:
		c.spawn(chAdvance, "")
	case c.Result.Reason == LogFailed:
	default:
		c.spawn(chForget, "")
	}
}

func (c *Change) because(reason Reason, peer string) {
	if c.Result.Reason == "" {
		c.Result.Reason, c.Result.Peer = reason, peer
	}
}

// refuse ends strand i and stops the change where it is.
func (c *Change) refuse(i int, reason Reason, problem string) {
	if c.Result.Problem == "" {
		c.Result.Problem = problem
	}
	c.because(reason, c.Strands[i].Peer)
	c.Stopping = true
	c.finish(i)
}
