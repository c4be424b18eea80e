// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// PeerSetName is the name of the one PeerSet of a peer.
const PeerSetName = "default"

// PeerState is the state of a peer in the ring.
//
// +kubebuilder:validation:Enum=Joining;Active;Leaving;Quarantined;Out
type PeerState string

const (
	// PeerJoining is a peer that receives content and holds no primary yet.
	PeerJoining PeerState = "Joining"
	// PeerActive is a full member.
	PeerActive PeerState = "Active"
	// PeerLeaving is a member that takes no new primaries.
	PeerLeaving PeerState = "Leaving"
	// PeerQuarantined is a peer that joins, rejoins or was restored, while its objects are
	// judged.
	PeerQuarantined PeerState = "Quarantined"
	// PeerOut is a peer that is no member.
	PeerOut PeerState = "Out"
)

// PeerSet lists the peers of the ring as one peer knows them. Each peer has one, named
// "default". A coordinator reads it during each operation, and so learns of members that
// it has not configured.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=ps,categories=atoll
// +kubebuilder:metadata:labels="atoll.dev/schema-version=1"
// +kubebuilder:printcolumn:name="Self",type=string,JSONPath=`.spec.self.peer`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.spec.self.state`
// +kubebuilder:printcolumn:name="Members",type=string,JSONPath=`.spec.members[*].peer`
// +kubebuilder:printcolumn:name="Epoch",type=integer,JSONPath=`.spec.epoch`
// +kubebuilder:printcolumn:name="Change",type=string,JSONPath=`.spec.change.kind`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PeerSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the membership.
	Spec PeerSetSpec `json:"spec"`
}

// PeerSetSpec is the membership as one peer knows it.
//
// +kubebuilder:validation:XValidation:rule="self.self.peer == oldSelf.self.peer && self.self.uid == oldSelf.self.uid",message="self cannot become another peer: a PeerSet is never copied from one peer to another"
// +kubebuilder:validation:XValidation:rule="self.epoch > oldSelf.epoch || self == oldSelf",message="epoch must grow with each change: read the PeerSet again and write one more"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.ring) || has(self.ring)",message="ring was dropped: the program that writes does not know it and is older than this definition: upgrade it (atollctl, and every coordinator of the ring)"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.ring) || !has(self.ring) || self.ring == oldSelf.ring",message="ring never changes: a PeerSet belongs to one ring. To join another ring, delete this PeerSet first"
type PeerSetSpec struct {
	// Self is the peer that holds this object.
	Self Member `json:"self"`

	// Ring is the ID of the ring. It is made once, is the same in all members, and is never
	// changed or dropped. A PeerSet of the first release has no ID until a coordinator writes it,
	// usually in a sweep (a check and repair of all peers).
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Ring string `json:"ring,omitempty"`

	// Members are all peers of the ring, this one included.
	//
	// +listType=map
	// +listMapKey=peer
	// +kubebuilder:validation:MaxItems=1024
	Members []Member `json:"members"`

	// Departed are former members. Guards and replicas whose primary was there hold no name.
	//
	// +optional
	// +listType=map
	// +listMapKey=peer
	// +kubebuilder:validation:MaxItems=1024
	Departed []Departure `json:"departed,omitempty"`

	// Change is the membership change under way. A PeerSet has this one slot for it.
	//
	// +optional
	Change *Change `json:"change,omitempty"`

	// Epoch grows with each write of this object. It cannot be compared with another
	// peer's, only with the epochs of this peer that others have noted. A comeback (the
	// rejoin of a restored peer) raises it to the next multiple of 1,000,000,000, above
	// all epochs from before.
	//
	// +kubebuilder:validation:Minimum=1
	Epoch int64 `json:"epoch"`

	// Notes are the epochs of the other members as this peer's coordinators read them. A
	// member whose own epoch is lower than a noted one was restored from an older state:
	// coordinators do not use its answers until its comeback (its rejoin) is done.
	//
	// +optional
	// +listType=map
	// +listMapKey=peer
	// +kubebuilder:validation:MaxItems=1024
	Notes []Note `json:"notes,omitempty"`

	// NotedAt is when the notes were written last. It only keeps several coordinators
	// from writing them too often.
	//
	// +optional
	NotedAt *metav1.Time `json:"notedAt,omitempty"`
}

// Note is the epoch that another member's PeerSet had.
type Note struct {
	// Peer is the name of the member.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Peer string `json:"peer"`

	// UID is the UID of the member's cluster.
	//
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	UID types.UID `json:"uid"`

	// Epoch is the number that was read.
	//
	// +kubebuilder:validation:Minimum=1
	Epoch int64 `json:"epoch"`
}

// Member is one peer of the ring.
type Member struct {
	// Peer is the name of the peer.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Peer string `json:"peer"`

	// UID is the UID of the peer's kube-system namespace, the identity of the cluster.
	//
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	UID types.UID `json:"uid"`

	// State is the state of the peer in the ring.
	State PeerState `json:"state"`
}

// Departure records how a peer left.
type Departure struct {
	// Peer is the name of the peer.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Peer string `json:"peer"`

	// UID is the UID of the peer's cluster: a later peer of the same name in another
	// cluster is another peer. Departures of the first release have none.
	//
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	UID types.UID `json:"uid,omitempty"`

	// How is Left after a planned leave, Forced after a removal by force.
	//
	// +kubebuilder:validation:Enum=Left;Forced
	How string `json:"how"`

	// By names the person who vouched that a peer removed by force never returns.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	By string `json:"by,omitempty"`

	// At is the time of the departure, for people.
	At metav1.Time `json:"at"`
}

// Change is a membership change under way.
type Change struct {
	// ID identifies the change, which writes a PeerSet only while this ID is in it.
	//
	// +kubebuilder:validation:MaxLength=64
	ID string `json:"id"`

	// Kind is Join, Leave, ForceRemove or Comeback.
	//
	// +kubebuilder:validation:Enum=Join;Leave;ForceRemove;Comeback
	Kind string `json:"kind"`

	// Peer is the peer concerned.
	//
	// +kubebuilder:validation:MaxLength=253
	Peer string `json:"peer"`

	// UID is the UID of the cluster of a joining peer.
	//
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	UID types.UID `json:"uid,omitempty"`

	// Coordinator names the process at work, for people.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Coordinator string `json:"coordinator,omitempty"`

	// By names the person who vouches that a peer to be removed by force never returns.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	By string `json:"by,omitempty"`

	// Anchor is the peer whose slot (spec.change) the change took first and frees last.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Anchor string `json:"anchor,omitempty"`

	// Over is set when the only write left to the change here is the one that frees the
	// slot.
	//
	// +optional
	Over bool `json:"over,omitempty"`

	// Heartbeat is raised by one with each sign of life.
	//
	// +optional
	Heartbeat int64 `json:"heartbeat,omitempty"`

	// Note is state of the change itself, such as the new home of Accounts.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Note string `json:"note,omitempty"`
}

// PeerSetList is a list of PeerSets.
//
// +kubebuilder:object:root=true
type PeerSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the PeerSets.
	Items []PeerSet `json:"items"`
}
