// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Manager is the field manager of a Splitter. What it owns of a shard no other loop may write.
const Manager = "atoll-splitter"

// What marks the objects that a splitter works on.
const (
	// ParentLabel is the label of a shard: the UID of the parent that it was cut from.
	ParentLabel = "splitter.atoll.dev/parent"

	// ParentAnnotation is the annotation of a shard: the name of its parent, in the same namespace.
	ParentAnnotation = "splitter.atoll.dev/parent-name"

	// ClusterAnnotation is the annotation of a shard: the name of its cluster.
	ClusterAnnotation = "splitter.atoll.dev/cluster"

	// ShardsFinalizer keeps a parent until its shards are gone.
	ShardsFinalizer = "splitter.atoll.dev/shards"

	// WeightLabel is the label of a SyncTarget that has another share than the others, which have 1: a whole number, not
	// below zero. One that cannot be read counts as absent.
	WeightLabel = "splitter.atoll.dev/weight"
)

// What says where an object is placed. All of it changes in one write, which fails if the object has changed meanwhile.
const (
	// PlacementAnnotation lists the clusters that an object is targeted at: their names, sorted, with commas between.
	// Empty or absent: none. An object that keeps its name in each cluster has a label of syncer/v1alpha1 for each of
	// them; one that is divided gets a shard in each.
	PlacementAnnotation = "splitter.atoll.dev/placement"

	// LeavingAnnotation lists those of them that it is about to leave, once what it has there is in place elsewhere.
	LeavingAnnotation = "splitter.atoll.dev/leaving"

	// DivisionAnnotation is, in JSON, how an object that is divided is divided over its clusters.
	DivisionAnnotation = "splitter.atoll.dev/division"

	// PlacedByAnnotation is what decided: the name of a PlacementPolicy, PlacedByDefault or PlacedByReference.
	PlacedByAnnotation = "splitter.atoll.dev/placed-by"

	// PlacedByDefault is for what no policy selects: no PlacementPolicy can have that name.
	PlacedByDefault = "(default)"

	// PlacedByReference is for what is placed only with the workloads that refer to it.
	PlacedByReference = "(reference)"
)
