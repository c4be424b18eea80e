// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterPlacementPolicy is a PlacementPolicy for many namespaces. It decides
// about the objects that no PlacementPolicy of their namespace selects. If
// several select one object, the one of highest priority decides, then the
// first by name.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=cpp,categories=atoll
// +kubebuilder:metadata:labels="atoll.dev/schema-version=1"
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.mode`
// +kubebuilder:printcolumn:name="Priority",type=integer,JSONPath=`.spec.priority`
// +kubebuilder:printcolumn:name="Clusters",type=integer,JSONPath=`.status.clusters`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterPlacementPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the policy.
	Spec ClusterPlacementPolicySpec `json:"spec"`

	// Status is the observed state.
	//
	// +optional
	Status PlacementPolicyStatus `json:"status,omitzero"`
}

// ClusterPlacementPolicySpec is a policy and the namespaces that it applies to.
type ClusterPlacementPolicySpec struct {
	// NamespaceSelector selects the namespaces by their labels. Absent selects
	// all namespaces.
	//
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	PlacementPolicySpec `json:",inline"`
}

// ClusterPlacementPolicyList is a list of ClusterPlacementPolicies.
//
// +kubebuilder:object:root=true
type ClusterPlacementPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the ClusterPlacementPolicies.
	Items []ClusterPlacementPolicy `json:"items"`
}
