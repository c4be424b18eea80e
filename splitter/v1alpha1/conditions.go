// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ConditionType is the type of a condition of this package's types.
type ConditionType string

// ConditionReason is the reason of a condition's status.
type ConditionReason string

const (
	// ConditionReady reports whether a ClusterDaemonSet runs on all its
	// clusters, whether a PlacementPolicy can be followed, or whether the
	// present spec of a WorkloadType is in effect.
	//
	//   - True: the ClusterDaemonSet runs, the policy can be followed, or the
	//     spec is in effect (reason Complete).
	//   - False: clusters lack replicas (ClustersNotReady), no cluster is
	//     chosen (NoClusters), the clusters form fewer groups than a
	//     PlacementPolicy demands (TooFewGroups), a selector or template cannot be used or a
	//     WorkloadType has a fault (Invalid), another object has the name of a
	//     Deployment (NameTaken), or a PlacementPolicy is suspended (Suspended).
	//   - Unknown: clusters are unreachable (ClustersUnknown), or nothing was
	//     observed yet (Pending).
	ConditionReady ConditionType = "Ready"
	// ConditionDependentsPlaced reports, for a PlacementPolicy with
	// spec.dependents, whether all objects that belong to its workloads are
	// placed with them.
	//
	//   - True: they are (reason Complete).
	//   - False: the message lists objects that are in no cluster, because their
	//     numbers are not divided (Undivided), or because they grant rights to
	//     ServiceAccounts (RightsNotPlaced). With both, the reason is Undivided.
	//   - Unknown: objects may not be read (Pending).
	ConditionDependentsPlaced ConditionType = "DependentsPlaced"
)

const (
	// ReasonComplete: nothing is missing.
	ReasonComplete ConditionReason = "Complete"
	// ReasonClustersNotReady: reachable clusters of a ClusterDaemonSet lack replicas.
	ReasonClustersNotReady ConditionReason = "ClustersNotReady"
	// ReasonClustersUnknown: clusters of a ClusterDaemonSet are unreachable.
	// They do not count as empty.
	ReasonClustersUnknown ConditionReason = "ClustersUnknown"
	// ReasonNoClusters: no cluster is chosen.
	ReasonNoClusters ConditionReason = "NoClusters"
	// ReasonTooFewGroups: no choice of clusters meets the bounds in spec.groups of
	// the PlacementPolicy. The objects of the policy stay in their clusters, and
	// new objects wait.
	ReasonTooFewGroups ConditionReason = "TooFewGroups"
	// ReasonInvalid: a selector cannot be read, the template of a
	// ClusterDaemonSet does not match its selector or is rejected, or a
	// WorkloadType has a fault.
	ReasonInvalid ConditionReason = "Invalid"
	// ReasonNameTaken: another client's object has the name that the
	// ClusterDaemonSet's Deployment for a cluster would have.
	ReasonNameTaken ConditionReason = "NameTaken"
	// ReasonSuspended: the PlacementPolicy has spec.suspend. Its objects stay in
	// their clusters, and objects that are in no cluster wait.
	ReasonSuspended ConditionReason = "Suspended"
	// ReasonUndivided: the numbers of an object, such as maxReplicas, apply to
	// all clusters of the workload together, and no splitter divides them.
	ReasonUndivided ConditionReason = "Undivided"
	// ReasonRightsNotPlaced: RoleBindings or ClusterRoleBindings that grant rights
	// to the ServiceAccounts of workloads are not placed.
	ReasonRightsNotPlaced ConditionReason = "RightsNotPlaced"
	// ReasonPending: nothing was observed yet.
	ReasonPending ConditionReason = "Pending"
)
