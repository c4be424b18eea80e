// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// Verb is the kind of a command.
type Verb string

const (
	// Begin writes the entry of the operation to the log, before any other command is sent.
	Begin Verb = "begin"
	// Advance writes Machine.Record to the operation's entry in the log.
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
	// List lists in Peer the objects in the namespace that the operation's object owns.
	List Verb = "list"
	// Settle sweeps (checks and repairs) each Reserved object in Peer, in the namespace that the
	// operation's object owns. It deletes an object that is dead: its primary is gone for ever. It
	// returns all objects that are left, a Reserved object with the stage of its primary.
	Settle Verb = "settle"
	// Count counts the homes (primaries) of the kind in Peer, and those whose removal was requested
	// by a plain delete, such as kubectl delete.
	Count Verb = "count"
	// Activate calls the hook of the kind which learns that Object is in effect in Peer.
	Activate Verb = "activate"
	// Release calls the hook of the kind which learns that Object is about to be deleted in Peer.
	Release Verb = "release"

	// PutPeerSet replaces Peer's PeerSet by Set if that PeerSet has RV; without an RV it creates
	// the PeerSet.
	PutPeerSet Verb = "put-peerset"
	// Survey lists the objects of every kind in Peer. If a kind keeps its claims in an annotation,
	// Survey leaves out the kind's objects without a claim.
	Survey Verb = "survey"
	// Sub runs the operation Sub to its end, on the object that a survey found under Key.
	Sub Verb = "sub"
	// Finish runs the membership change that the slot Other names to its end.
	Finish Verb = "finish"

	// Sleep waits for one quantum, a fraction of the lease.
	Sleep Verb = "sleep"
)

// Command is one request of a machine. At most one command of a strand (a running task) is
// outstanding.
type Command struct {
	Strand, Seq int
	Verb        Verb
	Peer        string
	Object      Object
	UID, RV     string

	Record string // of Forget, and of the verbs on records of the first release: the operation's ID

	Set   *PeerSet   // of PutPeerSet
	Key   string     // of Sub
	Sub   *Operation // of Sub; the runtime sets the fields that depend on the kind, except Mode
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
	Decision    *Decision // of a verb on records of the first release: the record
	Found       []Found   // of a Survey
	Result      Result    // of a Sub
}

// Occupant is an object in the namespace that an object owns.
type Occupant struct {
	Peer, Resource, Namespace, Name string
	Stage                           Stage
	Guard                           bool // it only holds the name of an object in another peer
}

// Found is an object that a survey found.
type Found struct {
	Key    string // names the object in every peer
	Mode   Mode
	Object Object
}
