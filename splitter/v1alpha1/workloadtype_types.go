// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WorkloadType declares where the objects of one type have the fields that
// splitters, placement controllers and syncers read: the replicas, the pod
// templates, the references to other objects, and the status. The objects of
// the type are workloads, or scale workloads. The name of a WorkloadType is that
// of the type's CustomResourceDefinition: RESOURCE.GROUP.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=wt,categories=atoll
// +kubebuilder:metadata:labels="atoll.dev/schema-version=1"
// +kubebuilder:printcolumn:name="Division",type=string,JSONPath=`.spec.division`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name == self.spec.resource.resource + '.' + self.spec.resource.group",message="metadata.name must be RESOURCE.GROUP of spec.resource"
type WorkloadType struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the declaration.
	Spec WorkloadTypeSpec `json:"spec"`

	// Status is the observed state.
	//
	// +optional
	Status WorkloadTypeStatus `json:"status,omitzero"`
}

// WorkloadTypeSpec declares the fields of one type. A path is the names of
// fields joined by dots. ["a.b"] is a name with dots, and [*] is each item of a
// list: spec.template, metadata.annotations["a.b/c"], spec.parts[*].template.
type WorkloadTypeSpec struct {
	// Resource is the type. It cannot be changed, except for its version.
	Resource WorkloadResource `json:"resource"`

	// Division is how the splitter divides an object of the type: Replicas (each
	// cluster gets a shard with a part of the replicas), EveryCluster (each
	// cluster gets a shard with the same spec), OneCluster (one cluster gets a
	// shard) or None (no cluster gets one: the type is declared only for its
	// scaleTarget or podSelector).
	//
	// +optional
	// +kubebuilder:default=Replicas
	Division WorkloadDivision `json:"division,omitempty"`

	// Replicas is the path of the desired number of replicas. An object
	// without this field has one replica. If no path is given, it is
	// spec.replicas with the division Replicas; with another division the type
	// has no replicas. While an autoscaler targets an object, syncers do not
	// write this field in the cluster.
	//
	// +optional
	Replicas FieldPath `json:"replicas,omitempty"`

	// ScaleDown is UnreadyFirst if the type's controller removes unready
	// replicas first, as that of ReplicaSets does, and Any otherwise.
	//
	// +optional
	// +kubebuilder:default=Any
	ScaleDown WorkloadScaleDown `json:"scaleDown,omitempty"`

	// Templates are the paths of the pod templates. The pods refer to
	// ConfigMaps, Secrets, ServiceAccounts and PersistentVolumeClaims by their
	// templates.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	Templates []FieldPath `json:"templates,omitempty"`

	// Selector is the path of the selector of the pods: a LabelSelector, or a
	// map of labels. If no pod template has labels, the labels that the
	// selector requires count as the labels of the pods.
	//
	// +optional
	Selector FieldPath `json:"selector,omitempty"`

	// References are the names of further objects, in the namespace of the
	// object, to which it refers.
	//
	// +optional
	// +listType=map
	// +listMapKey=path
	// +kubebuilder:validation:MaxItems=32
	References []WorkloadReference `json:"references,omitempty"`

	// Status declares the status of the type. Absent leaves the status of
	// divided objects alone.
	//
	// +optional
	Status WorkloadStatusPaths `json:"status,omitzero"`

	// ScaleTarget declares that the objects of the type scale a workload, as a
	// HorizontalPodAutoscaler does. Absent: they scale no workload.
	//
	// +optional
	ScaleTarget *WorkloadScaleTarget `json:"scaleTarget,omitempty"`

	// PodSelector is the path of a selector of pods: a LabelSelector, or a map of
	// labels. It declares that the objects of the type, such as PodMonitors,
	// follow the workloads whose pods they select: with a policy that has
	// dependents, each cluster of such a workload gets the whole object. Set it
	// only with the division None and without a scaleTarget.
	//
	// +optional
	PodSelector FieldPath `json:"podSelector,omitempty"`
}

// FieldPath is the path of a field: the names of fields joined by dots, ["a.b"]
// for a name with dots, [*] for each item of a list.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:Pattern=`^[A-Za-z_][-A-Za-z0-9_]*(\.[A-Za-z_][-A-Za-z0-9_]*|\["[^"]+"\]|\[\*\]){0,15}$`
type FieldPath string

// WorkloadResource is a type.
//
// +kubebuilder:validation:XValidation:rule="self.kind == oldSelf.kind",message="kind cannot be changed: create another WorkloadType"
type WorkloadResource struct {
	// Group is the API group.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Group string `json:"group"`

	// Version is the version to which the paths belong.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Version string `json:"version"`

	// Resource is the plural name in lower case, such as rollouts.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Resource string `json:"resource"`

	// Kind is the kind, such as Rollout.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9]*$`
	Kind string `json:"kind"`
}

// WorkloadDivision is the way in which an object is given to clusters.
//
// +kubebuilder:validation:Enum=Replicas;EveryCluster;OneCluster;None
type WorkloadDivision string

const (
	// DivideReplicas divides the replicas over the clusters.
	DivideReplicas WorkloadDivision = "Replicas"
	// DivideEveryCluster gives each cluster a shard with the spec of the object.
	DivideEveryCluster WorkloadDivision = "EveryCluster"
	// DivideOneCluster gives one cluster a shard. If the cluster is lost, another one gets it.
	DivideOneCluster WorkloadDivision = "OneCluster"
	// DivideNone means that objects of the type are not divided.
	DivideNone WorkloadDivision = "None"
)

// WorkloadScaleDown is the order in which a type's controller removes replicas.
//
// +kubebuilder:validation:Enum=Any;UnreadyFirst
type WorkloadScaleDown string

const (
	// ScaleDownAny: any replica may be removed, also an available one.
	ScaleDownAny WorkloadScaleDown = "Any"
	// ScaleDownUnreadyFirst: unready replicas are removed first.
	ScaleDownUnreadyFirst WorkloadScaleDown = "UnreadyFirst"
)

// WorkloadReference is a field with the name of an object in the same namespace.
//
// +kubebuilder:validation:XValidation:rule="has(self.group) == has(self.version)",message="set group and version together"
// +kubebuilder:validation:XValidation:rule="has(self.group) || self.resource in ['configmaps', 'persistentvolumeclaims', 'secrets', 'serviceaccounts', 'services']",message="without a group, resource is configmaps, persistentvolumeclaims, secrets, serviceaccounts or services"
type WorkloadReference struct {
	// Path is the path of the name.
	Path FieldPath `json:"path"`

	// Resource is the type of the object, as a plural name in lower case. Without
	// a group it is configmaps, persistentvolumeclaims, secrets, serviceaccounts
	// or services. With a group it can be any type, such as analysistemplates.
	Resource ReferencedResource `json:"resource"`

	// Group is the API group of a type outside of the core group.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Group string `json:"group,omitempty"`

	// Version is the API version in which the objects are read. Set it if and only
	// if group is set.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Version string `json:"version,omitempty"`
}

// ReferencedResource is the plural name of a type in lower case.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
type ReferencedResource string

// WorkloadStatusPaths declares the status of a type. All paths begin with
// status and have no [*].
type WorkloadStatusPaths struct {
	// Replicas is the path of the number of pods that exist.
	//
	// +optional
	Replicas FieldPath `json:"replicas,omitempty"`

	// Ready is the path of the number of ready pods.
	//
	// +optional
	Ready FieldPath `json:"ready,omitempty"`

	// Available is the path of the number of available pods. A replica leaves a
	// cluster only when a replica in another cluster is available. If no path is
	// given, health determines which replicas are available.
	//
	// +optional
	Available FieldPath `json:"available,omitempty"`

	// ObservedGeneration is the field with the generation that the type's
	// controller has observed. Absent: the type has no such field, and a spec
	// counts as observed once the splitter has written it.
	//
	// +optional
	ObservedGeneration *ObservedGenerationPath `json:"observedGeneration,omitempty"`

	// Fields are the fields of the status that are computed from the same
	// fields of the shards.
	//
	// +optional
	// +listType=map
	// +listMapKey=path
	// +kubebuilder:validation:MaxItems=32
	Fields []FoldedField `json:"fields,omitempty"`

	// Conditions are the conditions that are computed from the conditions of
	// the same type of the shards.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []FoldedCondition `json:"conditions,omitempty"`

	// Health is the rule that decides whether a shard is healthy. If available
	// is absent, all replicas of a healthy shard count as available, and no
	// replica of an unhealthy one does.
	//
	// +optional
	Health *HealthRule `json:"health,omitempty"`

	// Add lists conditions that the splitter computes itself and adds to the
	// status: Available, Placed, Duplicated and Scheduled. List only those that
	// the schema of the type, and the programs that read its status, accept.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=4
	Add []AddedCondition `json:"add,omitempty"`

	// UpdateTime means that conditions have a lastUpdateTime beside
	// lastTransitionTime, as those of Deployments have.
	//
	// +optional
	UpdateTime bool `json:"updateTime,omitempty"`
}

// ObservedGenerationPath is a field with a generation.
type ObservedGenerationPath struct {
	// Path is the path of the field.
	Path FieldPath `json:"path"`

	// Type is Integer, or String if the field has the number as text.
	//
	// +optional
	// +kubebuilder:default=Integer
	Type GenerationType `json:"type,omitempty"`
}

// GenerationType is the type of a field with a generation.
//
// +kubebuilder:validation:Enum=Integer;String
type GenerationType string

const (
	// GenerationInteger is a number.
	GenerationInteger GenerationType = "Integer"
	// GenerationString is a text with a decimal number.
	GenerationString GenerationType = "String"
)

// FoldedField is a field of the status that is computed from the same field of
// the shards.
//
// +kubebuilder:validation:XValidation:rule="(self.fold == 'Worst') == has(self.order)",message="order is required with the fold Worst, and not possible with another one"
// +kubebuilder:validation:XValidation:rule="!has(self.always) || !self.always || self.fold == 'Sum'",message="always is possible only with the fold Sum"
type FoldedField struct {
	// Path is the path of the field.
	Path FieldPath `json:"path"`

	// Fold is how the field is computed: Sum (of numbers), Latest (of times in
	// RFC 3339), Same (the value that all shards have; absent if they differ),
	// Worst (of texts, by order) or Join (of lists).
	Fold FieldFold `json:"fold"`

	// Always writes a sum even if it is zero, for fields that the schema
	// requires.
	//
	// +optional
	Always bool `json:"always,omitempty"`

	// Order lists the texts for Worst, the worst first. A text that is not
	// listed counts as worse than all of them. If a shard lacks the field, the
	// parent lacks it too, unless another shard has the first text.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	Order []string `json:"order,omitempty"`
}

// FieldFold is how a field is computed from the same field of the shards.
//
// +kubebuilder:validation:Enum=Sum;Latest;Same;Worst;Join
type FieldFold string

const (
	// FoldSum adds numbers.
	FoldSum FieldFold = "Sum"
	// FoldLatest takes the latest time.
	FoldLatest FieldFold = "Latest"
	// FoldSame takes the value that all shards have.
	FoldSame FieldFold = "Same"
	// FoldWorst takes the worst text.
	FoldWorst FieldFold = "Worst"
	// FoldJoin joins lists.
	FoldJoin FieldFold = "Join"
)

// FoldedCondition is a condition that is computed from those of the shards.
type FoldedCondition struct {
	// Type is the type of the condition.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	Type string `json:"type"`

	// Fold is how the condition is computed: All (True if it is True in all
	// shards; for conditions such as Ready) or Any (True if it is True in at
	// least one shard; for conditions such as ReplicaFailure).
	//
	// +optional
	// +kubebuilder:default=All
	Fold ConditionFold `json:"fold,omitempty"`
}

// ConditionFold is how a condition is computed from those of the shards.
//
// +kubebuilder:validation:Enum=All;Any
type ConditionFold string

const (
	// FoldAll makes the condition True if it is True in all shards.
	FoldAll ConditionFold = "All"
	// FoldAny makes the condition True if it is True in at least one shard.
	FoldAny ConditionFold = "Any"
)

// HealthRule recognizes a healthy shard: by a condition, or by a field.
//
// +kubebuilder:validation:XValidation:rule="has(self.condition) != has(self.path)",message="set either condition or path"
// +kubebuilder:validation:XValidation:rule="has(self.path) == has(self.values)",message="set path and values together"
type HealthRule struct {
	// Condition is the type of a condition that is True if the shard is healthy.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	Condition string `json:"condition,omitempty"`

	// Path is the path of a text in the status. Values lists the texts that mean
	// healthy.
	//
	// +optional
	Path FieldPath `json:"path,omitempty"`

	// Values are the texts at path that mean that the shard is healthy.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	Values []string `json:"values,omitempty"`
}

// AddedCondition is the type of a condition that the splitter adds to a status.
//
// +kubebuilder:validation:Enum=Available;Placed;Duplicated;Scheduled
type AddedCondition string

const (
	// AddAvailable reports whether all replicas are available, or all shards
	// healthy, and which clusters lack some.
	AddAvailable AddedCondition = "Available"
	// AddPlaced reports whether all replicas are placed.
	AddPlaced AddedCondition = "Placed"
	// AddDuplicated reports that replicas may run twice, because their cluster
	// was lost and another one runs them too.
	AddDuplicated AddedCondition = "Duplicated"
	// AddScheduled reports pods for which a cluster has no node.
	AddScheduled AddedCondition = "Scheduled"
)

// WorkloadScaleTarget is the reference of a scaling object to its workload.
type WorkloadScaleTarget struct {
	// Path is the path of the reference, a field with apiVersion, kind and name,
	// such as spec.scaleTargetRef.
	Path FieldPath `json:"path"`

	// APIVersion is the apiVersion of the workload if the reference has none.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	APIVersion string `json:"apiVersion,omitempty"`

	// Kind is the kind of the workload if the reference has none.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`
}

// WorkloadTypeStatus is the observed state of a WorkloadType.
type WorkloadTypeStatus struct {
	// ObservedGeneration is the generation of the spec that the condition Ready
	// reports about.
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

	// Accepted is the last spec without a fault. It stays in effect if a later
	// spec has a fault. It has the form of spec.
	//
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Accepted *WorkloadTypeSpec `json:"accepted,omitempty"`

	// AcceptedGeneration is the generation of accepted.
	//
	// +optional
	AcceptedGeneration int64 `json:"acceptedGeneration,omitempty"`
}

// WorkloadTypeList is a list of WorkloadTypes.
//
// +kubebuilder:object:root=true
type WorkloadTypeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the WorkloadTypes.
	Items []WorkloadType `json:"items"`
}
