// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// Action is what an operation does.
type Action string

const (
	Add    Action = "add"
	Update Action = "update"
	Remove Action = "remove"
	// Move makes the object in Target the primary of an Everywhere object.
	Move Action = "move"
	// Adopt takes what a person applied in Target under the protocol.
	Adopt Action = "adopt"
	// Succeed gives an object whose home was lost with its peer another home among
	// the members Into.
	Succeed Action = "succeed"
	// Sweep judges one object that was met and mends what it belongs to.
	Sweep Action = "sweep"
	// Cover sees to it that a primary that was met has its secondaries in the
	// peers Into.
	Cover Action = "cover"
	// Resign takes away a home that was replaced while its peer was no member.
	Resign Action = "resign"
	// Discard deletes a secondary or a reservation that was met, in a peer that
	// is no member.
	Discard Action = "discard"
)

// logged says whether the log knows of the operation. What is done about an
// object that was met is finished by whoever meets it next.
func (o Operation) logged() bool {
	switch o.Action {
	case Add, Update, Remove, Adopt:
		return true
	case Move:
		return !o.Met.Claimed
	default:
		return false
	}
}

// Patience is what an operation does about a peer that does not answer.
type Patience uint8

const (
	// Hasty gives up after a few tries.
	Hasty Patience = iota
	// Patient tries until the deadline.
	Patient
	// Onward leaves the peer behind where the protocol allows it.
	Onward
)

// Operation is what a machine is told. It does not change.
type Operation struct {
	ID          string
	Action      Action
	Mode        Mode
	Coordinator string
	Peers       []string // configured, sorted
	Target      string   // of an add or a move: where the primary goes; of an adoption or sweep: where the object stands
	Digest      string   // of the request
	Payload     string   // stands for the content
	Start       int64
	UID         string   // of a removal or adoption: the object's, if only that one is meant
	Base        int64    // of an update: the revision that it replaces; 0 takes the one that is there
	Met         Object   // of a sweep, cover, resignation or discard
	Into        []string // of a cover; of a succession or resignation: all members that are left; of a move of what was met: where to

	Central  bool   // of an add of the first release: a record in a central log is its decision
	Agree    bool   // any content that is committed will do
	Inert    bool   // reservations carry no payload; the commit brings it
	Within   bool   // the namespace's owner must be Active
	Holds    bool   // the object owns a namespace that must be empty to remove it
	Limit    Limit  // of a sweep: how many removals plain deletes may request at once
	Prove    bool   // of a cover: a secondary that is missing speaks against the primary, and is not made
	Doubted  string // a peer that comes back: what it holds proves nothing
	Patience Patience
	// Epochs are those of the peers' PeerSets as they were last read before it began.
	Epochs map[string]int64 `json:",omitempty"`
	Lease  int              // quanta without a sign of life after which a reservation may be fenced
	Watch  bool             // of a sweep: stay to see whether a lease expires
}

// Record is what the log holds of an operation beside Operation itself.
type Record struct {
	Primary    Ref      // the peer and, once known, the UID of the primary
	Origin     string   // the operation in the primary's claim, which it keeps when its home moves
	Base       int64    // of an update: the revision that it replaces
	Term       int64    // of the home that an update was meant for, or that a succession makes
	Elect      Ref      // of a move: the replica that the primary yields to
	Arrived    bool     // of a move: the target has been home
	Committing bool     // a commit may have been sent
	Committed  bool     // the commit is known to have been applied
	Leftover   []string // peers in which a reservation may yet appear
}

// Ending is how a machine stopped.
type Ending string

const (
	// Running: not yet.
	Running Ending = ""
	// Done: in effect, confirmed by every peer; or removed since by an operation
	// of its own; or lost with its peer.
	Done Ending = "done"
	// Committed: in effect; Result.Pending names what has not confirmed.
	Committed Ending = "committed"
	// AlreadyDone: an earlier operation had the effect.
	AlreadyDone Ending = "already done"
	// Aborted: without effect, now and ever, also in no state that a peer was restored from.
	Aborted Ending = "aborted"
	// Ended: without effect now and from now on; perhaps it was for a while.
	Ended Ending = "ended"
	// InDoubt: not to be known while Result.Peer does not answer.
	InDoubt Ending = "in doubt"
)

// Reason says why an operation was not committed.
type Reason string

// The reasons, each with the fields of Result that say more.
const (
	HeldByOther  Reason = "held"         // Result.Holder
	GaveWay      Reason = "gave way"     // to Result.Holder, which is older
	Unreachable  Reason = "unreachable"  // Result.Peer
	Refused      Reason = "refused"      // by Result.Peer
	Fenced       Reason = "fenced"       // somebody took the reservation down
	Membership   Reason = "membership"   // Result.Peers
	OtherRing    Reason = "other ring"   // Result.Peer belongs to it
	OneCluster   Reason = "one cluster"  // Result.Peer and Result.Peers[0]
	NoOwner      Reason = "no owner"     // of the namespace, in Result.Peer
	Occupied     Reason = "occupied"     // Result.Occupants
	Outdated     Reason = "outdated"     // Result.Revision is the one there
	Missing      Reason = "missing"      // there is no such object
	Late         Reason = "late"         // the deadline came first
	LogFailed    Reason = "log failed"   // nothing was sent
	TakenOver    Reason = "taken over"   // the log's entry is another coordinator's by now
	Contended    Reason = "contended"    // the name changed hands again and again
	Homeless     Reason = "homeless"     // what Result.Peer holds is not home, and nothing else is
	Lost         Reason = "lost"         // with Result.Peer, which has departed
	Departing    Reason = "departing"    // what was to be adopted is being deleted
	Suspect      Reason = "suspect"      // Result.Holder is evidence of a primary that is missing
	Restored     Reason = "restored"     // Result.Peer was, since the commit may have been sent
	UnknownOwner Reason = "unknown peer" // Result.Peer holds the primary and is not configured
)

// Result is what a machine found out.
type Result struct {
	Ending    Ending
	Reason    Reason
	Peer      string
	Peers     []string
	Holder    Object // as it was read in HolderAt
	HolderAt  string
	Primary   Ref
	Revision  int64
	Occupants []Occupant
	Problem   string   // of Membership: what differs, for people
	Pending   []string // peers that have not confirmed, or in which a dead reservation may be left
	Held      Held     // of a sweep: why a requested removal is held
	Durable   bool     // every other member was seen to hold evidence of it
	Unproved  []string // of a cover: full members that hold nothing of the primary
	Mend      Mend     // of what exists everywhere: what was reconciled
	Removed   bool     // of a sweep: something dead was removed
	Mended    bool     // of a sweep: something missing was restored
	Keep      bool     // the log's entry must stay
}
