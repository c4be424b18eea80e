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
	// False: it is not (Unclaimed, Reserved, NamespaceTerminating, RolesConflict,
	// RolesRefused, PeersMissing, PeersNotReady, Conflict, Removing).
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

	// AccountConditionRolesReady says whether the Roles and RoleBindings of the
	// Account's subjects stand in its namespace in the peer.
	//
	// True: they do (Complete).
	// False: objects of their names are somebody else's (RolesConflict), or the
	// peer refused them (RolesRefused).
	// Unknown: the namespace has to come first (Pending).
	AccountConditionRolesReady AccountConditionType = "RolesReady"

	// AccountConditionPresent says, in a central plane, whether every peer holds
	// the latest revision. Beside it stands one condition per peer that is an
	// exception, up to a bound.
	//
	// True: all do (Complete).
	// False: some answered and lack it (PeersMissing), or the name is another's
	// (Conflict).
	// Unknown: some did not answer (PeersUnknown). Silence is not absence.
	AccountConditionPresent AccountConditionType = "PresentInAllPeers"

	// AccountConditionPresentIn is what the types of conditions of single peers
	// begin with; the peer's name follows. They stand in a central plane, for
	// peers that are an exception.
	//
	// True: the peer holds the latest revision and is not ready with it
	// (NotReady).
	// False: it answered and lacks it (Missing, Behind, Edited, Conflict), or
	// still has what is to go (Removing).
	// Unknown: it did not answer (NoAnswer), or is no member of the ring yet
	// (NoMember) and does not count.
	AccountConditionPresentIn AccountConditionType = "PresentIn."

	// AccountConditionOrphaned says, in a peer, that the Account was made there for
	// one of the central plane which is not there: that plane, or the peer, was
	// restored from a backup. A person decides: remove it, or apply it in the central
	// plane again. It is there only while that is so.
	//
	//	True     NoCentralObject
	AccountConditionOrphaned AccountConditionType = "Orphaned"

	// AccountConditionRemovalHeld says, in the Account's home, that it was deleted
	// there and that its removal from all peers is held: it is in force until the
	// reason ends or a person releases it. In a central plane it says so of a deletion
	// there. It is there only while that is so.
	//
	// True: something lives in its namespace (Occupied), a peer cannot say whether
	// something does (Unknown), or too many were deleted at once (TooMany).
	AccountConditionRemovalHeld AccountConditionType = "RemovalHeld"
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
	// AccountReasonRolesConflict: a Role or RoleBinding of that name is somebody
	// else's and is left as it is.
	AccountReasonRolesConflict AccountConditionReason = "RolesConflict"
	// AccountReasonRolesRefused: the peer refused a Role or RoleBinding.
	AccountReasonRolesRefused AccountConditionReason = "RolesRefused"
	// AccountReasonPeersNotReady: all peers have it, some are not ready with it.
	AccountReasonPeersNotReady AccountConditionReason = "PeersNotReady"
	// AccountReasonConflict: an Account of that name, with other content, is not
	// this one's.
	AccountReasonConflict AccountConditionReason = "Conflict"
	// AccountReasonNoCentralObject: the Account of the central plane for which it was
	// made is not there.
	AccountReasonNoCentralObject AccountConditionReason = "NoCentralObject"
	// AccountReasonMissing: the peer has no copy.
	AccountReasonMissing AccountConditionReason = "Missing"
	// AccountReasonBehind: the peer's copy is of an earlier revision or not in
	// force yet.
	AccountReasonBehind AccountConditionReason = "Behind"
	// AccountReasonEdited: the peer's copy was changed by hand.
	AccountReasonEdited AccountConditionReason = "Edited"
	// AccountReasonNotReady: the peer's copy is current and not ready.
	AccountReasonNotReady AccountConditionReason = "NotReady"
	// AccountReasonNoAnswer: the peer did not answer.
	AccountReasonNoAnswer AccountConditionReason = "NoAnswer"
	// AccountReasonNoMember: the peer is no member of the ring yet.
	AccountReasonNoMember AccountConditionReason = "NoMember"
	// AccountReasonRemoving: it is being removed from all peers.
	AccountReasonRemoving AccountConditionReason = "Removing"
)
