// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// Verb is the kind of a command.
type Verb string

const (
	// Begin makes the operation durable in the log, before anything else.
	Begin Verb = "begin"
	// Advance makes Machine.Record durable.
	Advance Verb = "advance"
	// Forget ends the log's entry. No step depends on the end of the entry, so Forget may be lost.
	Forget Verb = "forget"

	// Create creates Object in Peer.
	Create Verb = "create"
	// Read reads the object of the operation's name in Peer, from a quorum.
	Read Verb = "read"
	// Put replaces the object in Peer by Object if that object has UID and RV.
	Put Verb = "put"
	// Delete deletes the object in Peer if that object has UID and RV.
	Delete Verb = "delete"

	// ReadPeerSet reads Peer's PeerSet, from a quorum.
	ReadPeerSet Verb = "read-peerset"
	// ReadOwner reads the object that owns the namespace in Peer.
	ReadOwner Verb = "read-owner"
	// List lists in Peer the objects in the namespace that the object owns.
	List Verb = "list"
	// Settle sweeps, in Peer, each Reserved object in the namespace that the object owns; such a
	// sweep deletes a dead object. It returns the objects that are left, each with the stage of its
	// primary.
	Settle Verb = "settle"
	// Count counts the homes of the kind in Peer, and those whose removal a plain delete
	// requests.
	Count Verb = "count"
	// Activate notifies the kind that Object is in effect in Peer.
	Activate Verb = "activate"
	// Release notifies the kind that Object is about to be deleted in Peer.
	Release Verb = "release"

	// PutPeerSet replaces Peer's PeerSet by Set if that PeerSet has RV; without an RV it creates
	// the PeerSet.
	PutPeerSet Verb = "put-peerset"
	// Survey lists the objects of every kind in Peer. It leaves out unclaimed objects of a kind
	// that keeps its state in an annotation.
	Survey Verb = "survey"
	// Sub runs the operation Sub to its end, on the object that a survey found under Key.
	Sub Verb = "sub"
	// Finish runs the change in slot Other to its end.
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

	Record string // operation ID, of the verbs on records and of Forget

	Set   *PeerSet   // of PutPeerSet
	Key   string     // of Sub
	Sub   *Operation // of Sub; of the fields that depend on the kind only Mode is set
	Other *Slot      // of Finish
}

// readObject returns the command that reads the operation's object in peer.
func readObject(peer string) Command { return Command{Verb: Read, Peer: peer} }

// deleteObject returns the command that deletes o in peer, if o is still as it was read.
func deleteObject(peer string, o Object) Command {
	return Command{Verb: Delete, Peer: peer, UID: o.UID, RV: o.RV}
}

// readRecord returns the command that reads the record which decides operation.
func readRecord(operation string) Command {
	return Command{Verb: ReadRecord, Record: operation}
}

// Class reports whether an attempt to write took effect.
type Class uint8

const (
	// NotApplied: the attempt had no effect and never will have one.
	NotApplied Class = iota
	// Applied: the attempt had its effect.
	Applied
	// Unknown: the attempt may have had its effect, or may still have it.
	Unknown
)

// String returns the class's name.
func (c Class) String() string {
	return [...]string{"NotApplied", "Applied", "Unknown"}[c]
}

// Code is the result code of a command.
type Code string

// The codes that the protocol distinguishes.
const (
	OK          Code = "OK"
	NotFound    Code = "NotFound"
	Exists      Code = "AlreadyExists"
	Conflict    Code = "Conflict"
	Denied      Code = "Denied"      // a refusal that a retry will not change
	Unavailable Code = "Unavailable" // no reply, or a transient error
	NoSuchPeer  Code = "NoSuchPeer"  // not among the configured peers
)

// Reply is the reply to a command.
type Reply struct {
	Strand, Seq int
	Class       Class
	Code        Code
	Object      Object
	PeerSet     PeerSet
	Occupants   []Occupant
	Requests    Requests  // of a Count
	Decision    *Decision // of a verb on records: the record
	Found       []Found   // of a Survey
	Result      Result    // of a Sub
}

// Occupant is an object in the namespace that an object owns.
type Occupant struct {
	Peer, Resource, Namespace, Name string
	Stage                           Stage
	Guard                           bool // the object itself is in another peer
}

// Found is an object that a survey found.
type Found struct {
	Key    string // names the object in every peer
	Mode   Mode
	Object Object
}
