// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ConditionType is the type of a condition of this package's types.
type ConditionType string

// ConditionReason is the reason of a condition's status.
type ConditionReason string

const (
	// ConditionReady reports whether a ClusterDaemonSet runs on all its
	// clusters, or whether a PlacementPolicy can be followed.
	//
	//   - True: it does, or can (reason Complete).
	//   - False: clusters lack replicas (ClustersNotReady), no cluster is
	//     chosen (NoClusters), or a selector cannot be read (Invalid).
	//   - Unknown: clusters are unreachable (ClustersUnknown), or nothing was
	//     observed yet (Pending).
	ConditionReady ConditionType = "Ready"
)

const (
	// ReasonComplete: nothing is missing.
	ReasonComplete ConditionReason = "Complete"
	// ReasonClustersNotReady: reachable clusters lack replicas.
	ReasonClustersNotReady ConditionReason = "ClustersNotReady"
	// ReasonClustersUnknown: clusters are unreachable. They do not count as
	// empty.
	ReasonClustersUnknown ConditionReason = "ClustersUnknown"
	// ReasonNoClusters: no cluster is chosen.
	ReasonNoClusters ConditionReason = "NoClusters"
	// ReasonInvalid: a selector cannot be read.
	ReasonInvalid ConditionReason = "Invalid"
	// ReasonPending: nothing was observed yet.
	ReasonPending ConditionReason = "Pending"
)
