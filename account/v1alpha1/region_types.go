// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Region shows a tenant, in the tenant's namespace, a region that it may use.
// Its name is the region's own, NAME.PROVIDER. The catalog writes it, without
// naming peers.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=reg,categories=atoll
// +kubebuilder:metadata:labels="atoll.dev/schema-version=1"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Provider",type=string,JSONPath=`.spec.provider.name`
// +kubebuilder:printcolumn:name="Display Name",type=string,JSONPath=`.spec.metadata.displayName`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Region struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec describes the region.
	//
	// +optional
	Spec RegionSpec `json:"spec,omitzero"`

	// Status is the observed state.
	//
	// +optional
	Status RegionStatus `json:"status,omitzero"`
}

// RegionSpec describes a region to a tenant.
type RegionSpec struct {
	// Provider is the account that offers the region.
	//
	// +optional
	Provider ObjectReference `json:"provider,omitzero"`

	// Metadata describes the region to people.
	//
	// +optional
	Metadata RegionMetadata `json:"metadata,omitzero"`
}

// ObjectReference names an object.
type ObjectReference struct {
	// Name is the object's name.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// RegionMetadata describes a Region to people.
type RegionMetadata struct {
	// DisplayName is a short name.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=256
	DisplayName string `json:"displayName,omitempty"`

	// Description describes the offers of the region.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Description string `json:"description,omitempty"`
}

// RegionStatus is the observed state of a Region.
type RegionStatus struct {
	// ObservedGeneration is the generation of the spec that the status is
	// about.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Phase is a one-word summary of the conditions for people. Programs read
	// the conditions.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Phase RegionPhase `json:"phase,omitempty"`

	// Conditions are the observations: Ready.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RegionPhase is a one-word summary of a Region for people.
type RegionPhase string

const (
	// RegionPending is unreachable, or was not observed yet.
	RegionPending RegionPhase = "Pending"
	// RegionReady can be used.
	RegionReady RegionPhase = "Ready"
	// RegionNotReady cannot be used at the moment. A Catalog never sets it.
	RegionNotReady RegionPhase = "NotReady"
)

// RegionList is a list of Regions.
//
// +kubebuilder:object:root=true
type RegionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the Regions.
	Items []Region `json:"items"`
}
