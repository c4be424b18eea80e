// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// PeerSetName is the name of the one PeerSet of a peer.
const PeerSetName = "default"

// PeerState says how far a peer belongs to the ring.
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
	// PeerQuarantined is a peer that came back and is being audited.
	PeerQuarantined PeerState = "Quarantined"
	// PeerOut is a peer that is no member.
	PeerOut PeerState = "Out"
)

// PeerSet names all peers of the ring as one peer knows them. There is one in
// each peer, named "default"; reading it beside an operation's own writes is
// how coordinators learn of peers that they are not configured with.
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
	// Self is the peer in which this object stands.
	Self Member `json:"self"`

	// Ring identifies the ring. It is made once, is the same in all members, and
	// neither changes nor goes. PeerSets of the first release have none until the
	// next sweep.
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

	// Departed are peers that once were members; what names them is dead.
	//
	// +optional
	// +listType=map
	// +listMapKey=peer
	// +kubebuilder:validation:MaxItems=1024
	Departed []Departure `json:"departed,omitempty"`

	// Change is the slot of the one membership change under way.
	//
	// +optional
	Change *Change `json:"change,omitempty"`

	// Epoch grows with each write of this object. It cannot be compared with another
	// peer's, only with what the other peers have noted of it. A peer that comes back
	// begins again at the next multiple of 1,000,000,000: it has another life.
	//
	// +kubebuilder:validation:Minimum=1
	Epoch int64 `json:"epoch"`

	// Notes are the epochs of the other members as this peer's coordinators read them.
	// A member whose own epoch is lower than one of them was restored from an older
	// state: nothing that it says counts until it has come back.
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
	// Peer is its name.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Peer string `json:"peer"`

	// UID is that of its cluster.
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
	// Peer is its name.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Peer string `json:"peer"`

	// UID is that of its kube-system namespace: the identity of the cluster.
	//
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	UID types.UID `json:"uid"`

	// State says how far it belongs to the ring.
	State PeerState `json:"state"`
}

// Departure records how a peer left.
type Departure struct {
	// Peer is its name.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Peer string `json:"peer"`

	// UID is that of its cluster: a later peer of the same name in another cluster
	// is not this one. Departures of the first release have none.
	//
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	UID types.UID `json:"uid,omitempty"`

	// How is Left for a planned leave, Forced if an operator gave it up.
	//
	// +kubebuilder:validation:Enum=Left;Forced
	How string `json:"how"`

	// By names who did it.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	By string `json:"by,omitempty"`

	// At is when, for people.
	At metav1.Time `json:"at"`
}

// Change is a membership change under way.
type Change struct {
	// ID identifies the change; each write under it requires it.
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

	// UID is that of the cluster of a peer that joins.
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

	// By names who answers for the change.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	By string `json:"by,omitempty"`

	// Anchor is the peer whose slot was taken first and is freed last.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Anchor string `json:"anchor,omitempty"`

	// Over says that the change writes nothing more here but to free the slot.
	//
	// +optional
	Over bool `json:"over,omitempty"`

	// Heartbeat is raised by one with each sign of life.
	//
	// +optional
	Heartbeat int64 `json:"heartbeat,omitempty"`

	// Note is the change's own memory, such as the new home of Accounts.
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
