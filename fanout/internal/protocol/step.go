// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// step names the reply that a task waits for. Each task handles the steps that it sends.
type step string

// The steps, each with the request whose reply it waits for.
const (
	stepStart         step = ""               // the task has not begun
	stepAccept        step = "accept"         // write of the committed edit
	stepActivate      step = "activate"       // notice to the kind
	stepAgain         step = "again"          // pause, then begin again
	stepAnchor        step = "anchor"         // read of the anchor's PeerSet
	stepBeat          step = "beat"           // write of the heartbeat of an operation, or read before the write of the heartbeat of a change
	stepBeaten        step = "beaten"         // write of the heartbeat of a change
	stepBegin         step = "begin"          // new entry of the log
	stepBelieved      step = "believed"       // read of the PeerSet of the primary's peer, which shows whether that peer is a full member
	stepBound         step = "bound"          // write that binds a guard
	stepConfirm       step = "confirm"        // second read of an absent object
	stepCount         step = "count"          // count of the requested removals
	stepCreate        step = "create"         // create of the object
	stepDecided       step = "decided"        // read of the primary that a record names
	stepDelete        step = "delete"         // delete of the object
	stepFence         step = "fence"          // delete or write that settles the object of a rival
	stepFinish        step = "finish"         // write that makes the elected replica home
	stepFinished      step = "finished"       // end of the change that holds the slot
	stepFollow        step = "follow"         // read of the home that a moved primary names
	stepHolder        step = "holder"         // read of the primary of a guard
	stepHome          step = "home"           // read of the home that an object names
	stepJudge         step = "judge"          // read of the primary of a secondary
	stepLead          step = "lead"           // read of the object that names a home
	stepList          step = "list"           // list of the namespace
	stepLog           step = "log"            // write of the log
	stepMember        step = "member"         // read of the PeerSet of a peer without the object
	stepMembers       step = "members"        // read of the membership in the primary's peer
	stepMend          step = "mend"           // write that repairs the object
	stepMet           step = "met"            // second read of the listed object
	stepPause         step = "pause"          // pause, then end
	stepPrimary       step = "primary"        // read of the primary
	stepPrimaryRecord step = "primary record" // read of the record of the primary's claim
	stepPut           step = "put"            // conditional write of the object
	stepReactivate    step = "reactivate"     // pause, then notify the kind again
	stepRead          step = "read"           // read of the object
	stepRecord        step = "record"         // read of the record of a claim
	stepRelease       step = "release"        // notice to the kind before the delete
	stepRelist        step = "relist"         // pause, then list again
	stepRemove        step = "remove"         // delete of a dead object
	stepRenew         step = "renew"          // write that voids deletes decided on an earlier version of a secondary
	stepReplica       step = "replica"        // read of the replica
	stepReread        step = "reread"         // pause, then read again
	stepReset         step = "reset"          // pause, then read the PeerSet again
	stepRest          step = "rest"           // pause before a peer is listed again
	stepRetry         step = "retry"          // pause, then repeat the first step
	stepRival         step = "rival"          // read of the primary of a rival secondary
	stepRivalRecord   step = "rival record"   // read of the record of a rival claim
	stepScrub         step = "scrub"          // write that removes the payload of a guard
	stepSet           step = "set"            // read of a PeerSet
	stepSettle        step = "settle"         // settlement of the reservations in the namespace
	stepStray         step = "stray"          // read of the PeerSet of the secondary's own peer
	stepSub           step = "sub"            // operation on a listed object
	stepSurvey        step = "survey"         // list of all objects in the peer
	stepTakeBack      step = "take back"      // write that makes a yielded home home again
	stepTakeDown      step = "take down"      // delete of the operation's own reservation
	stepTarget        step = "target"         // read of the object in the target, because the operation's record is gone
	stepTargetAgain   step = "target again"   // pause, then read the target again
	stepUnchanged     step = "unchanged"      // second read of evidence whose primary is missing
	stepUndid         step = "undid"          // read of the replica after the delete of stepUndo
	stepUndo          step = "undo"           // delete of a replica that must not exist
	stepVerify        step = "verify"         // read of the primary after its guard was written
	stepVoid          step = "void"           // write that voids the requests that may be in flight to the object
	stepVouch         step = "vouch"          // read of the PeerSet of the replica's peer
	stepWait          step = "wait"           // pause between two heartbeats
	stepWithdraw      step = "withdraw"       // write that ends a record, or delete of a guard that came too late
	stepWitness       step = "witness"        // read of the object, or PeerSet, in a third peer
	stepWitnessMember step = "witness member" // read of the PeerSet of a third peer
)
