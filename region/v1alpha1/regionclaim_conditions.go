// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// RegionClaimConditionType is the type of a condition of a RegionClaim.
type RegionClaimConditionType string

// RegionClaimConditionReason is why such a condition has its status.
type RegionClaimConditionReason string

const (
	// RegionClaimConditionBound says whether this peer serves the region. The
	// phase follows from it: Bound, Conflict, or Pending for all else.
	//
	// True: all peers acknowledged it (reason Acknowledged).
	// False: another peer holds the region (HeldElsewhere), or the claim is
	// being given up (Removing).
	// Unknown: not decided yet (Pending), or a peer that has to be asked did not
	// answer (PeerUnreachable).
	RegionClaimConditionBound RegionClaimConditionType = "Bound"
)

const (
	// RegionClaimReasonAcknowledged: all peers know that this one serves the region.
	RegionClaimReasonAcknowledged RegionClaimConditionReason = "Acknowledged"
	// RegionClaimReasonHeldElsewhere: another peer holds the region.
	RegionClaimReasonHeldElsewhere RegionClaimConditionReason = "HeldElsewhere"
	// RegionClaimReasonRemoving: the claim is being given up.
	RegionClaimReasonRemoving RegionClaimConditionReason = "Removing"
	// RegionClaimReasonPending: it is not decided yet.
	RegionClaimReasonPending RegionClaimConditionReason = "Pending"
	// RegionClaimReasonPeerUnreachable: a peer did not answer.
	RegionClaimReasonPeerUnreachable RegionClaimConditionReason = "PeerUnreachable"
)
