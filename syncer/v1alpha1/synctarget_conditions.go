// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// SyncTargetConditionType is the type of a condition of a SyncTarget.
type SyncTargetConditionType string

// SyncTargetConditionReason is why such a condition has its status.
type SyncTargetConditionReason string

const (
	// SyncTargetConditionReady says whether workloads may be placed there. A
	// SyncTarget whose heartbeat stands still is to be read as Unknown.
	//
	// True: the syncer works (reason Syncing).
	// False: the cluster does not answer (Unreachable), its kubeconfig is not
	// accepted (KubeconfigInvalid), or the syncer was stopped (Stopped).
	// Unknown: nothing was observed yet (Pending).
	SyncTargetConditionReady SyncTargetConditionType = "Ready"

	// SyncTargetConditionReachable says whether the cluster answers.
	//
	// True: it does (Answered).
	// False: it does not (Unreachable).
	// Unknown: it was not asked yet (Pending).
	SyncTargetConditionReachable SyncTargetConditionType = "Reachable"

	// SyncTargetConditionTypesCompatible says whether all types that are to be
	// synced are served alike on both sides.
	//
	// True: all are (Compatible).
	// False: some are not, and are not synced (Incompatible; the message names
	// them). The others are synced all the same.
	// Unknown: types were not compared yet (Pending).
	SyncTargetConditionTypesCompatible SyncTargetConditionType = "TypesCompatible"

	// SyncTargetConditionDeletionsHeld says whether deletions wait for a person.
	//
	// True: so many objects would go at once that the syncer stopped and asks
	// (CapReached).
	// False: no deletion waits (WithinCap).
	SyncTargetConditionDeletionsHeld SyncTargetConditionType = "DeletionsHeld"
)

const (
	// SyncTargetReasonSyncing: the syncer works.
	SyncTargetReasonSyncing SyncTargetConditionReason = "Syncing"
	// SyncTargetReasonStopped: the syncer was stopped in good order.
	SyncTargetReasonStopped SyncTargetConditionReason = "Stopped"
	// SyncTargetReasonPending: nothing was observed yet.
	SyncTargetReasonPending SyncTargetConditionReason = "Pending"
	// SyncTargetReasonAnswered: the cluster answers.
	SyncTargetReasonAnswered SyncTargetConditionReason = "Answered"
	// SyncTargetReasonUnreachable: the cluster does not answer.
	SyncTargetReasonUnreachable SyncTargetConditionReason = "Unreachable"
	// SyncTargetReasonKubeconfigInvalid: the kubeconfig is not accepted.
	SyncTargetReasonKubeconfigInvalid SyncTargetConditionReason = "KubeconfigInvalid"
	// SyncTargetReasonCompatible: all types are served alike.
	SyncTargetReasonCompatible SyncTargetConditionReason = "Compatible"
	// SyncTargetReasonIncompatible: some types are not served alike.
	SyncTargetReasonIncompatible SyncTargetConditionReason = "Incompatible"
	// SyncTargetReasonCapReached: deletions wait for a person.
	SyncTargetReasonCapReached SyncTargetConditionReason = "CapReached"
	// SyncTargetReasonWithinCap: no deletion waits.
	SyncTargetReasonWithinCap SyncTargetConditionReason = "WithinCap"
)
