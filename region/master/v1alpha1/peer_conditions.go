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
	// True: the peer answers and its regions are its own (reason Complete).
	// False: one of the others is False (with that one's reason).
	// Unknown: it was not reached yet (Pending).
	PeerConditionReady PeerConditionType = "Ready"

	// PeerConditionKubeconfigValid says whether the kubeconfig can be used.
	//
	// True: it was checked and accepted (Accepted).
	// False: the Secret is missing (SecretNotFound), or a field is refused
	// (FieldRefused; the message names it).
	// Unknown: the Secret could not be read (SecretUnreadable).
	PeerConditionKubeconfigValid PeerConditionType = "KubeconfigValid"

	// PeerConditionReachable says whether the peer answers.
	//
	// True: it did at the last probes (Answered).
	// False: it did not (Unreachable), or refuses our credentials (Refused).
	// Unknown: it was not asked yet (Pending).
	PeerConditionReachable PeerConditionType = "Reachable"

	// PeerConditionRegionsUnique says whether no other peer serves its regions.
	//
	// True: none does (Unique).
	// False: another peer serves one of them (RegionServedTwice), or the peer is
	// a master itself and cannot be registered (PeerIsMaster).
	// Unknown: its regions are not known yet (Pending).
	PeerConditionRegionsUnique PeerConditionType = "RegionsUnique"
)

const (
	// PeerReasonComplete: every other condition is True.
	PeerReasonComplete PeerConditionReason = "Complete"
	// PeerReasonPending: nothing was observed yet.
	PeerReasonPending PeerConditionReason = "Pending"
	// PeerReasonAccepted: the kubeconfig was accepted.
	PeerReasonAccepted PeerConditionReason = "Accepted"
	// PeerReasonSecretNotFound: the Secret, or its key, does not exist.
	PeerReasonSecretNotFound PeerConditionReason = "SecretNotFound"
	// PeerReasonSecretUnreadable: the Secret could not be read.
	PeerReasonSecretUnreadable PeerConditionReason = "SecretUnreadable"
	// PeerReasonFieldRefused: the kubeconfig has a field that is not allowed.
	PeerReasonFieldRefused PeerConditionReason = "FieldRefused"
	// PeerReasonAnswered: the peer answered.
	PeerReasonAnswered PeerConditionReason = "Answered"
	// PeerReasonUnreachable: the peer did not answer.
	PeerReasonUnreachable PeerConditionReason = "Unreachable"
	// PeerReasonRefused: the peer refuses our credentials.
	PeerReasonRefused PeerConditionReason = "Refused"
	// PeerReasonUnique: no other peer serves its regions.
	PeerReasonUnique PeerConditionReason = "Unique"
	// PeerReasonRegionServedTwice: another peer serves one of its regions.
	PeerReasonRegionServedTwice PeerConditionReason = "RegionServedTwice"
	// PeerReasonIsMaster: an installation that is a master cannot be a peer.
	PeerReasonIsMaster PeerConditionReason = "PeerIsMaster"
)
