// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SyncTarget is a cluster that a syncer keeps in step with the API server in
// which the SyncTarget stands: objects labeled with its name go down, their
// status comes up.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=st,categories=atoll
// +kubebuilder:metadata:labels="atoll.dev/schema-version=1"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
// +kubebuilder:printcolumn:name="Unschedulable",type=boolean,JSONPath=`.spec.unschedulable`
// +kubebuilder:printcolumn:name="Synced Resources",type=string,JSONPath=`.status.syncedResources`,priority=1
// +kubebuilder:printcolumn:name="Heartbeat",type=date,JSONPath=`.status.lastSyncerHeartbeatTime`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type SyncTarget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is how to reach and use the cluster.
	//
	// +optional
	Spec SyncTargetSpec `json:"spec,omitzero"`

	// Status is what was observed.
	//
	// +optional
	Status SyncTargetStatus `json:"status,omitzero"`
}

// SyncTargetSpec is how to reach and use a cluster.
//
// +kubebuilder:validation:XValidation:rule="!has(self.kubeconfig) || !has(self.kubeconfigSecret)",message="set kubeconfig or kubeconfigSecret, not both; the Secret is the safer one"
type SyncTargetSpec struct {
	// Kubeconfig is a kubeconfig in YAML. Whoever may read the SyncTarget may
	// read it: for demonstrations. Use kubeconfigSecret otherwise. A syncer
	// that runs inside the cluster needs neither.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=262144
	Kubeconfig string `json:"kubeconfig,omitempty"`

	// KubeconfigSecret names the Secret that holds the kubeconfig under the
	// key kubeconfig.
	//
	// +optional
	KubeconfigSecret SecretReference `json:"kubeconfigSecret,omitzero"`

	// Unschedulable keeps new workloads away; what runs there stays.
	//
	// +optional
	Unschedulable bool `json:"unschedulable,omitempty"`

	// EvictAfter is when workloads are moved away from the cluster. Empty is
	// never.
	//
	// +optional
	EvictAfter *metav1.Time `json:"evictAfter,omitempty"`

	// Pods is how many pods the cluster can hold in all, if that is not what
	// its nodes can now: where nodes are added for what is placed there, say.
	// Empty is what status.capacity says.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Pods *int64 `json:"pods,omitempty"`
}

// SecretReference names a Secret.
type SecretReference struct {
	// Name is the Secret's name.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Namespace is the Secret's namespace.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`
}

// SyncTargetStatus is what was observed of a SyncTarget.
type SyncTargetStatus struct {
	// ObservedGeneration is the generation of the spec that the status speaks of.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions are the observations: Ready, Reachable, TypesCompatible,
	// DeletionsHeld.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// SyncedResources are the types that are synced, as resource.group, sorted.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=512
	// +kubebuilder:validation:items:MaxLength=317
	SyncedResources []string `json:"syncedResources,omitempty"`

	// LastSyncerHeartbeatTime is when the syncer last said that it is alive.
	//
	// +optional
	LastSyncerHeartbeatTime *metav1.Time `json:"lastSyncerHeartbeatTime,omitempty"`

	// Capacity is what the nodes of the cluster that are ready and not cordoned
	// have for pods, of cpu, memory and pods: what is used counts as well. All
	// is zero if no node is. Empty is not known: the syncer has never listed
	// nodes, or there are none. It stays while they cannot be listed.
	//
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
}

// SyncTargetList is a list of SyncTargets.
//
// +kubebuilder:object:root=true
type SyncTargetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the SyncTargets.
	Items []SyncTarget `json:"items"`
}
