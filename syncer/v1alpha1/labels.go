// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// These labels and annotations assign upstream objects to SyncTargets. Placement writes the labels and syncers read
// them; there is no other interface between the two.
const (
	// ClusterLabel is the label whose value is the name of the one SyncTarget that an object is synced to.
	ClusterLabel = "workloads.kcp.io/cluster"

	// StateLabelPrefix and the name of a SyncTarget form the label of an object that is synced to several clusters:
	// it has one per cluster, each with the value StateSync. Removing one removes the object from that cluster only.
	StateLabelPrefix = "state.workload.kcp.io/"

	// StateSync is the value of these labels.
	StateSync = "Sync"

	// StateUpsync is the value of the label StateLabelPrefix + NAME on a downstream object. If the syncer's option
	// Upsync selects the object's type, the syncer creates the object upstream.
	StateUpsync = "Upsync"

	// FinalizerPrefix and the name of a SyncTarget form the finalizer of an object that is synced to it. The syncer
	// adds it before it creates the downstream object. A client that places objects can write it together with the
	// label and saves a write; without the label it is removed again, within 36 minutes.
	FinalizerPrefix = "syncer.atoll.dev/"

	// SyncedCondition is the type of the condition that reports whether an object is synced, if the syncer's options
	// ask for it. An object that is synced to several clusters has one for each, with "-" and the name of the
	// SyncTarget appended.
	SyncedCondition = "Synced"

	// SyncedAnnotationPrefix and the name of a SyncTarget form the annotation that replaces this condition where the
	// type of the object has no conditions. Its value is JSON with the fields of a condition.
	SyncedAnnotationPrefix = "synced.syncer.atoll.dev/"

	// StatusAnnotationPrefix and the name of a SyncTarget form the annotation that holds, in JSON, the status of the
	// object in that cluster. It is used for an object with labels of several clusters, since .status has room for
	// one only. Its observedGenerations are those of the upstream object. That of a Deployment has none, since API
	// servers count each write of an annotation of a Deployment as a generation.
	StatusAnnotationPrefix = "status.workload.kcp.io/"
)
