// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// SyncTargetConditionType is the type of a condition of a SyncTarget.
type SyncTargetConditionType string

// SyncTargetConditionReason is the reason of such a condition.
type SyncTargetConditionReason string

const (
	// SyncTargetConditionReady reports whether workloads may be placed in the
	// cluster. Treat it as Unknown if the heartbeat of the SyncTarget does not
	// advance.
	//
	//   - True: the syncer works (reason Syncing).
	//   - False: the cluster does not answer (Unreachable), its kubeconfig is
	//     not accepted (KubeconfigInvalid), the syncer was stopped (Stopped),
	//     or it was cut off for long and is removing workloads that were moved
	//     meanwhile (Stale).
	//   - Unknown: nothing was observed yet (Pending).
	SyncTargetConditionReady SyncTargetConditionType = "Ready"

	// SyncTargetConditionReachable reports whether the cluster answers.
	//
	//   - True: it does (Answered).
	//   - False: it does not (Unreachable).
	//   - Unknown: it was not asked yet (Pending).
	SyncTargetConditionReachable SyncTargetConditionType = "Reachable"

	// SyncTargetConditionTypesCompatible reports whether both sides serve all
	// types to be synced with the same schema.
	//
	//   - True: they do, as far as both sides describe the types (Compatible).
	//   - False: some types differ (Incompatible; the message names them). A
	//     type that only one side can have is not synced. A type whose fields
	//     or bounds differ is synced; the message names each field that a side
	//     drops, and each bound by which it rejects a value. All other types
	//     are synced.
	//   - Unknown: types were not compared yet (Pending).
	SyncTargetConditionTypesCompatible SyncTargetConditionType = "TypesCompatible"

	// SyncTargetConditionDeletionsHeld reports whether deletions wait for a
	// person to decide.
	//
	//   - True: the syncer stopped because so many objects would be deleted at
	//     once (CapReached), or because upstream objects are missing whose
	//     deletion the syncer did not observe, as after a restore of the
	//     upstream from a backup (OriginsGone; the message names them and how
	//     to decide).
	//   - False: no deletion waits (WithinCap).
	SyncTargetConditionDeletionsHeld SyncTargetConditionType = "DeletionsHeld"
)

const (
	// SyncTargetReasonSyncing: the syncer works.
	SyncTargetReasonSyncing SyncTargetConditionReason = "Syncing"
	// SyncTargetReasonStopped: the syncer was shut down gracefully.
	SyncTargetReasonStopped SyncTargetConditionReason = "Stopped"
	// SyncTargetReasonPending: nothing was observed yet.
	SyncTargetReasonPending SyncTargetConditionReason = "Pending"
	// SyncTargetReasonAnswered: the cluster answers.
	SyncTargetReasonAnswered SyncTargetConditionReason = "Answered"
	// SyncTargetReasonUnreachable: the cluster does not answer.
	SyncTargetReasonUnreachable SyncTargetConditionReason = "Unreachable"
	// SyncTargetReasonKubeconfigInvalid: the kubeconfig is not accepted.
	SyncTargetReasonKubeconfigInvalid SyncTargetConditionReason = "KubeconfigInvalid"
	// SyncTargetReasonCompatible: both sides serve all types with the same
	// schema.
	SyncTargetReasonCompatible SyncTargetConditionReason = "Compatible"
	// SyncTargetReasonIncompatible: the schemas of some types differ.
	SyncTargetReasonIncompatible SyncTargetConditionReason = "Incompatible"
	// SyncTargetReasonCapReached: deletions wait for a person to decide.
	SyncTargetReasonCapReached SyncTargetConditionReason = "CapReached"
	// SyncTargetReasonOriginsGone: downstream objects have lost their upstream
	// objects, and nothing shows that those were deleted.
	SyncTargetReasonOriginsGone SyncTargetConditionReason = "OriginsGone"
	// SyncTargetReasonWithinCap: no deletion waits.
	SyncTargetReasonWithinCap SyncTargetConditionReason = "WithinCap"
)

// These conditions are set only where they apply.
const (
	// SyncTargetConditionInstalled reports whether the syncer runs inside the
	// cluster, if it is installed there for the SyncTarget.
	//
	//   - True: it does (Installed).
	//   - False: it does not yet (Progressing), an object of another manager
	//     has the name of one of its objects (Foreign), the cluster rejects its
	//     manifests (Refused), or the cluster does not answer (Unreachable).
	//     While the SyncTarget is being deleted: the syncer is still installed
	//     (Uninstalling).
	SyncTargetConditionInstalled SyncTargetConditionType = "Installed"

	// SyncTargetConditionTypesDefined reports whether the types to be kept in
	// step are defined so that both sides accept the same objects.
	//
	//   - True: all are (Compatible).
	//   - False: some are not (Incompatible; the message names them). All other
	//     types are synced.
	//   - Unknown: not every side has answered (Pending).
	SyncTargetConditionTypesDefined SyncTargetConditionType = "TypesDefined"

	// SyncTargetConditionObjectsRefused reports whether the syncer rejects
	// objects that are labeled for the SyncTarget: they would give their
	// authors power over the cluster, or have a meaning in their own cluster
	// only.
	//
	//   - True: it rejects some (NotPermitted; the message counts and names
	//     them).
	//   - False: it no longer rejects any (NothingRefused).
	SyncTargetConditionObjectsRefused SyncTargetConditionType = "ObjectsRefused"

	// SyncTargetConditionObjectsUnsynced reports whether objects are labeled
	// for the SyncTarget whose type is not synced, as far as the syncer may
	// list them.
	//
	//   - True: some are (TypeNotSynced; the message counts and names them,
	//     with the reason why the type is not synced).
	//   - False: there are no such objects any longer (NothingUnsynced).
	SyncTargetConditionObjectsUnsynced SyncTargetConditionType = "ObjectsUnsynced"

	// SyncTargetReasonTypeNotSynced: objects are labeled whose type is not
	// synced.
	SyncTargetReasonTypeNotSynced SyncTargetConditionReason = "TypeNotSynced"
	// SyncTargetReasonNothingUnsynced: no such objects are left.
	SyncTargetReasonNothingUnsynced SyncTargetConditionReason = "NothingUnsynced"
	// SyncTargetConditionAnotherSyncer reports whether two syncers work for the
	// SyncTarget, or write to the same objects in its cluster.
	//
	//   - True: a syncer noticed another one (Noticed; the message names the
	//     evidence and the instance that noticed it).
	//   - False: for a while there was no sign of another one (NotNoticed).
	SyncTargetConditionAnotherSyncer SyncTargetConditionType = "AnotherSyncer"

	// SyncTargetReasonNoticed: a syncer noticed another one.
	SyncTargetReasonNoticed SyncTargetConditionReason = "Noticed"
	// SyncTargetReasonNotNoticed: no syncer notices another one any longer.
	SyncTargetReasonNotNoticed SyncTargetConditionReason = "NotNoticed"
	// SyncTargetReasonNotPermitted: the syncer rejects objects.
	SyncTargetReasonNotPermitted SyncTargetConditionReason = "NotPermitted"
	// SyncTargetReasonNothingRefused: the syncer rejects no object.
	SyncTargetReasonNothingRefused SyncTargetConditionReason = "NothingRefused"
	// SyncTargetReasonInstalled: the syncer runs inside the cluster.
	SyncTargetReasonInstalled SyncTargetConditionReason = "Installed"
	// SyncTargetReasonProgressing: the syncer is installed and does not run
	// yet.
	SyncTargetReasonProgressing SyncTargetConditionReason = "Progressing"
	// SyncTargetReasonForeign: an object of another manager has the name of one
	// of the syncer's objects.
	SyncTargetReasonForeign SyncTargetConditionReason = "Foreign"
	// SyncTargetReasonRefused: the cluster rejects the syncer's manifests.
	SyncTargetReasonRefused SyncTargetConditionReason = "Refused"
	// SyncTargetReasonUninstalling: the syncer is being removed.
	SyncTargetReasonUninstalling SyncTargetConditionReason = "Uninstalling"
	// SyncTargetReasonSilent: a syncer that runs elsewhere has not written its
	// heartbeat for a while.
	SyncTargetReasonSilent SyncTargetConditionReason = "Silent"
	// SyncTargetReasonStale: the syncer was cut off for so long that workloads
	// may have been moved to other clusters. It removes those before it starts
	// any.
	SyncTargetReasonStale SyncTargetConditionReason = "Stale"
)

// AbandonAnnotation, with the value "true", releases a SyncTarget that is being
// deleted although the syncer could not be removed from its cluster. A person
// sets it if the cluster will never answer again.
const AbandonAnnotation = "syncer.atoll.dev/abandon"
