// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// By these an object in the upstream says where it is to be synced. Whoever places objects writes them, and syncers read
// them; nothing else is between the two.
const (
	// ClusterLabel is the label whose value is the name of the one SyncTarget that an object is synced to.
	ClusterLabel = "workloads.kcp.io/cluster"

	// StateLabelPrefix and the name of a SyncTarget make the label of an object that is synced to several clusters: it
	// has one per cluster, each with the value StateSync. Removing one removes the object from that cluster only.
	StateLabelPrefix = "state.workload.kcp.io/"

	// StateSync is the value of these labels.
	StateSync = "Sync"

	// StateUpsync is the value of that label on an object downstream that is to be brought up, if the syncer is told to.
	StateUpsync = "Upsync"

	// FinalizerPrefix and the name of a SyncTarget make the finalizer that an object has while it is synced to it. The syncer
	// adds it before it makes a copy. Who places objects can write it together with the label and saves a write; without the
	// label it is removed again, within 36 minutes.
	FinalizerPrefix = "syncer.atoll.dev/"

	// SyncedCondition is the type of the condition that says whether an object is synced, if that is asked for. An object
	// that is synced to several clusters has one for each, with "-" and the name of the SyncTarget after it.
	SyncedCondition = "Synced"

	// SyncedAnnotationPrefix and the name of a SyncTarget make the annotation that says it, in JSON with the fields of a
	// condition, where the type of the object has no place for conditions.
	SyncedAnnotationPrefix = "synced.syncer.atoll.dev/"

	// StatusAnnotationPrefix and the name of a SyncTarget make the annotation that holds, in JSON, the status that an
	// object with labels of several clusters has in that cluster: .status has room for one only. The observedGenerations
	// in it are those of the upstream object.
	StatusAnnotationPrefix = "status.workload.kcp.io/"
)
