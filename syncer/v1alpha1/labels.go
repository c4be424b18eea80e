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

	// StatusAnnotationPrefix and the name of a SyncTarget make the annotation that holds, in JSON, the status that an
	// object with labels of several clusters has in that cluster: .status has room for one only. The observedGenerations
	// in it are those of the upstream object.
	StatusAnnotationPrefix = "status.workload.kcp.io/"
)
