// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PlacementPolicy chooses the clusters that the workloads which it selects in
// its namespace are divided over, and their shares. If several select one
// workload, the one of highest priority decides, then the first by name.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=pp,categories=atoll
// +kubebuilder:metadata:labels="atoll.dev/schema-version=1"
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.mode`
// +kubebuilder:printcolumn:name="Priority",type=integer,JSONPath=`.spec.priority`
// +kubebuilder:printcolumn:name="Clusters",type=integer,JSONPath=`.status.clusters`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PlacementPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the policy.
	Spec PlacementPolicySpec `json:"spec"`

	// Status is the observed state.
	//
	// +optional
	Status PlacementPolicyStatus `json:"status,omitzero"`
}

// PlacementPolicySpec is a policy.
//
// +kubebuilder:validation:XValidation:rule="!has(self.groups) || has(self.spreadBy) && self.groups.all(g, g.key in self.spreadBy)",message="each key of groups must be one of spreadBy"
// +kubebuilder:validation:XValidation:rule="!has(self.groups) || !has(self.maxClusters) || self.maxClusters == 0 || self.groups.all(g, !has(g.minGroups) || g.minGroups <= self.maxClusters)",message="minGroups must not be above maxClusters"
type PlacementPolicySpec struct {
	// Selector selects workloads by label. Absent selects all of the namespace.
	// Objects that keep their name in each cluster, Services and Secrets for
	// instance, are placed too if it selects them, but not if it is absent.
	//
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// ClusterSelector chooses clusters by the labels of their SyncTargets.
	// Absent chooses all.
	//
	// +optional
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`

	// Mode is Divide (replicas are divided by weight), Fewest (as few clusters
	// as have room for them), FewestDivide (by weight over as few clusters as
	// have room for them), Fill (one cluster after another, by weight),
	// Duplicate (each cluster gets all of them) or None (no cluster has any, and
	// present ones are removed).
	//
	// +optional
	// +kubebuilder:default=Divide
	Mode PlacementMode `json:"mode,omitempty"`

	// Priority decides between policies; the highest wins.
	//
	// +optional
	Priority int32 `json:"priority,omitempty"`

	// Suspend stops the policy: objects that it selects stay in their clusters,
	// with their shares, and objects that are in no cluster wait. The Splitter
	// still divides each workload over the clusters where it is placed.
	//
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// MaxClusters bounds the number of clusters. Zero is no bound.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxClusters int32 `json:"maxClusters,omitempty"`

	// SpreadBy are the keys of labels by which clusters form groups, the widest
	// first, such as topology.kubernetes.io/region and then
	// topology.kubernetes.io/zone. Replicas are divided over the groups first,
	// then over the clusters in each, and clusters are chosen from all groups
	// in turn. Clusters without a label form a group.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=317
	SpreadBy []string `json:"spreadBy,omitempty"`

	// Groups are bounds of the groups that SpreadBy forms. If no choice of
	// clusters meets all bounds, objects stay in their clusters, new objects wait,
	// and the condition Ready is False with the reason TooFewGroups.
	//
	// +optional
	// +listType=map
	// +listMapKey=key
	// +kubebuilder:validation:MaxItems=4
	Groups []GroupBounds `json:"groups,omitempty"`

	// Tolerations permit the policy to use clusters in spite of their taints.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Tolerations []Toleration `json:"tolerations,omitempty"`

	// Dependents also places the ConfigMaps, Secrets, ServiceAccounts and
	// PersistentVolumeClaims that the pods of a workload refer to, the Secrets
	// of these ServiceAccounts for pulling images, the Services and
	// NetworkPolicies that select the pods, and the Ingresses to these Services
	// with their Secrets, in all clusters of the workload.
	//
	// +optional
	Dependents bool `json:"dependents,omitempty"`

	// Rollout adjusts how Deployments are rolled out and move between clusters.
	//
	// +optional
	Rollout *PlacementRollout `json:"rollout,omitempty"`

	// Clusters give single clusters a weight or bounds. Other chosen clusters
	// have weight 1 and no bounds.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	Clusters []ClusterShare `json:"clusters,omitempty"`
}

// GroupBounds are the bounds of the groups of one label. Clusters are in one
// group if they have the same values of this label and of all labels before it
// in SpreadBy.
type GroupBounds struct {
	// Key is the key of the label, one of SpreadBy.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	Key string `json:"key"`

	// MinGroups is the least number of groups with at least one chosen cluster.
	// Clusters without the label form a group, too.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=256
	MinGroups int32 `json:"minGroups,omitempty"`

	// MaxClusters is the greatest number of chosen clusters in each group. Zero
	// means no bound.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxClusters int32 `json:"maxClusters,omitempty"`
}

// Toleration permits the use of a cluster in spite of some of its taints. It has
// the form of a toleration of a pod.
//
// +kubebuilder:validation:XValidation:rule="has(self.key) && size(self.key) > 0 || has(self.operator) && self.operator == 'Exists'",message="operator must be Exists if key is empty"
// +kubebuilder:validation:XValidation:rule="!has(self.operator) || self.operator != 'Exists' || !has(self.value) || size(self.value) == 0",message="value must be empty if operator is Exists"
// +kubebuilder:validation:XValidation:rule="!has(self.tolerationSeconds) || has(self.effect) && self.effect == 'NoExecute'",message="effect must be NoExecute if tolerationSeconds is set"
type Toleration struct {
	// Key is the key of the taints. Empty, with the operator Exists, tolerates
	// all keys and values.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=317
	Key string `json:"key,omitempty"`

	// Operator is Exists (any value of the taint) or Equal (the same value).
	// Empty is Equal.
	//
	// +optional
	// +kubebuilder:validation:Enum="";Exists;Equal
	Operator corev1.TolerationOperator `json:"operator,omitempty"`

	// Value is the value of the taints, for the operator Equal.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Value string `json:"value,omitempty"`

	// Effect is the effect of the taints: NoSchedule, PreferNoSchedule or
	// NoExecute. Empty tolerates all effects.
	//
	// +optional
	// +kubebuilder:validation:Enum="";NoSchedule;PreferNoSchedule;NoExecute
	Effect corev1.TaintEffect `json:"effect,omitempty"`

	// TolerationSeconds is for how many seconds a taint with the effect NoExecute
	// is tolerated, from its timeAdded on. During this time the cluster keeps its
	// objects and gets no new ones. Absent means forever; zero or less means not
	// at all. If several tolerations match a taint, the longest time counts.
	//
	// +optional
	TolerationSeconds *int64 `json:"tolerationSeconds,omitempty"`
}

// PlacementMode is the way in which replicas are given to clusters.
//
// +kubebuilder:validation:Enum=Divide;Fewest;FewestDivide;Fill;Duplicate;None
type PlacementMode string

const (
	// PlacementDivide divides the replicas by weight.
	PlacementDivide PlacementMode = "Divide"
	// PlacementFewest fills as few clusters as have room for the replicas,
	// those with the most room first.
	PlacementFewest PlacementMode = "Fewest"
	// PlacementFewestDivide divides the replicas by weight over as few clusters
	// as have room for them.
	PlacementFewestDivide PlacementMode = "FewestDivide"
	// PlacementFill fills one cluster after another, the heaviest first.
	PlacementFill PlacementMode = "Fill"
	// PlacementDuplicate gives each cluster all replicas.
	PlacementDuplicate PlacementMode = "Duplicate"
	// PlacementNone gives replicas to no cluster, and removes present ones.
	PlacementNone PlacementMode = "None"
)

// PlacementRollout adjusts the rollout of Deployments over their clusters, which
// share the maxUnavailable and maxSurge of the Deployment.
type PlacementRollout struct {
	// Order names the clusters that get a new template first. The others
	// follow, sorted by name.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Order []string `json:"order,omitempty"`

	// MaxClusters is how many clusters may be in a rollout at the same time.
	// With 1, a cluster gets a new template only when all pods of the previous
	// one are replaced and available. Zero is no bound.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxClusters int32 `json:"maxClusters,omitempty"`

	// MoveSurge is how many pods above maxSurge there may be while replicas
	// move between clusters.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	MoveSurge int32 `json:"moveSurge,omitempty"`
}

// ClusterShare is one cluster's weight and bounds.
//
// +kubebuilder:validation:XValidation:rule="!has(self.max) || !has(self.min) || self.min <= self.max",message="min must not be above max"
type ClusterShare struct {
	// Name is the name of the cluster's SyncTarget.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Weight is the cluster's share in relation to the others'. Absent is 1.
	// Zero keeps the cluster empty unless min asks for replicas.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Weight *int32 `json:"weight,omitempty"`

	// Min is the least number of replicas there.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Min *int32 `json:"min,omitempty"`

	// Max is the greatest number of replicas there. Absent is no bound.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Max *int32 `json:"max,omitempty"`
}

// PlacementPolicyStatus is the observed state of a PlacementPolicy.
type PlacementPolicyStatus struct {
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

	// Clusters is the number of clusters that the policy chooses now.
	//
	// +optional
	Clusters int32 `json:"clusters,omitempty"`
}

// PlacementPolicyList is a list of PlacementPolicies.
//
// +kubebuilder:object:root=true
type PlacementPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the PlacementPolicies.
	Items []PlacementPolicy `json:"items"`
}
