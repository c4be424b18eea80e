// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ServiceClusterConditionType is the type of a condition of a ServiceCluster.
type ServiceClusterConditionType string

// ServiceClusterConditionReason is why such a condition has its status.
type ServiceClusterConditionReason string

const (
	// ServiceClusterConditionReady summarizes the other conditions.
	//
	// True: the cluster can be used (reason Complete).
	// False: it cannot (Unclaimed, Held, RegionUnbound, Unreachable,
	// KubeconfigInvalid, Removing).
	// Unknown: nothing was observed yet (Pending), or a peer is unreachable
	// (PeerUnreachable).
	ServiceClusterConditionReady ServiceClusterConditionType = "Ready"

	// ServiceClusterConditionClaimed shows whether the name is held in all peers.
	//
	// True: the claim is committed (reason Committed).
	// False: the object was applied without a claim (Unclaimed), also in other
	// peers (Rivals), or another peer holds the name (Held).
	// Unknown: the object has no claim, and a peer that may hold the name is
	// unreachable (PeerUnreachable).
	ServiceClusterConditionClaimed ServiceClusterConditionType = "Claimed"

	// ServiceClusterConditionRegionBound shows whether this peer serves the region.
	//
	// True: the RegionClaim of the same namespace and name is Bound (Bound).
	// False: it does not exist (NoRegionClaim), or is not Bound (RegionUnbound).
	// Unknown: it could not be read (Pending).
	ServiceClusterConditionRegionBound ServiceClusterConditionType = "RegionBound"

	// ServiceClusterConditionReachable shows whether the cluster is reachable.
	//
	// True: it was at the last probe (Answered).
	// False: it was not (Unreachable), or its kubeconfig is not accepted
	// (KubeconfigInvalid).
	// Unknown: it was not probed yet (Pending).
	ServiceClusterConditionReachable ServiceClusterConditionType = "Reachable"
)

const (
	// ServiceClusterReasonComplete: every other condition is True.
	ServiceClusterReasonComplete ServiceClusterConditionReason = "Complete"
	// ServiceClusterReasonPending: nothing was observed yet.
	ServiceClusterReasonPending ServiceClusterConditionReason = "Pending"
	// ServiceClusterReasonUnclaimed: applied without a claim: a coordinator adopts it.
	ServiceClusterReasonUnclaimed ServiceClusterConditionReason = "Unclaimed"
	// ServiceClusterReasonReserved: the operation has not ended. This release does not set it.
	ServiceClusterReasonReserved ServiceClusterConditionReason = "Reserved"
	// ServiceClusterReasonCommitted: the claim is committed.
	ServiceClusterReasonCommitted ServiceClusterConditionReason = "Committed"
	// ServiceClusterReasonHeld: another peer holds the name.
	ServiceClusterReasonHeld ServiceClusterConditionReason = "Held"
	// ServiceClusterReasonRivals: applied without a claim in several peers;
	// delete all but one.
	ServiceClusterReasonRivals ServiceClusterConditionReason = "Rivals"
	// ServiceClusterReasonPeerUnreachable: a peer is unreachable.
	ServiceClusterReasonPeerUnreachable ServiceClusterConditionReason = "PeerUnreachable"
	// ServiceClusterReasonBound: the RegionClaim is Bound.
	ServiceClusterReasonBound ServiceClusterConditionReason = "Bound"
	// ServiceClusterReasonNoRegionClaim: there is no RegionClaim with this name.
	ServiceClusterReasonNoRegionClaim ServiceClusterConditionReason = "NoRegionClaim"
	// ServiceClusterReasonRegionUnbound: the RegionClaim is not Bound.
	ServiceClusterReasonRegionUnbound ServiceClusterConditionReason = "RegionUnbound"
	// ServiceClusterReasonAnswered: the cluster is reachable.
	ServiceClusterReasonAnswered ServiceClusterConditionReason = "Answered"
	// ServiceClusterReasonUnreachable: the cluster is unreachable.
	ServiceClusterReasonUnreachable ServiceClusterConditionReason = "Unreachable"
	// ServiceClusterReasonKubeconfigInvalid: the kubeconfig is not accepted.
	ServiceClusterReasonKubeconfigInvalid ServiceClusterConditionReason = "KubeconfigInvalid"
	// ServiceClusterReasonRemoving: the ServiceCluster is being removed from all peers.
	ServiceClusterReasonRemoving ServiceClusterConditionReason = "Removing"
)
