// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// Verb is what a command asks for.
type Verb string

const (
	// Begin makes the operation durable in the log, before anything else.
	Begin Verb = "begin"
	// Advance makes Machine.Record durable.
	Advance Verb = "advance"
	// Forget ends the log's entry. It may be lost; nothing waits for it.
	Forget Verb = "forget"

	// Create creates Object in Peer.
	Create Verb = "create"
	// Read reads the object of the operation's name in Peer, from a quorum.
	Read Verb = "read"
	// Put replaces the object in Peer by Object if UID and RV still hold.
	Put Verb = "put"
	// Delete deletes the object in Peer if UID and RV still hold.
	Delete Verb = "delete"

	// ReadPeerSet reads Peer's PeerSet, from a quorum.
	ReadPeerSet Verb = "read-peerset"
	// ReadOwner reads the object that owns the namespace in Peer.
	ReadOwner Verb = "read-owner"
	// List lists in Peer what lives in the namespace that the object owns.
	List Verb = "list"
	// Settle judges what is Reserved in that namespace in Peer and removes what
	// is dead, each by a sweep of its own. It answers with what is left, each
	// with the stage of its primary.
	Settle Verb = "settle"
	// Count counts in Peer the homes of the kind, and those of which a plain delete
	// requests the removal.
	Count Verb = "count"
	// Activate tells the kind that Object is in force in Peer.
	Activate Verb = "activate"
	// Release tells the kind that Object is about to go from Peer.
	Release Verb = "release"

	// PutPeerSet replaces Peer's PeerSet by Set if its RV still holds; without
	// one it creates it.
	PutPeerSet Verb = "put-peerset"
	// Survey lists all objects under the protocol in Peer, and those of a person
	// that have such a name.
	Survey Verb = "survey"
	// Sub runs the operation Sub on the object that a survey found under Key to
	// its end.
	Sub Verb = "sub"
	// Finish runs the change that holds Slot to its end.
	Finish Verb = "finish"

	// Sleep waits for one quantum, a fraction of the lease.
	Sleep Verb = "sleep"
)

// Command is one request of a machine. At most one command of a strand is
// outstanding.
type Command struct {
	Strand, Seq int
	Verb        Verb
	Peer        string
	Object      Object
	UID, RV     string

	Record string // of the verbs on records, and of Forget: whose

	Set   *PeerSet   // of PutPeerSet
	Key   string     // of Sub
	Sub   *Operation // of Sub; what depends on the kind is left out but the mode
	Other *Slot      // of Finish
}

// Class says what is known of an attempt.
type Class uint8

const (
	// NotApplied: it had no effect and never will.
	NotApplied Class = iota
	// Applied: it had its effect.
	Applied
	// Unknown: it may have had its effect or may have it yet.
	Unknown
)

// String returns the class's name.
func (c Class) String() string {
	return [...]string{"NotApplied", "Applied", "Unknown"}[c]
}

// Code is how a command was answered.
type Code string

// The answers, as far as the protocol tells them apart.
const (
	OK          Code = "OK"
	NotFound    Code = "NotFound"
	Exists      Code = "AlreadyExists"
	Conflict    Code = "Conflict"
	Denied      Code = "Denied"      // an answer that repeating will not change
	Unavailable Code = "Unavailable" // no answer, or one that says: not now
	NoSuchPeer  Code = "NoSuchPeer"  // not among the configured peers
)

// Reply answers a command.
type Reply struct {
	Strand, Seq int
	Class       Class
	Code        Code
	Object      Object
	PeerSet     PeerSet
	Occupants   []Occupant
	Requests    Requests  // of a Count
	Decision    *Decision // the record
	Found       []Found   // of a Survey
	Result      Result    // of a Sub
}

// Occupant is an object in the namespace that an object owns.
type Occupant struct {
	Peer, Resource, Namespace, Name string
	Stage                           Stage
	Guard                           bool // the object itself stands in another peer
}

// Found is an object that a survey met.
type Found struct {
	Key    string // names the object in every peer
	Mode   Mode
	Object Object
}
