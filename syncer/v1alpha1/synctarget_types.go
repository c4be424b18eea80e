// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SyncTarget is a cluster that a syncer keeps in step with the upstream API
// server, which holds the SyncTarget: objects labeled with its name are synced
// to the cluster, and their status is synced back.
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

	// Spec configures the access to the cluster and its use.
	//
	// +optional
	Spec SyncTargetSpec `json:"spec,omitzero"`

	// Status holds the observed state.
	//
	// +optional
	Status SyncTargetStatus `json:"status,omitzero"`
}

// SyncTargetSpec configures the access to a cluster and its use.
//
// +kubebuilder:validation:XValidation:rule="!has(self.kubeconfig) || !has(self.kubeconfigSecret)",message="set kubeconfig or kubeconfigSecret, not both; the Secret is the safer one"
type SyncTargetSpec struct {
	// Kubeconfig is a kubeconfig in YAML. Everyone with read access to the
	// SyncTarget can read it: set it for demonstrations only, and
	// kubeconfigSecret otherwise. A syncer that runs inside the cluster needs
	// neither.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=262144
	Kubeconfig string `json:"kubeconfig,omitempty"`

	// KubeconfigSecret names the Secret that holds the kubeconfig under the key
	// kubeconfig.
	//
	// +optional
	KubeconfigSecret SecretReference `json:"kubeconfigSecret,omitzero"`

	// Unschedulable excludes the cluster from new placements. Workloads that
	// run there stay.
	//
	// +optional
	Unschedulable bool `json:"unschedulable,omitempty"`

	// EvictAfter is the time at which workloads are moved to other clusters.
	// Empty means never.
	//
	// +optional
	EvictAfter *metav1.Time `json:"evictAfter,omitempty"`

	// Taints keep away objects whose placement policy does not tolerate them.
	// Splitters without policies, and ClusterDaemonSets, ignore taints.
	//
	// +optional
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	// +kubebuilder:validation:MaxItems=64
	Taints []Taint `json:"taints,omitempty"`

	// Pods is the total number of pods that the cluster can hold. Set it if
	// this is more than its present nodes can hold, such as with an autoscaler
	// that adds nodes. Empty means status.capacity.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Pods *int64 `json:"pods,omitempty"`

	// Capacity declares the room of the cluster, such as cpu, memory and
	// extended resources, instead of the values in status.capacity. Set it with
	// an autoscaler that adds nodes, or to bound the requests of the replicas
	// that are placed in the cluster. For a resource that is absent here, the
	// value in status.capacity counts; if spec.pods is above the pods in
	// status.capacity, the resource has no bound. For pods, set spec.pods.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="!('pods' in self)",message="set spec.pods instead"
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
}

// Taint is a property of a cluster that objects of a placement policy avoid,
// unless the policy tolerates it. It has the form of a taint of a Node.
type Taint struct {
	// Key is a label key.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`
	Key string `json:"key"`

	// Value is a label value. Absent is the empty value.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$`
	Value string `json:"value,omitempty"`

	// Effect is NoSchedule (the cluster keeps its objects and replicas, and gets
	// no new ones), PreferNoSchedule (a policy with maxClusters or groups chooses
	// other clusters first) or NoExecute (the cluster gets no new objects and
	// replicas, and the present ones move to other clusters).
	//
	// +kubebuilder:validation:Enum=NoSchedule;PreferNoSchedule;NoExecute
	Effect corev1.TaintEffect `json:"effect"`

	// TimeAdded is the time from which NoExecute moves objects, and from which
	// tolerationSeconds count. Absent means the time at which a controller first
	// observed the taint, so the seconds begin anew when the controller restarts.
	//
	// +optional
	TimeAdded *metav1.Time `json:"timeAdded,omitempty"`
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

// SyncTargetStatus is the observed state of a SyncTarget.
type SyncTargetStatus struct {
	// ObservedGeneration is the generation of the spec that the status refers
	// to.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions are Ready, Reachable, TypesCompatible and DeletionsHeld, and
	// others where they apply.
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

	// LastSyncerHeartbeatTime is the last time at which the syncer reported
	// that it is alive.
	//
	// +optional
	LastSyncerHeartbeatTime *metav1.Time `json:"lastSyncerHeartbeatTime,omitempty"`

	// Capacity is the sum of the allocatable resources of the cluster's ready
	// and uncordoned nodes, whether used or not. It has cpu, memory and pods. If
	// nodes have ephemeral-storage and extended resources, it has these too, at
	// most 32 resources in all. All values are zero if no node is ready and
	// uncordoned.
	// A resource that no node has any longer is zero. Empty means unknown: the
	// syncer has never listed nodes, or there are none. The last value stays
	// while nodes cannot be listed.
	//
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`

	// CordonedNodes is the number of the cluster's nodes that are cordoned, as
	// for a drain. Empty means unknown, as for capacity.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	CordonedNodes *int64 `json:"cordonedNodes,omitempty"`
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
