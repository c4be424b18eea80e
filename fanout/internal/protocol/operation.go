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
	// Adopt gives the protocol control of an object that a person applied in Target.
	Adopt Action = "adopt"
	// Succeed gives an object whose home was lost with its peer another home among
	// the members Into.
	Succeed Action = "succeed"
	// Sweep checks one listed object, Met, by the present state of its primary, and repairs or
	// deletes Met and the objects that belong to it.
	Sweep Action = "sweep"
	// Cover makes sure that a listed primary, Met, has its secondaries in the peers Into.
	Cover Action = "cover"
	// Resign deletes a home that was replaced while its peer was no member.
	Resign Action = "resign"
	// Discard deletes a listed secondary or reservation, Met, in a peer that is no member.
	Discard Action = "discard"
)

// logged reports whether the operation has an entry in the log. If a process stops during an
// operation without an entry, the next process that lists the object runs the operation again.
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

// Patience is how an operation handles a peer that does not answer.
type Patience uint8

const (
	// Hasty stops after a few tries.
	Hasty Patience = iota
	// Patient tries until the deadline.
	Patient
	// Onward skips the peer where the protocol allows it.
	Onward
)

// Operation is the input of a machine. It does not change.
type Operation struct {
	ID          string
	Action      Action
	Mode        Mode
	Coordinator string
	Peers       []string // the configured peers, sorted
	Target      string   // of an add or a move: the peer of the primary; of an adoption or sweep: the object's peer
	Digest      string   // digest of the request
	Payload     string   // stands for the content
	Start       int64
	UID         string   // if set, only the object with this UID, or with a replica with this UID, is meant
	Base        int64    // of an update or a removal: the revision that it replaces or removes; 0 means any
	Version     string   `json:",omitempty"` // of a removal: the primary's resourceVersion; empty means any
	Met         Object   // of an operation that has no entry in the log: the object as listed
	Into        []string // of a cover: its peers; of a succession or resignation: all remaining members; of a move of Met: its target

	Central  bool   // of an add of the first release: a record in a central log decides it
	Agree    bool   // any committed content satisfies the request
	Inert    bool   // reservations carry no payload; the commit brings it
	Within   bool   // the namespace's owner must be Active
	Holds    bool   // the object owns a namespace that must be empty to remove it
	Limit    Limit  // of a sweep: how many removals plain deletes may request at once
	Prove    bool   // of a cover: a missing secondary is reported in Result.Unproved, and is not created
	Doubted  string // of an operation of a join or rejoin: the newcomer, whose secondaries prove no commit
	Patience Patience
	// Epochs are the epochs of the peers' PeerSets, as last read before the operation
	// began.
	Epochs map[string]int64 `json:",omitempty"`
	Lease  int              // quanta (pauses of Sleep) without a change after which a reservation may be deleted
	Watch  bool             // of a sweep: wait to see whether a lease expires
}

// Record is the state of an operation that the log holds beside Operation.
type Record struct {
	Primary    Ref      // the peer and, once known, the UID of the primary
	Origin     string   // the operation in the primary's claim, which a move of the home does not change
	Base       int64    // of an update: the revision that it replaces
	Term       int64    // term of the home that an update was meant for, or that a succession makes
	Elect      Ref      // of a move: the replica that the primary yields to
	Arrived    bool     // of a move: the target has been home
	Committing bool     // a commit may have been sent
	Committed  bool     // the commit is known to have been applied
	Leftover   []string // peers in which a reservation may still appear
}

// Ending is how a machine stopped.
type Ending string

const (
	// Running: the machine has not stopped.
	Running Ending = ""
	// Done: in effect, confirmed by every peer; or removed since by another operation; or
	// lost with its peer.
	Done Ending = "done"
	// Committed: in effect; Result.Pending names the peers that have not confirmed it.
	Committed Ending = "committed"
	// AlreadyDone: an earlier operation had the effect.
	AlreadyDone Ending = "already done"
	// Aborted: never in effect, not even in a state from before a restore of the peer.
	Aborted Ending = "aborted"
	// Ended: not in effect from now on; it may have been in effect for a while.
	Ended Ending = "ended"
	// InDoubt: unknown until Result.Peer answers.
	InDoubt Ending = "in doubt"
)

// Reason is why an operation was not committed.
type Reason string

// The reasons, each with the fields of Result that have the details.
const (
	HeldByOther  Reason = "held"         // Result.Holder
	GaveWay      Reason = "gave way"     // to the operation of Result.Holder, which is older
	Unreachable  Reason = "unreachable"  // Result.Peer
	Refused      Reason = "refused"      // by Result.Peer
	Fenced       Reason = "fenced"       // another coordinator fenced the reservation
	Membership   Reason = "membership"   // Result.Peer and Result.Problem
	OtherRing    Reason = "other ring"   // Result.Peer belongs to another ring
	OneCluster   Reason = "one cluster"  // Result.Peer and Result.Peers[0] are the same cluster
	NoOwner      Reason = "no owner"     // the namespace has no Active owner in Result.Peer
	Occupied     Reason = "occupied"     // Result.Occupants
	Outdated     Reason = "outdated"     // Result.Revision is the present one
	Missing      Reason = "missing"      // there is no such object
	Late         Reason = "late"         // the deadline came first
	LogFailed    Reason = "log failed"   // a write of the log failed
	TakenOver    Reason = "taken over"   // another coordinator has taken over the log's entry
	Contended    Reason = "contended"    // the name changed its owner too often
	Homeless     Reason = "homeless"     // the object in Result.Peer is not the home, and no home was found
	Lost         Reason = "lost"         // the object was lost with Result.Peer, which has departed
	Departing    Reason = "departing"    // the object to adopt is being deleted
	Suspect      Reason = "suspect"      // Result.Holder is evidence of a missing primary
	Restored     Reason = "restored"     // Result.Peer was restored after the commit may have been sent
	UnknownOwner Reason = "unknown peer" // Result.Peer holds the primary and is not configured
)

// Result is the outcome of a machine.
type Result struct {
	Ending    Ending
	Reason    Reason
	Peer      string
	Peers     []string
	Holder    Object // the object that has the name, as read in the peer HolderAt
	HolderAt  string
	Primary   Ref
	Revision  int64
	Occupants []Occupant
	Problem   string   // of Membership and Homeless: an explanation for people
	Pending   []string // peers that have not confirmed, or in which a dead reservation may be left
	Held      Held     // of a sweep: why a requested removal is held
	Durable   bool     // every other member was read to hold evidence of the operation
	Unproved  []string // of a cover: full members that have no secondary of the primary
	Mend      Mend     // of an Everywhere object: the revisions that were reconciled
	Removed   bool     // of a sweep or discard: an object was deleted; of a resignation: the former home was written
	Mended    bool     // of a sweep: an object was repaired
	Keep      bool     // the log's entry must stay
}
