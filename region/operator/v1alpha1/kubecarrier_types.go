// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// KubeCarrier describes the installation in this cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=kc,categories=atoll
// +kubebuilder:metadata:labels="atoll.dev/schema-version=1"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Master",type=boolean,JSONPath=`.spec.master`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type KubeCarrier struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state.
	//
	// +optional
	Spec KubeCarrierSpec `json:"spec,omitzero"`

	// Status is the observed state.
	//
	// +optional
	Status KubeCarrierStatus `json:"status,omitzero"`
}

// KubeCarrierSpec is the desired state of an installation.
type KubeCarrierSpec struct {
	// Master makes the installation coordinate others: it runs the API and the
	// controllers of several regions, and cannot be registered as a Peer.
	//
	// +optional
	// +kubebuilder:default=false
	Master bool `json:"master,omitempty"`
}

// KubeCarrierStatus is the observed state of an installation.
type KubeCarrierStatus struct {
	// ObservedGeneration is the generation of the spec that the status describes.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Phase summarizes the conditions for people. Programs read the conditions.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Phase KubeCarrierPhase `json:"phase,omitempty"`

	// Conditions are the observations: Ready.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// KubeCarrierPhase summarizes an installation for people.
type KubeCarrierPhase string

const (
	// KubeCarrierPending means that the installation is being set up.
	KubeCarrierPending KubeCarrierPhase = "Pending"
	// KubeCarrierReady means that the installation works.
	KubeCarrierReady KubeCarrierPhase = "Ready"
	// KubeCarrierNotReady means that the installation does not work.
	KubeCarrierNotReady KubeCarrierPhase = "NotReady"
	// KubeCarrierTerminating means that the installation is being removed.
	KubeCarrierTerminating KubeCarrierPhase = "Terminating"
)

// KubeCarrierList is a list of KubeCarriers.
//
// +kubebuilder:object:root=true
type KubeCarrierList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the KubeCarriers.
	Items []KubeCarrier `json:"items"`
}
