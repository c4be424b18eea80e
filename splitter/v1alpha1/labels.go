// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Manager is the field manager of a Splitter. No other loop may write fields of a shard that it
// owns.
const Manager = "atoll-splitter"

// Marks of the objects that a splitter works on.
const (
	// ParentLabel is the label of a shard: the UID of the parent that it was cut from.
	ParentLabel = "splitter.atoll.dev/parent"

	// ParentAnnotation is the annotation of a shard: the name of its parent, in the same namespace.
	ParentAnnotation = "splitter.atoll.dev/parent-name"

	// ClusterAnnotation is the annotation of a shard: the name of its cluster.
	ClusterAnnotation = "splitter.atoll.dev/cluster"

	// ClusterDaemonSetLabel is the label of a Deployment that carries out a ClusterDaemonSet in one
	// cluster: the UID of the ClusterDaemonSet. The Deployment also has ParentAnnotation, with the name
	// of the ClusterDaemonSet, and ClusterAnnotation. A Splitter leaves such a Deployment alone.
	ClusterDaemonSetLabel = "splitter.atoll.dev/clusterdaemonset"

	// ShardsFinalizer keeps a parent until its shards are gone.
	ShardsFinalizer = "splitter.atoll.dev/shards"

	// WeightLabel is the label of a SyncTarget with another weight than 1: a whole number,
	// from 0 to 2147483647. A value that cannot be read counts as absent.
	WeightLabel = "splitter.atoll.dev/weight"
)

// VolumesAnnotation is an annotation of a StatefulSet with volumeClaimTemplates. It lists the clusters
// that its replicas may leave although their volumes stay there: names, joined by commas, or "*" for all.
// A person sets it, or a program that has copied the volumes.
const VolumesAnnotation = "splitter.atoll.dev/leave-volumes"

const (
	// OrdinalsPerClusterAnnotation asks for unique ordinals: on a StatefulSet, it gives each cluster a range of
	// ordinals. Its value is the number of ordinals in each range, and so the greatest number of replicas in one
	// cluster. A person sets it. It does not change the ordinals of pods that run already.
	OrdinalsPerClusterAnnotation = "splitter.atoll.dev/ordinals-per-cluster"

	// OrdinalsAnnotation has the ranges of such a StatefulSet: CLUSTER=FIRST-LAST, joined by commas. The Splitter
	// writes it to the StatefulSet with all ranges, and to each shard with the range of its cluster. A cluster keeps
	// its range as long as the StatefulSet exists, also without replicas.
	OrdinalsAnnotation = "splitter.atoll.dev/ordinals"
)

// DivideIndexesAnnotation is an annotation of a Job with the completionMode Indexed. "true" divides its indexes over the
// clusters. A person sets it, if the pods of the Job add the environment variable ATOLL_COMPLETION_INDEX_OFFSET to
// JOB_COMPLETION_INDEX.
const DivideIndexesAnnotation = "splitter.atoll.dev/divide-indexes"

// Annotations of the shards of a Deployment.
const (
	// TemplateAnnotation is on each shard of a Deployment whose clusters share one maxUnavailable and
	// maxSurge: a hash of the pod template of the parent from which the shard was cut.
	TemplateAnnotation = "splitter.atoll.dev/template"

	// RolloutAnnotation is "true" on a shard as long as its pods may not all have the parent's
	// template.
	RolloutAnnotation = "splitter.atoll.dev/rollout"

	// PriorAnnotation bounds what the cluster of a shard may still do by earlier specs, until it has
	// observed the present one: see rollout.Prior.
	PriorAnnotation = "splitter.atoll.dev/prior"
)

// AutoscalerMinAnnotation is on the shards of an autoscaled workload while replicas move between
// clusters: the least number of replicas that the autoscaler of the shard may choose.
const AutoscalerMinAnnotation = "splitter.atoll.dev/autoscaler-min"

// Annotations with the placement of an object. All change in one write, which fails if the object
// has changed meanwhile.
const (
	// PlacementAnnotation lists the clusters of an object: their names, sorted, joined by commas.
	// Empty or absent: none. An object that keeps its name in each cluster has a label of
	// syncer/v1alpha1 for each of them; a divided object gets a shard in each.
	PlacementAnnotation = "splitter.atoll.dev/placement"

	// LeavingAnnotation lists those of them that the object leaves once its replacement elsewhere
	// is in place.
	LeavingAnnotation = "splitter.atoll.dev/leaving"

	// DivisionAnnotation has, in JSON, the mode and shares by which an object is divided over its
	// clusters.
	DivisionAnnotation = "splitter.atoll.dev/division"

	// PlacedByAnnotation names the policy that decided: a PlacementPolicy of the object's namespace,
	// PlacedByClusterWide and the name of a ClusterPlacementPolicy, PlacedByDefault or
	// PlacedByReference.
	PlacedByAnnotation = "splitter.atoll.dev/placed-by"

	// PlacedByClusterWide precedes the name of a ClusterPlacementPolicy. No PlacementPolicy can have
	// a name with a slash.
	PlacedByClusterWide = "ClusterPlacementPolicy/"

	// PlacedByDefault is for objects that no policy selects: no PlacementPolicy can have that
	// name.
	PlacedByDefault = "(default)"

	// PlacedByReference is for objects that are placed only with the workloads that refer to
	// them.
	PlacedByReference = "(reference)"
)
