// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ClusterDaemonSet runs a Deployment made of its template on every chosen
// cluster. Unlike a DaemonSet, it does not run a Pod on every node. The
// controller of package splitter/clusterdaemonset carries it out.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=cds,categories=atoll
// +kubebuilder:metadata:labels="atoll.dev/schema-version=1"
// +kubebuilder:printcolumn:name="Clusters",type=integer,JSONPath=`.status.desiredClusters`
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyClusters`
// +kubebuilder:printcolumn:name="Unknown",type=integer,JSONPath=`.status.unknownClusters`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterDaemonSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state.
	Spec ClusterDaemonSetSpec `json:"spec"`

	// Status is the observed state.
	//
	// +optional
	Status ClusterDaemonSetStatus `json:"status,omitzero"`
}

// ClusterDaemonSetSpec is the desired state of a ClusterDaemonSet.
//
// +kubebuilder:validation:XValidation:rule="self.selector == oldSelf.selector",message="selector cannot be changed: create another ClusterDaemonSet"
type ClusterDaemonSetSpec struct {
	// Selector selects the pods of the template. It cannot be changed.
	Selector metav1.LabelSelector `json:"selector"`

	// ClusterSelector chooses clusters by the labels of their SyncTargets. An
	// empty one chooses all. A draining cluster is not chosen, and an
	// unschedulable cluster only if it has the Deployment already.
	//
	// +optional
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`

	// ReplicasPerCluster is the number of replicas in each cluster.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	ReplicasPerCluster int32 `json:"replicasPerCluster,omitempty"`

	// Template is a pod template, as in a Deployment. The clusters validate it.
	//
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	Template runtime.RawExtension `json:"template"`
}

// ClusterDaemonSetStatus is the observed state of a ClusterDaemonSet.
type ClusterDaemonSetStatus struct {
	// ObservedGeneration is the generation of the spec that the status is
	// about.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions are the observations: Ready.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// DesiredClusters is the number of chosen clusters.
	//
	// +optional
	DesiredClusters int32 `json:"desiredClusters,omitempty"`

	// ReadyClusters is the number of clusters in which all replicas are ready.
	//
	// +optional
	ReadyClusters int32 `json:"readyClusters,omitempty"`

	// UnknownClusters is the number of unreachable clusters. They count neither
	// as ready nor as empty.
	//
	// +optional
	UnknownClusters int32 `json:"unknownClusters,omitempty"`
}

// ClusterDaemonSetList is a list of ClusterDaemonSets.
//
// +kubebuilder:object:root=true
type ClusterDaemonSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the ClusterDaemonSets.
	Items []ClusterDaemonSet `json:"items"`
}
