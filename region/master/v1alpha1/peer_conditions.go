// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// PeerConditionType is the type of a condition of a Peer.
type PeerConditionType string

// PeerConditionReason is why such a condition has its status.
type PeerConditionReason string

const (
	// PeerConditionReady summarizes the other conditions.
	//
	// True: the peer is reachable, is the expected cluster, and no other peer
	// serves its regions (reason Reachable).
	// False: another condition is False (with its reason), or the required types
	// or rights are missing in the peer (CRDsMissing, RightsMissing).
	// Unknown: the peer was not reached yet (Pending), or its Secret cannot be read
	// (SecretUnreadable).
	PeerConditionReady PeerConditionType = "Ready"

	// PeerConditionKubeconfigValid shows whether the kubeconfig can be used. If it
	// cannot, the last good one stays in use.
	//
	// True: it was checked and accepted (Accepted).
	// False: the Secret is missing (SecretNotFound), a field is missing or rejected
	// (KubeconfigInvalid; the message names it), or it reaches another cluster
	// than this peer's (OtherCluster).
	// Unknown: the Secret could not be read (SecretUnreadable), or was not read yet
	// (Pending).
	PeerConditionKubeconfigValid PeerConditionType = "KubeconfigValid"

	// PeerConditionReachable shows whether the peer is reachable.
	//
	// True: it was at the last probes (Reachable).
	// False: it was not (Unreachable), or rejects the credentials
	// (CredentialsRejected).
	// Unknown: it was not probed yet (Pending).
	PeerConditionReachable PeerConditionType = "Reachable"

	// PeerConditionRegionsUnique shows whether no other peer serves its regions.
	//
	// True: no other peer does (Unique).
	// False: another peer serves one of them (RegionServedTwice). Or the
	// installation is refused, because it is a master itself (IsMaster) or another
	// Peer reaches it already (SameCluster): then it serves no region.
	// Unknown: its regions are not known yet (Pending), or cannot be read
	// (CRDsMissing, RightsMissing).
	PeerConditionRegionsUnique PeerConditionType = "RegionsUnique"
)

const (
	// PeerReasonPending: nothing was observed yet.
	PeerReasonPending PeerConditionReason = "Pending"
	// PeerReasonAccepted: the kubeconfig was accepted.
	PeerReasonAccepted PeerConditionReason = "Accepted"
	// PeerReasonSecretNotFound: the Secret, or its key, does not exist.
	PeerReasonSecretNotFound PeerConditionReason = "SecretNotFound"
	// PeerReasonSecretUnreadable: the Secret could not be read.
	PeerReasonSecretUnreadable PeerConditionReason = "SecretUnreadable"
	// PeerReasonKubeconfigInvalid: the kubeconfig is missing or invalid.
	PeerReasonKubeconfigInvalid PeerConditionReason = "KubeconfigInvalid"
	// PeerReasonOtherCluster: the kubeconfig reaches another cluster than before.
	PeerReasonOtherCluster PeerConditionReason = "OtherCluster"
	// PeerReasonReachable: the peer is reachable.
	PeerReasonReachable PeerConditionReason = "Reachable"
	// PeerReasonUnreachable: the peer is unreachable.
	PeerReasonUnreachable PeerConditionReason = "Unreachable"
	// PeerReasonCredentialsRejected: the peer rejects the credentials.
	PeerReasonCredentialsRejected PeerConditionReason = "CredentialsRejected"
	// PeerReasonCRDsMissing: the peer does not serve the types of an installation.
	PeerReasonCRDsMissing PeerConditionReason = "CRDsMissing"
	// PeerReasonRightsMissing: the credentials lack rights in the peer.
	PeerReasonRightsMissing PeerConditionReason = "RightsMissing"
	// PeerReasonUnique: no other peer serves its regions.
	PeerReasonUnique PeerConditionReason = "Unique"
	// PeerReasonRegionServedTwice: another peer serves one of its regions.
	PeerReasonRegionServedTwice PeerConditionReason = "RegionServedTwice"
	// PeerReasonIsMaster: an installation that is a master cannot be a peer.
	PeerReasonIsMaster PeerConditionReason = "IsMaster"
	// PeerReasonSameCluster: another Peer reaches the same cluster.
	PeerReasonSameCluster PeerConditionReason = "SameCluster"
)
