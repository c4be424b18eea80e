// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
)

// RegionClaim is a provider's claim that this peer serves a region. Name and
// namespace are those of the region: the claim eu-west-1 in the namespace
// loodse is for the region eu-west-1.loodse. The ServiceCluster of the same
// namespace and name in this peer stays Pending until the claim is Bound.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=rcl,categories=atoll
// +kubebuilder:metadata:labels="atoll.dev/schema-version=1"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Holder",type=string,JSONPath=`.status.holder.peer`
// +kubebuilder:printcolumn:name="Stage",type=string,JSONPath=`.spec.fanout.stage`,priority=1
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.spec.fanout.claim.target`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type RegionClaim struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is empty except for the protocol's part: the claim is for its name.
	// It defaults to an empty object, so that validation rules see every change.
	//
	// +optional
	// +kubebuilder:default={}
	Spec RegionClaimSpec `json:"spec"`

	// Status is the observed state.
	//
	// +optional
	Status RegionClaimStatus `json:"status,omitzero"`
}

// RegionClaimSpec is the desired state of a RegionClaim.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.fanout) || has(self.fanout)",message="claim cannot be removed: use apply instead of replace, or keep spec.fanout as it is; to give the name up, delete the object and let a coordinator clear all peers"
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.?fanout.stage.orValue('Reserved') == 'Reserved'",message="a RegionClaim is created Reserved or without spec.fanout: leave spec.fanout out, a coordinator adopts the object",optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule="has(oldSelf.fanout) || !has(self.fanout) || (self.fanout.?claim.role.orValue('None') == 'Primary' && self.fanout.?stage.orValue('None') == 'Configured')",message="an object that was applied without a claim is adopted as a Primary and Configured at once, never as a reservation: adopt it through a coordinator"
// +kubebuilder:validation:XValidation:rule="self.?fanout.stage.orValue('Reserved') in ['Reserved', 'Configured', 'Decided', 'Removing']",message="the stages of a RegionClaim are Reserved, Configured, Decided, Removing"
type RegionClaimSpec struct {
	// Fanout is the protocol's part. Only coordinators write it.
	//
	// +optional
	Fanout *fanoutv1alpha1.Fanout `json:"fanout,omitempty"`
}

// RegionClaimStatus is the observed state of a RegionClaim.
type RegionClaimStatus struct {
	// Phase is Bound, Conflict or Pending, for people and for clients that do not
	// read conditions. It is derived from the conditions.
	//
	// +optional
	// +kubebuilder:validation:Enum=Bound;Conflict;Pending
	Phase RegionClaimPhase `json:"phase,omitempty"`

	// ObservedGeneration is the generation of the spec that the status describes.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions are the observations: Bound.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Holder is the claim that holds the region: this one or the one it conflicts with.
	//
	// +optional
	Holder RegionHolder `json:"holder,omitzero"`
}

// RegionHolder is the claim that holds a region.
type RegionHolder struct {
	// Peer is the peer of the claim.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Peer string `json:"peer"`

	// Since is when the claim was bound, if known.
	//
	// +optional
	Since metav1.Time `json:"since,omitzero"`
}

// RegionClaimManager is the field manager of arbiters, which decide about RegionClaims. A client
// that acts on a status, for example routes to the peer because the phase is Bound, should do so
// only if this manager owns the phase (metadata.managedFields): a status by another manager
// decides nothing.
const RegionClaimManager = "atoll-region-claim"

// RegionClaimPhase summarizes a RegionClaim.
type RegionClaimPhase string

const (
	// RegionClaimPending means that the claim is not decided yet.
	RegionClaimPending RegionClaimPhase = "Pending"
	// RegionClaimBound means that this peer serves the region.
	RegionClaimBound RegionClaimPhase = "Bound"
	// RegionClaimConflict means that another peer holds the region.
	RegionClaimConflict RegionClaimPhase = "Conflict"
)

// RegionClaimList is a list of RegionClaims.
//
// +kubebuilder:object:root=true
type RegionClaimList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the RegionClaims.
	Items []RegionClaim `json:"items"`
}
