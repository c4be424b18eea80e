// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// AccountConditionType is the type of a condition of an Account.
type AccountConditionType string

// AccountConditionReason is the reason of a condition's status.
type AccountConditionReason string

const (
	// AccountConditionReady reports whether the Account can be used: in a peer,
	// in that peer; in a central plane, in all peers.
	//
	//   - True: it is in effect (reason Complete).
	//   - False: it is not (NamespaceTerminating, RolesConflict, RolesRefused,
	//     PeersMissing, PeersNotReady, Conflict, Removing).
	//   - Unknown: a peer is unreachable (PeersUnknown), or nothing was
	//     observed yet (Pending).
	AccountConditionReady AccountConditionType = "Ready"

	// AccountConditionNamespaceReady reports whether the Account's namespace
	// can be used in the peer.
	//
	//   - True: it was made for the Account (Owned), or existed before
	//     (Shared).
	//   - False: it is being deleted (Terminating).
	AccountConditionNamespaceReady AccountConditionType = "NamespaceReady"

	// AccountConditionRolesReady reports whether the Roles and RoleBindings of
	// the Account's subjects exist in its namespace in the peer.
	//
	//   - True: they do (Complete).
	//   - False: other clients' objects have their names (RolesConflict), or
	//     the peer rejected them (RolesRefused).
	//   - Unknown: the namespace has to exist first (Pending).
	AccountConditionRolesReady AccountConditionType = "RolesReady"

	// AccountConditionPresent reports, in a central plane, whether every peer
	// holds the latest revision. Each peer that is an exception has its own
	// condition, up to a bound.
	//
	//   - True: all do (Complete).
	//   - False: reachable peers lack it (PeersMissing), or another object has
	//     the name (Conflict).
	//   - Unknown: peers are unreachable (PeersUnknown) and may hold it.
	AccountConditionPresent AccountConditionType = "PresentInAllPeers"

	// AccountConditionPresentIn is the prefix of the types of conditions for
	// single peers; the peer's name follows. A central plane has them for peers
	// that are an exception.
	//
	//   - True: the peer holds the latest revision and is not ready with it
	//     (NotReady).
	//   - False: it is reachable and lacks it (Missing, Behind, Edited,
	//     Conflict), or still has an object that is to be removed (Removing).
	//   - Unknown: it is unreachable (NoAnswer), or is no member of the ring
	//     yet (NoMember) and does not count.
	AccountConditionPresentIn AccountConditionType = "PresentIn."

	// AccountConditionOrphaned reports, in a peer, that the central object of
	// the Account is missing: the central plane, or the peer, was restored from
	// a backup. A person decides: remove the Account, or apply it in the
	// central plane again. Otherwise the condition is absent.
	//
	//   - True: the central object is missing (NoCentralObject).
	AccountConditionOrphaned AccountConditionType = "Orphaned"

	// AccountConditionRemovalHeld reports, in the Account's home, that it was
	// deleted there and that its removal from all peers is held: it is in effect
	// until the reason ends or a person releases it. In a central plane it
	// reports this for a deletion there. Otherwise the condition is absent.
	//
	//   - True: its namespace contains something (Occupied), an unreachable
	//     peer may contain something (Unknown), or too many were deleted at
	//     once (TooMany).
	AccountConditionRemovalHeld AccountConditionType = "RemovalHeld"
)

const (
	// AccountReasonComplete: nothing is missing.
	AccountReasonComplete AccountConditionReason = "Complete"
	// AccountReasonPending: nothing was observed yet.
	AccountReasonPending AccountConditionReason = "Pending"
	// AccountReasonUnclaimed: applied without a claim. This release does not set it.
	AccountReasonUnclaimed AccountConditionReason = "Unclaimed"
	// AccountReasonReserved: its operation has not ended. This release does not set it.
	AccountReasonReserved AccountConditionReason = "Reserved"
	// AccountReasonOwned: the namespace was made for the Account.
	AccountReasonOwned AccountConditionReason = "Owned"
	// AccountReasonShared: the namespace existed before and stays after it.
	AccountReasonShared AccountConditionReason = "Shared"
	// AccountReasonTerminating: the namespace is being deleted.
	AccountReasonTerminating AccountConditionReason = "Terminating"
	// AccountReasonNamespaceTerminating: not ready because of its namespace.
	AccountReasonNamespaceTerminating AccountConditionReason = "NamespaceTerminating"
	// AccountReasonPeersMissing: reachable peers lack the latest revision.
	AccountReasonPeersMissing AccountConditionReason = "PeersMissing"
	// AccountReasonPeersUnknown: peers are unreachable.
	AccountReasonPeersUnknown AccountConditionReason = "PeersUnknown"
	// AccountReasonRolesConflict: another client's object has the name of a
	// Role or RoleBinding and is not changed.
	AccountReasonRolesConflict AccountConditionReason = "RolesConflict"
	// AccountReasonRolesRefused: the peer rejected a Role or RoleBinding.
	AccountReasonRolesRefused AccountConditionReason = "RolesRefused"
	// AccountReasonPeersNotReady: all peers have it, some are not ready with it.
	AccountReasonPeersNotReady AccountConditionReason = "PeersNotReady"
	// AccountReasonConflict: another Account with other content has the name.
	AccountReasonConflict AccountConditionReason = "Conflict"
	// AccountReasonNoCentralObject: the central object that it was made for is
	// missing.
	AccountReasonNoCentralObject AccountConditionReason = "NoCentralObject"
	// AccountReasonMissing: the peer lacks the object.
	AccountReasonMissing AccountConditionReason = "Missing"
	// AccountReasonBehind: the peer's object has an earlier revision or is not
	// in effect yet.
	AccountReasonBehind AccountConditionReason = "Behind"
	// AccountReasonEdited: the peer's object was changed by hand.
	AccountReasonEdited AccountConditionReason = "Edited"
	// AccountReasonNotReady: the peer's object is current and not ready.
	AccountReasonNotReady AccountConditionReason = "NotReady"
	// AccountReasonNoAnswer: the peer is unreachable.
	AccountReasonNoAnswer AccountConditionReason = "NoAnswer"
	// AccountReasonNoMember: the peer is no member of the ring yet.
	AccountReasonNoMember AccountConditionReason = "NoMember"
	// AccountReasonRemoving: it is being removed from all peers.
	AccountReasonRemoving AccountConditionReason = "Removing"
)
