// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
)

// ServiceCluster configures the cluster of one region, in the peer that serves
// it. Its namespace is the account's, and (namespace, name) is unique over all
// peers: the others hold a guard, a ServiceCluster of the same name with a
// claim and no payload. Controllers act only on ServiceClusters in the stage
// Configured.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=scl,categories=atoll
// +kubebuilder:metadata:labels="atoll.dev/schema-version=1"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Display Name",type=string,JSONPath=`.spec.metadata.displayName`
// +kubebuilder:printcolumn:name="Kubernetes Version",type=string,JSONPath=`.status.kubernetesVersion.gitVersion`
// +kubebuilder:printcolumn:name="Stage",type=string,JSONPath=`.spec.fanout.stage`
// +kubebuilder:printcolumn:name="Role",type=string,JSONPath=`.spec.fanout.claim.role`,priority=1
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.spec.fanout.claim.target`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ServiceCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state.
	// It defaults to an empty object, so that validation rules see every change.
	//
	// +optional
	// +kubebuilder:default={}
	Spec ServiceClusterSpec `json:"spec"`

	// Status is the observed state.
	//
	// +optional
	Status ServiceClusterStatus `json:"status,omitzero"`
}

// ServiceClusterSpec is the desired state of a ServiceCluster.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.fanout) || has(self.fanout)",message="claim cannot be removed: use apply instead of replace, or keep spec.fanout as it is; to give the name up, delete the object and let a coordinator clear all peers"
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.?fanout.stage.orValue('Reserved') == 'Reserved'",message="a ServiceCluster is created Reserved or without spec.fanout: leave spec.fanout out, a coordinator adopts the object",optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule="has(oldSelf.fanout) || !has(self.fanout) || (self.fanout.?claim.role.orValue('None') == 'Primary' && self.fanout.?stage.orValue('None') == 'Configured')",message="an object that was applied without a claim is adopted as a Primary and Configured at once, never as a reservation: adopt it through a coordinator"
// +kubebuilder:validation:XValidation:rule="self.?fanout.stage.orValue('Reserved') in ['Reserved', 'Configured', 'Decided', 'Removing']",message="the stages of a ServiceCluster are Reserved, Configured, Decided, Removing"
// +kubebuilder:validation:XValidation:rule="!(self.?fanout.stage.orValue('None') == 'Reserved' && oldSelf.?fanout.stage.orValue('None') == 'Reserved') || (has(self.metadata) == has(oldSelf.metadata) && (!has(self.metadata) || self.metadata == oldSelf.metadata) && has(self.kubeconfigSecret) == has(oldSelf.kubeconfigSecret) && (!has(self.kubeconfigSecret) || self.kubeconfigSecret == oldSelf.kubeconfigSecret))",message="a reservation cannot be changed: wait until its operation has ended",messageExpression="'a reservation cannot be changed: operation ' + self.fanout.claim.operation + ' holds the name for peer ' + self.fanout.claim.target + '; wait until it has ended, or change the ServiceCluster in that peer'"
// +kubebuilder:validation:XValidation:rule="!has(self.fanout) || self.fanout.claim.role == 'Primary' || self.fanout.claim.peer == self.fanout.claim.target || (!has(self.metadata) && !has(self.kubeconfigSecret))",message="a guard carries no payload: the ServiceCluster is in another peer, change it there",messageExpression="'a guard carries no payload: the ServiceCluster of this name is in peer ' + self.fanout.claim.target + '; change it there, or remove it from all peers first'"
// +kubebuilder:validation:XValidation:rule="self.?fanout.stage.orValue('None') != 'Configured' || has(self.kubeconfigSecret)",message="a Configured ServiceCluster needs kubeconfigSecret.name: name the Secret that holds the cluster's kubeconfig"
type ServiceClusterSpec struct {
	// Metadata describes the cluster for people.
	//
	// +optional
	Metadata ServiceClusterMetadata `json:"metadata,omitzero"`

	// KubeconfigSecret names the Secret, in the same namespace, that holds the
	// cluster's kubeconfig. A guard has none.
	//
	// +optional
	KubeconfigSecret ObjectReference `json:"kubeconfigSecret,omitzero"`

	// Fanout is the protocol's part. Only coordinators write it.
	//
	// +optional
	Fanout *fanoutv1alpha1.Fanout `json:"fanout,omitempty"`
}

// ServiceClusterMetadata describes a ServiceCluster for people.
type ServiceClusterMetadata struct {
	// DisplayName is a short name.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=256
	DisplayName string `json:"displayName,omitempty"`

	// Description is the purpose of the cluster.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Description string `json:"description,omitempty"`
}

// ObjectReference names an object in the same namespace.
type ObjectReference struct {
	// Name is the object's name.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// ServiceClusterStatus is the observed state of a ServiceCluster.
type ServiceClusterStatus struct {
	// ObservedGeneration is the generation of the spec that the status describes.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Phase summarizes the conditions for people. Programs read the conditions.
	//
	// +optional
	Phase ServiceClusterPhase `json:"phase,omitempty"`

	// Conditions are the observations: Ready, Claimed, RegionBound, Reachable.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// KubernetesVersion is the version that the cluster reports.
	//
	// +optional
	KubernetesVersion KubernetesVersion `json:"kubernetesVersion,omitzero"`
}

// KubernetesVersion is the version of a cluster, from its /version.
type KubernetesVersion struct {
	// Major is the major version.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Major string `json:"major,omitempty"`

	// Minor is the minor version; some vendors append a plus sign.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Minor string `json:"minor,omitempty"`

	// GitVersion is the full version, such as v1.36.0.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=128
	GitVersion string `json:"gitVersion,omitempty"`

	// Platform is the operating system and architecture, such as linux/amd64.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Platform string `json:"platform,omitempty"`
}

// ServiceClusterPhase summarizes a ServiceCluster for people.
//
// +kubebuilder:validation:MaxLength=64
type ServiceClusterPhase string

const (
	// ServiceClusterPending means that the claim, the region or the first probe is pending.
	ServiceClusterPending ServiceClusterPhase = "Pending"
	// ServiceClusterReady means that the cluster can be used.
	ServiceClusterReady ServiceClusterPhase = "Ready"
	// ServiceClusterNotReady means that the cluster cannot be used.
	ServiceClusterNotReady ServiceClusterPhase = "NotReady"
	// ServiceClusterTerminating means that the ServiceCluster is being removed from all peers.
	ServiceClusterTerminating ServiceClusterPhase = "Terminating"
)

// ServiceClusterList is a list of ServiceClusters.
//
// +kubebuilder:object:root=true
type ServiceClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the ServiceClusters.
	Items []ServiceCluster `json:"items"`
}
