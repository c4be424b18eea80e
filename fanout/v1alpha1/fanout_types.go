// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// PrimaryFinalizer is on every committed primary. The commit adds it, and the last step of
// a removal removes it, so a plain delete of a committed object becomes a removal from all
// peers, or a request for one.
const PrimaryFinalizer = "fanout.atoll.dev/primary"

// RemovalHeldAnnotation is on the primary of an object that exists everywhere while the
// removal that a plain delete of it requests is held: "REASON: text". A coordinator writes
// it.
const RemovalHeldAnnotation = "fanout.atoll.dev/removal-held"

// ReleaseRemovalAnnotation releases a held removal: a person sets it on the primary, to the
// primary's UID. With any other value it has no effect.
const ReleaseRemovalAnnotation = "fanout.atoll.dev/release-removal"

// Stage is the progress of an object under the fan-out protocol. It never goes back:
// Reserved, then Configured, Active or Decided, then Removing.
//
// +kubebuilder:validation:Enum=Reserved;Configured;Active;Decided;Removing
type Stage string

const (
	// StageReserved holds the name; no controller acts on the object.
	StageReserved Stage = "Reserved"
	// StageConfigured is a committed primary of a kind that exists once.
	StageConfigured Stage = "Configured"
	// StageActive is a committed object of a kind that exists everywhere.
	StageActive Stage = "Active"
	// StageDecided is a committed primary whose target is another peer. This release only
	// reads it.
	StageDecided Stage = "Decided"
	// StageRemoving is a primary whose removal is committed.
	StageRemoving Stage = "Removing"
)

// Role distinguishes the object that decides from those of the same name in other peers.
//
// +kubebuilder:validation:Enum=Primary;Secondary
type Role string

const (
	// RolePrimary is the object whose state decides whether an operation is committed.
	RolePrimary Role = "Primary"
	// RoleSecondary is an object of the same name in another peer.
	RoleSecondary Role = "Secondary"
)

// Fanout is the protocol's part of an object. Only coordinators write it. The protocol does
// not manage an object without a claim in it.
//
// The rules about adding and dropping this field are at the object's spec: a transition
// rule on an optional field is not evaluated when the field is dropped.
//
// +kubebuilder:validation:XValidation:rule="has(self.claim) && has(self.stage)",message="claim and stage are both needed: leave spec.fanout out of an object that you apply, a coordinator adds it"
// +kubebuilder:validation:XValidation:rule="has(self.claim) && self.claim == oldSelf.claim",message="claim cannot be changed: remove the object from all peers and create it again",messageExpression="'claim cannot be changed: the name is held for peer ' + oldSelf.claim.target + ' by operation ' + oldSelf.claim.operation + '; remove the object from all peers and create it again'"
// +kubebuilder:validation:XValidation:rule="has(self.stage) && (self.stage == oldSelf.stage || oldSelf.stage == 'Reserved' || (oldSelf.stage != 'Removing' && self.stage == 'Removing'))",message="stage cannot go back: it goes from Reserved to Configured, Active or Decided, and from there to Removing",messageExpression="'stage cannot go from ' + oldSelf.stage + ' to ' + self.stage + ': it goes from Reserved to Configured, Active or Decided, and from there to Removing'"
// +kubebuilder:validation:XValidation:rule="self.?heartbeat.orValue(0) >= oldSelf.?heartbeat.orValue(0)",message="heartbeat cannot fall: write the value that was read, or one more"
// +kubebuilder:validation:XValidation:rule="has(self.removal) == (has(self.stage) && self.stage == 'Removing')",message="removal goes with stage Removing: set both in one write, or neither"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.removal) || (has(self.removal) && self.removal == oldSelf.removal)",message="removal cannot be changed: it is under way already; join it instead of starting another"
// +kubebuilder:validation:XValidation:rule="self.?revision.number.orValue(-1) >= oldSelf.?revision.number.orValue(-1)",message="revision.number cannot fall: read the object again and write the next number"
// +kubebuilder:validation:XValidation:rule="!has(self.revision) || !has(oldSelf.revision) || self.revision.number != oldSelf.revision.number || self.revision == oldSelf.revision",message="revision cannot be changed under the same number: another content needs the next number"
// +kubebuilder:validation:XValidation:rule="self.?home.term.orValue(0) >= oldSelf.?home.term.orValue(0)",message="home.term cannot fall: read the object again, its home has moved on"
// +kubebuilder:validation:XValidation:rule="!has(self.home) || !has(oldSelf.home) || self.home.term != oldSelf.home.term || (self.home.peer == oldSelf.home.peer && (!has(oldSelf.home.uid) || size(oldSelf.home.uid) == 0 || (has(self.home.uid) && self.home.uid == oldSelf.home.uid)))",message="home cannot be changed within a term: a move needs the next term"
// +kubebuilder:validation:XValidation:rule="has(self.bound) ? has(self.claim) && self.claim.role == 'Secondary' && (!has(self.claim.primary) || (self.bound.peer == self.claim.primary.peer && self.bound.uid == self.claim.primary.uid)) && (!has(oldSelf.bound) || self.bound == oldSelf.bound) : !has(oldSelf.bound)",message="bound is set once, on a Secondary, to the primary that its claim names if it names one"
type Fanout struct {
	// Claim records which operation took the name, and when. It never changes.
	//
	// +optional
	Claim *Claim `json:"claim,omitempty"`

	// Stage is the progress of the operation that made the claim.
	//
	// +optional
	Stage Stage `json:"stage,omitempty"`

	// Bound is written on a guard after its primary's commit and proves that commit: if the
	// primary is missing, the guard stays, since the primary's peer may have been restored
	// from an older state. If the claim names a record in a central log, Bound is the
	// primary that the committed record names. It is then no proof: this primary may
	// still be Reserved.
	//
	// +optional
	Bound *ObjectRef `json:"bound,omitempty"`

	// Heartbeat is raised by one with each sign of life of the coordinator
	// while a primary is Reserved.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Heartbeat int64 `json:"heartbeat,omitempty"`

	// Removal names the operation that removes a Removing primary.
	//
	// +optional
	Removal *Removal `json:"removal,omitempty"`

	// Revision numbers the content of a kind that exists everywhere.
	//
	// +optional
	Revision *Revision `json:"revision,omitempty"`

	// History lists the latest revisions, on the primary only, oldest first. A coordinator
	// that lost the reply to an update reads here whether it was committed.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	History []HistoryEntry `json:"history,omitempty"`

	// Home names the primary of a kind that exists everywhere.
	//
	// +optional
	Home *Home `json:"home,omitempty"`
}

// Claim is immutable: ownership changes only by delete and create, so the
// object's UID is the fencing token.
//
// +kubebuilder:validation:XValidation:rule="has(self.record) ? !has(self.primary) : (self.role == 'Secondary') == has(self.primary)",message="a Secondary names its primary and a Primary names none; under a central log a claim names its record alone"
type Claim struct {
	// Operation is the ID of the operation that created the object.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Operation string `json:"operation"`

	// Coordinator names the process that runs the operation, for people.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Coordinator string `json:"coordinator,omitempty"`

	// Digest is the SHA-256 of the requested content, in hexadecimal.
	//
	// +kubebuilder:validation:MaxLength=64
	Digest string `json:"digest"`

	// Start is when the request first began. Start and the operation's ID order rivals
	// (operations on the same name), and decide nothing else.
	Start metav1.MicroTime `json:"start"`

	// Epoch is the epoch of the target's PeerSet that the coordinator had read, for people.
	//
	// +optional
	Epoch int64 `json:"epoch,omitempty"`

	// Role is Primary for the object that decides, else Secondary.
	Role Role `json:"role"`

	// Peer is the peer that holds this object.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Peer string `json:"peer"`

	// Target is the peer in which the requested object is created.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Target string `json:"target"`

	// Primary names the primary of a secondary.
	//
	// +optional
	Primary *ObjectRef `json:"primary,omitempty"`

	// Record is the UID of the operation's record in a central log (of the first
	// release), which decides whether the operation is committed.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Record string `json:"record,omitempty"`
}

// ObjectRef names one incarnation of an object of the same name in a peer.
type ObjectRef struct {
	// Peer is the peer that holds the object.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Peer string `json:"peer"`

	// UID is the object's metadata.uid there.
	//
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	UID types.UID `json:"uid"`
}

// Removal records which operation removes an object.
type Removal struct {
	// Operation is the ID of the removal.
	//
	// +kubebuilder:validation:MaxLength=64
	Operation string `json:"operation"`

	// Coordinator names the process that runs it, for people.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Coordinator string `json:"coordinator,omitempty"`

	// Start is when the removal was requested.
	Start metav1.MicroTime `json:"start"`
}

// Revision identifies one content of an object that exists everywhere.
type Revision struct {
	// Number starts at 1 and grows by one with each committed content. 0 is a
	// secondary that waits for its first content.
	//
	// +kubebuilder:validation:Minimum=0
	Number int64 `json:"number"`

	// Operation is the ID of the operation that committed it.
	//
	// +kubebuilder:validation:MaxLength=64
	Operation string `json:"operation"`

	// Digest is the SHA-256 of the content, in hexadecimal.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Digest string `json:"digest,omitempty"`
}

// HistoryEntry records which operation committed a revision.
type HistoryEntry struct {
	// Number is the revision's number.
	Number int64 `json:"number"`

	// Operation is the ID of the operation that committed it.
	//
	// +kubebuilder:validation:MaxLength=64
	Operation string `json:"operation"`
}

// Home is the primary of an object that exists everywhere.
type Home struct {
	// Peer is the peer of the primary.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Peer string `json:"peer"`

	// UID is the primary's metadata.uid. It is empty on a primary that was just created,
	// before its own UID is known.
	//
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	UID types.UID `json:"uid,omitempty"`

	// Term grows by one with each move of the primary.
	//
	// +kubebuilder:validation:Minimum=1
	Term int64 `json:"term"`

	// Yielded marks the old home during a move, and replicas whose primary was lost.
	//
	// +optional
	Yielded bool `json:"yielded,omitempty"`
}
