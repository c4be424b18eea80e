// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// RegionClaimConditionType is the type of a condition of a RegionClaim.
type RegionClaimConditionType string

// RegionClaimConditionReason is why such a condition has its status.
type RegionClaimConditionReason string

const (
	// RegionClaimConditionBound shows whether this peer serves the region. The
	// phase is derived from it: Bound, Conflict, or otherwise Pending.
	//
	// True: this peer serves the region (reason Acknowledged).
	// False: another peer holds the region (HeldElsewhere), or the claim is
	// being removed (Removing).
	// Unknown: not decided yet (Pending), or a peer that may hold the region is
	// unreachable (PeerUnreachable).
	RegionClaimConditionBound RegionClaimConditionType = "Bound"
)

const (
	// RegionClaimReasonAcknowledged: this peer serves the region.
	RegionClaimReasonAcknowledged RegionClaimConditionReason = "Acknowledged"
	// RegionClaimReasonHeldElsewhere: another peer holds the region.
	RegionClaimReasonHeldElsewhere RegionClaimConditionReason = "HeldElsewhere"
	// RegionClaimReasonRemoving: the claim is being removed.
	RegionClaimReasonRemoving RegionClaimConditionReason = "Removing"
	// RegionClaimReasonPending: not decided yet.
	RegionClaimReasonPending RegionClaimConditionReason = "Pending"
	// RegionClaimReasonPeerUnreachable: a peer that may hold the region is unreachable.
	RegionClaimReasonPeerUnreachable RegionClaimConditionReason = "PeerUnreachable"
)
