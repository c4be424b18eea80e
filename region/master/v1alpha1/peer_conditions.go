// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// PeerConditionType is the type of a condition of a Peer.
type PeerConditionType string

// PeerConditionReason is why such a condition has its status.
type PeerConditionReason string

const (
	// PeerConditionReady sums the others up.
	//
	// True: the peer answers, as itself, and its regions are its own (reason
	// Reachable).
	// False: one of the others is False (with that one's reason), or the types
	// or rights that are needed there are missing (CRDsMissing, RightsMissing).
	// Unknown: it was not reached yet (Pending), or its Secret cannot be read
	// (SecretUnreadable).
	PeerConditionReady PeerConditionType = "Ready"

	// PeerConditionKubeconfigValid says whether the kubeconfig can be used. As
	// long as it cannot, the last good one is.
	//
	// True: it was checked and accepted (Accepted).
	// False: the Secret is missing (SecretNotFound), a field is missing or refused
	// (KubeconfigInvalid; the message names it), or it reaches another cluster
	// than the one that this peer is (OtherCluster).
	// Unknown: the Secret could not be read (SecretUnreadable), or not yet
	// (Pending).
	PeerConditionKubeconfigValid PeerConditionType = "KubeconfigValid"

	// PeerConditionReachable says whether the peer answers.
	//
	// True: it did at the last probes (Reachable).
	// False: it did not (Unreachable), or refuses our credentials
	// (CredentialsRejected).
	// Unknown: it was not asked yet (Pending).
	PeerConditionReachable PeerConditionType = "Reachable"

	// PeerConditionRegionsUnique says whether no other peer serves its regions.
	//
	// True: none does (Unique).
	// False: another peer serves one of them (RegionServedTwice). Or the
	// installation cannot be registered, since it is a master itself (IsMaster)
	// or another Peer reaches it already (SameCluster): then it serves none.
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
	// PeerReasonKubeconfigInvalid: there is no kubeconfig that can be used.
	PeerReasonKubeconfigInvalid PeerConditionReason = "KubeconfigInvalid"
	// PeerReasonOtherCluster: the kubeconfig reaches another cluster than before.
	PeerReasonOtherCluster PeerConditionReason = "OtherCluster"
	// PeerReasonReachable: the peer answers.
	PeerReasonReachable PeerConditionReason = "Reachable"
	// PeerReasonUnreachable: the peer did not answer.
	PeerReasonUnreachable PeerConditionReason = "Unreachable"
	// PeerReasonCredentialsRejected: the peer refuses our credentials.
	PeerReasonCredentialsRejected PeerConditionReason = "CredentialsRejected"
	// PeerReasonCRDsMissing: the peer does not serve the types of an installation.
	PeerReasonCRDsMissing PeerConditionReason = "CRDsMissing"
	// PeerReasonRightsMissing: the peer does not let us read what it serves.
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
