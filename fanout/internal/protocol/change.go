// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

// ChangeKind is the kind of a change of the membership.
type ChangeKind string

const (
	// Join makes a peer a member.
	Join ChangeKind = "Join"
	// Leave removes a reachable member from the ring.
	Leave ChangeKind = "Leave"
	// Force removes a member that will never be reachable again.
	Force ChangeKind = "ForceRemove"
	// Return readmits a peer that keeps its objects: a former member, or a member that was restored
	// from an older state.
	Return ChangeKind = "Comeback"
)

// ChangeOperation is the input of a Change. It is immutable.
type ChangeOperation struct {
	ID          string
	Kind        ChangeKind
	Peer        string // the peer concerned
	UID         string // UID of the peer's cluster
	Coordinator string
	By          string   // the person who signed the change
	Peers       []string // the configured peers, sorted
	Patience    Patience
	Lease       int // quanta (Sleep commands) without a heartbeat after which any coordinator may finish a change

	// Anchor is set if the change was found in a slot (the lock in a PeerSet that a change must hold). Such a
	// change is rolled forward and never begun.
	Anchor string
}

// ChangeRecord is the part of a change's log entry that the machine writes.
type ChangeRecord struct {
	Attempt int    // number of the attempt, a suffix of the ID in the slots
	Anchor  string // the peer whose slot the change may have taken first
	Epoch   int64  `json:",omitempty"` // epoch in the PeerSet of the peer concerned, before the anchor's slot was taken
}

// ChangeResult is the outcome of a Change.
type ChangeResult struct {
	Ending   Ending
	Reason   Reason
	Peer     string
	Problem  string  // explanation for people
	Blocking []Found // objects in Peer that keep it from joining or leaving
	Lost     []Found // secondaries in other members whose primary a restored peer no longer has, and which got no home
	Left     []Found // unclaimed objects that stay in a leaving peer, for a person to decide about
	Pending  []string
	Keep     bool // the log's entry must stay
}

// Change is a machine, like Machine, that changes the membership. Only one change runs at a
// time: it holds the slots in the PeerSets of all members and of the peer concerned, except of
// a peer that it removes by force. To write a PeerSet it must hold the slot there. Any process
// may repeat any of its steps at any time, so recovery runs the change again.
type Change struct {
	Op      ChangeOperation
	Record  ChangeRecord
	Phase   changePhase
	Strands []changeStrand
	Earlier int
	Result  ChangeResult

	Sets          map[string]PeerSet // by peer, as last read
	Kept          map[string]string  // UIDs of the objects in a rejoining peer, by key
	Absent        []string           // peers without a PeerSet
	Order         []string           // peers whose slots are taken, in this order
	At            int                // index of the current peer in Order or ring()
	Runs          int                // how often the change restarted
	Rounds        int                // how often a peer was listed again
	Later         []changeStrand     // sub-operations in namespaces, which run after those of the owners
	Worked        bool               // the last list found work
	Stuck         bool               // some of this work failed
	StuckAt       string             // the peer where it failed
	HomeRetired   bool               // the newcomer lost a home and must get its secondaries again
	Held          bool               // a read showed this change in the anchor's slot
	Sent          bool               // a write of the anchor's slot may have been applied
	Shared        bool               // the change was found in the anchor's slot: another process may work on it, too
	Retreat       bool               // the ring is not as first read: free the slots and try again
	AnchorNotHeld bool               // the change did not hold the anchor's slot when the release began
	Stopping      bool
	Expired       bool
	Resumed       bool
	Again         bool // restart: another process works on the same change

	out []Command
}

type changePhase string

const (
	chBeginning  changePhase = "beginning"
	chLooking    changePhase = "looking"   // reading all PeerSets
	chAdvancing  changePhase = "advancing" // writing to the log that the anchor's slot may be taken
	chTaking     changePhase = "taking"    // taking the slots
	chReleasing  changePhase = "releasing" // freeing the slots, except the anchor's
	chFreeing    changePhase = "freeing"   // freeing the anchor's slot
	chFinishing  changePhase = "finishing" // marking the change as over, at the anchor
	chEnding     changePhase = "ending"
	chOver       changePhase = "over"
	chSettling   changePhase = "settling" // judging the newcomer's objects
	chAdmitting  changePhase = "admitting"
	chTelling    changePhase = "telling"    // adding the newcomer to a member's list
	chCovering   changePhase = "covering"   // giving the newcomer secondaries of a member's primaries
	chPlacing    changePhase = "placing"    // giving the members secondaries of the newcomer's primaries
	chCompleting changePhase = "completing" // giving the newcomer secondaries in namespaces, after their owners
	chActivating changePhase = "activating"
	chExpelling  changePhase = "expelling" // refusing a newcomer that cannot join
	chForgetting changePhase = "forgetting"

	chMarking  changePhase = "marking" // setting the leaving peer's state to Leaving
	chDraining changePhase = "draining"
	chDropping changePhase = "dropping"
	chRefusing changePhase = "refusing"
	chEmptying changePhase = "emptying"
	chClosing  changePhase = "closing"
	chRehoming changePhase = "rehoming" // replacing lost homes, after a removal by force
)

// NewChange returns a machine at the beginning of op.
func NewChange(op ChangeOperation) *Change {
	c := &Change{Op: op, Phase: chBeginning, Sets: map[string]PeerSet{}}
	if op.Anchor != "" {
		c.Phase, c.Record.Anchor = chLooking, op.Anchor
	}
	return c
}

// RecoverChange returns a machine that continues a change whose process ended. If the change
// has taken no slot, the machine takes none either, and ends.
func RecoverChange(op ChangeOperation, record ChangeRecord) *Change {
	c := NewChange(op)
	c.Record, c.Resumed, c.Phase = record, true, chLooking
	return c
}

// HelpChange returns op as the operation that continues the change in slot.
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
		lookJob{c}.begin()
	}
	c.proceed()
	return c.take()
}

// Handle takes the reply to a command and returns the next commands. It ignores a reply that no
// strand (the state of a task) waits for.
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

// Expire records that the caller no longer waits. A change in progress stays in progress, for a
// later recovery.
func (c *Change) Expire() []Command {
	c.Expired = true
	return nil
}

// Over reports whether the machine has stopped. Result is final then.
func (c *Change) Over() bool { return c.Phase == chOver }

func (c *Change) take() []Command {
	out := c.out
	c.out = nil
	return out
}

// id returns the ID of the change in the slots. Each attempt has an ID of its own.
func (c *Change) id() string {
	if c.Record.Attempt == 0 {
		return c.Op.ID
	}
	return c.Op.ID + "-" + string(rune('0'+c.Record.Attempt))
}

// slot returns the slot that the change writes into the PeerSets.
func (c *Change) slot() Slot {
	return Slot{
		ID: c.id(), Kind: c.Op.Kind, Peer: c.Op.Peer, UID: c.Op.UID,
		Coordinator: c.Op.Coordinator, By: c.Op.By, Anchor: c.Record.Anchor,
	}
}

func (c *Change) holds(s PeerSet) bool { return s.Change.ID == c.id() }

// enter begins a phase. Strand numbers continue, so a late reply never matches a strand of the
// new phase.
func (c *Change) enter(p changePhase) {
	c.Earlier += len(c.Strands)
	c.Strands = nil
	c.Phase = p
}

func (c *Change) settled() bool {
	return !slices.ContainsFunc(c.Strands, func(s changeStrand) bool {
		return !s.Over && (s.Task != chBeat || s.Step == stepBeat || s.Step == stepBeaten)
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

// runs bounds how often a change restarts because another process works on it.
const runs = 16

// anew reads the progress that other processes made and continues from there.
func (c *Change) anew() {
	c.Again, c.Stopping = false, false
	if c.Runs++; c.Runs > runs {
		c.because(Contended, c.Op.Peer)
		c.stop()
		return
	}
	lookJob{c}.begin()
}

// stop ends the machine before the change is over: Aborted if no slot can have been taken, else
// InDoubt.
func (c *Change) stop() {
	if !c.Held && !c.Sent && !c.Resumed && c.Op.Anchor == "" {
		c.end(Aborted)
		return
	}
	c.Result.Keep = true
	c.end(InDoubt)
}

// end stops the machine with ending e and updates the log entry.
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

// refuse ends the strand and stops the change where it is.
func (s changeHandle) refuse(reason Reason, problem string) {
	c := s.c
	if c.Result.Problem == "" {
		c.Result.Problem = problem
	}
	c.because(reason, s.Peer)
	c.Stopping = true
	s.finish()
}
