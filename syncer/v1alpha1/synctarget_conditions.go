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
	// accepted (KubeconfigInvalid), the syncer was stopped (Stopped), or it was
	// cut off and removes what moved away (Stale).
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
	// True: all are, as far as both sides describe them (Compatible).
	// False: some are not (Incompatible; the message names them). A type that
	// only one side can have is not synced. One whose fields or bounds differ is
	// synced; the message names each field that a side drops, and each bound by
	// which it refuses a value. The others are synced all the same.
	// Unknown: types were not compared yet (Pending).
	SyncTargetConditionTypesCompatible SyncTargetConditionType = "TypesCompatible"

	// SyncTargetConditionDeletionsHeld says whether deletions wait for a person.
	//
	// True: so many objects would go at once that the syncer stopped and asks
	// (CapReached), or origins are gone that the syncer did not see go, as after
	// a restore of the upstream from a backup (OriginsGone; the message names
	// them and what decides).
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
	// SyncTargetReasonOriginsGone: objects in the cluster have lost their
	// origin, and nothing shows that it was deleted.
	SyncTargetReasonOriginsGone SyncTargetConditionReason = "OriginsGone"
	// SyncTargetReasonWithinCap: no deletion waits.
	SyncTargetReasonWithinCap SyncTargetConditionReason = "WithinCap"
)

// Of what is said only where it applies.
const (
	// SyncTargetConditionInstalled says whether the syncer runs inside the
	// cluster, where it is installed there for the SyncTarget.
	//
	// True: it does (Installed).
	// False: it does not yet (Progressing), something else has its place
	// (Foreign), the cluster does not take it (Refused), or it does not answer
	// (Unreachable). Of a SyncTarget that is being deleted: it is still there
	// (Uninstalling).
	SyncTargetConditionInstalled SyncTargetConditionType = "Installed"

	// SyncTargetConditionTypesDefined says whether the types that are kept in
	// step are defined so that both sides accept the same objects.
	//
	// True: all are (Compatible).
	// False: some are not (Incompatible; the message names them). The others
	// are synced all the same.
	// Unknown: not every side has answered (Pending).
	SyncTargetConditionTypesDefined SyncTargetConditionType = "TypesDefined"

	// SyncTargetConditionObjectsRefused says whether objects that are labeled
	// for the SyncTarget are refused: they would give their authors power over
	// the cluster, or mean something in their own cluster only.
	//
	// True: some are (NotPermitted; the message counts and names them).
	// False: none is any longer (NothingRefused).
	SyncTargetConditionObjectsRefused SyncTargetConditionType = "ObjectsRefused"

	// SyncTargetConditionObjectsUnsynced says whether objects are labeled for
	// the SyncTarget whose type is not synced, as far as the syncer may list
	// them.
	//
	// True: some are (TypeNotSynced; the message counts and names them, and says
	// what keeps the type from being synced).
	// False: none is any longer (NothingUnsynced).
	SyncTargetConditionObjectsUnsynced SyncTargetConditionType = "ObjectsUnsynced"

	// SyncTargetReasonTypeNotSynced: objects ask for a type that is not synced.
	SyncTargetReasonTypeNotSynced SyncTargetConditionReason = "TypeNotSynced"
	// SyncTargetReasonNothingUnsynced: no object does any longer.
	SyncTargetReasonNothingUnsynced SyncTargetConditionReason = "NothingUnsynced"
	// SyncTargetConditionAnotherSyncer says whether two syncers work for the
	// SyncTarget, or meet in its cluster.
	//
	// True: a syncer noticed another one (Noticed; the message says by what, and
	// which of the two it is).
	// False: there was no sign of one for a while (NotNoticed).
	SyncTargetConditionAnotherSyncer SyncTargetConditionType = "AnotherSyncer"

	// SyncTargetReasonNoticed: a syncer noticed another one.
	SyncTargetReasonNoticed SyncTargetConditionReason = "Noticed"
	// SyncTargetReasonNotNoticed: no syncer notices another one any longer.
	SyncTargetReasonNotNoticed SyncTargetConditionReason = "NotNoticed"
	// SyncTargetReasonNotPermitted: objects are refused.
	SyncTargetReasonNotPermitted SyncTargetConditionReason = "NotPermitted"
	// SyncTargetReasonNothingRefused: no object is refused.
	SyncTargetReasonNothingRefused SyncTargetConditionReason = "NothingRefused"
	// SyncTargetReasonInstalled: the syncer runs inside the cluster.
	SyncTargetReasonInstalled SyncTargetConditionReason = "Installed"
	// SyncTargetReasonProgressing: it was installed and does not run yet.
	SyncTargetReasonProgressing SyncTargetConditionReason = "Progressing"
	// SyncTargetReasonForeign: something that is not ours has its place.
	SyncTargetReasonForeign SyncTargetConditionReason = "Foreign"
	// SyncTargetReasonRefused: the cluster does not take its manifests.
	SyncTargetReasonRefused SyncTargetConditionReason = "Refused"
	// SyncTargetReasonUninstalling: it is being removed.
	SyncTargetReasonUninstalling SyncTargetConditionReason = "Uninstalling"
	// SyncTargetReasonSilent: a syncer that runs elsewhere has not said for a
	// while that it is alive.
	SyncTargetReasonSilent SyncTargetConditionReason = "Silent"
	// SyncTargetReasonStale: the syncer was cut off for so long that workloads
	// may have moved away. It removes those before it starts anything.
	SyncTargetReasonStale SyncTargetConditionReason = "Stale"
)

// AbandonAnnotation, with the value "true", releases a SyncTarget that is being
// deleted although the syncer could not be removed from its cluster. A person
// sets it who knows that the cluster will not answer again.
const AbandonAnnotation = "syncer.atoll.dev/abandon"
