// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// AccountConditionType is the type of a condition of an Account.
type AccountConditionType string

// AccountConditionReason is why such a condition has its status.
type AccountConditionReason string

const (
	// AccountConditionReady says whether the Account can be used. In a peer it
	// speaks of that peer, in a central plane of all peers.
	//
	// True: it is in effect (reason Complete).
	// False: it is not (Unclaimed, Reserved, NamespaceTerminating, PeersMissing,
	// Removing).
	// Unknown: a peer did not answer (PeersUnknown), or nothing was observed yet
	// (Pending).
	AccountConditionReady AccountConditionType = "Ready"

	// AccountConditionNamespaceReady says whether the Account's namespace can be
	// used in the peer.
	//
	// True: it was made for the Account (Owned), or was there before (Shared).
	// False: it is on its way out (Terminating).
	// Unknown: it could not be read (Pending).
	AccountConditionNamespaceReady AccountConditionType = "NamespaceReady"

	// AccountConditionPresent says, in a central plane, whether every peer holds
	// the latest revision. Beside it stands one condition per peer that is an
	// exception, up to a bound.
	//
	// True: all do (Complete).
	// False: some answered and lack it (PeersMissing).
	// Unknown: some did not answer (PeersUnknown). Silence is not absence.
	AccountConditionPresent AccountConditionType = "PresentInAllPeers"
)

const (
	// AccountReasonComplete: nothing is missing.
	AccountReasonComplete AccountConditionReason = "Complete"
	// AccountReasonPending: nothing was observed yet.
	AccountReasonPending AccountConditionReason = "Pending"
	// AccountReasonUnclaimed: applied without a claim; a coordinator adopts it.
	AccountReasonUnclaimed AccountConditionReason = "Unclaimed"
	// AccountReasonReserved: its operation has not ended.
	AccountReasonReserved AccountConditionReason = "Reserved"
	// AccountReasonOwned: the namespace was made for the Account.
	AccountReasonOwned AccountConditionReason = "Owned"
	// AccountReasonShared: the namespace was there before and will outlive it.
	AccountReasonShared AccountConditionReason = "Shared"
	// AccountReasonTerminating: the namespace is on its way out.
	AccountReasonTerminating AccountConditionReason = "Terminating"
	// AccountReasonNamespaceTerminating: not ready because of its namespace.
	AccountReasonNamespaceTerminating AccountConditionReason = "NamespaceTerminating"
	// AccountReasonPeersMissing: peers answered and lack the latest revision.
	AccountReasonPeersMissing AccountConditionReason = "PeersMissing"
	// AccountReasonPeersUnknown: peers did not answer.
	AccountReasonPeersUnknown AccountConditionReason = "PeersUnknown"
	// AccountReasonRemoving: it is being removed from all peers.
	AccountReasonRemoving AccountConditionReason = "Removing"
)
