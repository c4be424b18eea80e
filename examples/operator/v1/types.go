// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1 has the type Database of the group operator.example.com, with its CustomResourceDefinition.
//
// +kubebuilder:object:generate=true
// +groupName=operator.example.com
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
)

// Database is a database in one region. Its namespace and name are unique over all regions: each other region has a guard,
// a Database of the same name with a claim and no other content.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Region",type=string,JSONPath=`.spec.fanout.claim.target`
type Database struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state. It defaults to an empty object, so that the rules see every write.
	//
	// +optional
	// +kubebuilder:default={}
	Spec DatabaseSpec `json:"spec,omitzero"`

	// Status is the observed state.
	//
	// +optional
	Status DatabaseStatus `json:"status,omitzero"`
}

// DatabaseSpec is the desired state of a Database. The first three rules are those of fanout/v1alpha1.Schema.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.fanout) || has(self.fanout)",message="claim cannot be removed: use apply instead of replace, or keep spec.fanout as it is; to give the name up, delete the object and let a coordinator clear all peers"
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.?fanout.stage.orValue('Reserved') == 'Reserved'",message="an object is created Reserved or without spec.fanout: leave spec.fanout out, a coordinator adopts the object",optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule="has(oldSelf.fanout) || !has(self.fanout) || (self.fanout.?claim.role.orValue('None') == 'Primary' && self.fanout.?stage.orValue('None') in ['Configured', 'Active'])",message="an object that was applied without a claim is adopted as a committed Primary at once, never as a reservation: adopt it through a coordinator"
// +kubebuilder:validation:XValidation:rule="!has(self.fanout) || self.fanout.claim.role == 'Primary' || !has(self.size)",message="a guard carries no payload: the Database of this name is in another region, change it there"
type DatabaseSpec struct {
	// Size is the size of the database, such as 10Gi. A guard has none, so the field is optional and has no default.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Size string `json:"size,omitempty"`

	// Fanout is the claim. Only coordinators write it.
	//
	// +optional
	Fanout *fanoutv1alpha1.Fanout `json:"fanout,omitempty"`
}

// DatabaseStatus is the observed state of a Database.
type DatabaseStatus struct {
	// Conditions has the condition Ready.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// IsGuard reports whether the Database only guards the name of a Database in another region.
func (d *Database) IsGuard() bool {
	return d.Spec.Fanout != nil && d.Spec.Fanout.Claim != nil && d.Spec.Fanout.Claim.Role == fanoutv1alpha1.RoleSecondary
}

// DatabaseList is a list of Databases.
//
// +kubebuilder:object:root=true
type DatabaseList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the Databases.
	Items []Database `json:"items"`
}
