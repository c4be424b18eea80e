// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "slices"

import "cmp"

// Mode determines what the other peers hold once an object is committed.
type Mode uint8

const (
	// Once: one peer has the object, the others hold a guard.
	Once Mode = iota
	// Everywhere: each peer has the object with the same content.
	Everywhere
)

// Stage is the progress of an object. It never goes back: Reserved comes first, Removing
// last, and an object has at most one of the three stages between them.
type Stage string

const (
	// Reserved holds the name for an operation that is not committed.
	Reserved Stage = "Reserved"
	// Configured: committed, in this peer only.
	Configured Stage = "Configured"
	// Active: committed, in every peer.
	Active Stage = "Active"
	// Decided: a committed primary whose target is another peer.
	Decided Stage = "Decided"
	// Removing: the removal is committed.
	Removing Stage = "Removing"
)

// Known reports whether s is one of the stages above.
func (s Stage) Known() bool { return s == Reserved || s.committed() || s == Removing }

func (s Stage) committed() bool { return s == Configured || s == Active || s == Decided }

// Ref names one incarnation of an object: its peer and its UID. The object's name is that of the
// operation.
type Ref struct{ Peer, UID string }

// Claim records which operation took a name. It never changes.
type Claim struct {
	Operation   string
	Coordinator string
	Digest      string
	Start       int64
	Epoch       int64
	Primary     bool // true: claim of a primary; false: claim of a secondary
	Peer        string
	Target      string
	Of          Ref    // of a secondary: its primary
	Record      string // of a claim of the first release: the UID of its record in the central log
}

// Revision identifies a content of an Everywhere object.
type Revision struct {
	Number    int64
	Operation string
	Digest    string
}

// History are the latest revisions of an object, oldest first, without digests.
type History []Revision

// has reports whether h contains a revision of operation. Numbers do not decide: a reconciled
// revision has another number than the one it was committed under.
func (h History) has(operation string) bool {
	return slices.ContainsFunc(h, func(r Revision) bool { return r.Operation == operation })
}

// Home names the primary of an Everywhere object. Each new home has a higher Term. Yielded means that
// the object in Ref may not be home yet. The zero value means that the home never moved.
type Home struct {
	Ref
	Term    int64
	Yielded bool
}

// HistoryLength is the number of revisions that a primary remembers.
const HistoryLength = 32

// Object is the protocol's view of an API object.
type Object struct {
	UID, RV     string
	Terminating bool
	Finalizer   bool // the object has our finalizer
	Foreign     bool // the object has a finalizer that is not ours
	Created     int64

	Claimed   bool
	Claim     Claim
	Stage     Stage
	Heartbeat int64
	Removal   string // the operation that removes the object
	Revision  Revision
	History   History
	Home      Home
	Bound     Ref // of a guard, or of a claim of the first release: its primary, written after the commit

	Valve    bool // of a kind whose plain deletes request a removal and commit nothing
	Held     Held // why the requested removal is held, as last recorded on the object
	Released bool // a person released the requested removal, or the name that o holds as evidence

	// Payload stands for the content: objects with equal contents have equal payloads. It is empty
	// on reservations of an operation that is Inert, and on guards that have only the fields which
	// every guard of the kind has.
	Payload string

	// Digest is the digest that a request for this content would have.
	Digest string
}

// Primary reports whether o is the primary. It assumes that o is in the peer that o's claim names.
func (o Object) Primary(mode Mode) bool {
	if !o.Claimed {
		return false
	}
	if mode == Everywhere && o.Home.Term > 0 {
		return o.Home.Peer == o.Claim.Peer && (o.Home.UID == o.UID || o.Home.UID == "")
	}
	return o.Claim.Primary
}

// Of returns the reference to the primary of secondary o.
func (o Object) Of(mode Mode) Ref {
	if mode == Everywhere && o.Home.Term > 0 {
		return o.Home.Ref
	}
	if o.Claim.Record != "" {
		return o.Bound
	}
	return o.Claim.Of
}

// Guard reports whether o is a guard, or the reservation that becomes one.
func (o Object) Guard(mode Mode) bool { return mode == Once && o.Claimed && !o.Claim.Primary }

// Overfull reports whether o is a guard with a payload, as earlier releases wrote them.
func (o Object) Overfull(mode Mode) bool { return o.Guard(mode) && o.Payload != "" }

// Committed reports whether o is Configured, Active or Decided, and has no deletionTimestamp.
func (o Object) Committed() bool { return o.Claimed && o.Stage.committed() && !o.Terminating }

// Requested reports whether a plain delete (such as kubectl delete) of home o requests its removal:
// our finalizer holds o, no removal is committed, and o stays in effect in all peers.
func (o Object) Requested() bool {
	return o.Valve && o.Claimed && o.Terminating && o.Stage == Active && o.Primary(Everywhere)
}

// InEffect reports whether o is committed and its removal is not.
func (o Object) InEffect() bool { return o.Committed() || o.Requested() }

// Pending reports whether o is a reservation that may still be committed.
func (o Object) Pending() bool { return o.Claimed && o.Stage == Reserved && !o.Terminating }

// Leaving reports whether the removal of o is committed. A plain delete of a committed object,
// which our finalizer holds, commits its removal, unless the delete only requests a removal.
func (o Object) Leaving() bool {
	return o.Claimed && (o.Stage == Removing || o.Stage.committed() && o.Terminating && !o.Requested())
}

// term returns the term of the home that o names, 1 if it names none.
func (o Object) term() int64 {
	if o.Home.Term == 0 {
		return 1
	}
	return o.Home.Term
}

// rival orders operations: the older one waits, the younger one gives way.
type rival struct {
	start     int64
	operation string
}

func (r rival) olderThan(other rival) bool {
	return cmp.Or(cmp.Compare(r.start, other.start), cmp.Compare(r.operation, other.operation)) < 0
}
