// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

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
	// below zero.
	WeightLabel = "splitter.atoll.dev/weight"
)
