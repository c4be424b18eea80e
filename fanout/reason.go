// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
	"slices"

	"github.com/atoll-dev/atoll/region"
)

// Reason is why a call of this package failed, as the reason of a condition. Its values do not change between releases.
// Message has the text for the same condition.
type Reason string

// The reasons that ReasonOf returns. If an error has several, ReasonOf returns the one that is first in this list.
const (
	// ReasonInDoubt: the outcome is not known yet. See InDoubtError.
	ReasonInDoubt Reason = "InDoubt"
	// ReasonOtherLog: the log belongs to another ring. See ErrOtherLog.
	ReasonOtherLog Reason = "OtherLog"
	// ReasonWrongPeer: a peer's credentials lead to another cluster, or two peers' credentials to the same one. See
	// ErrWrongPeer and region.ErrSameCluster.
	ReasonWrongPeer Reason = "WrongPeer"
	// ReasonPeerRestored: a peer was restored from an older state. See ErrReturned.
	ReasonPeerRestored Reason = "PeerRestored"
	// ReasonObjectLost: the peer that owns the name has lost the object. See HeldError.Lost.
	ReasonObjectLost Reason = "ObjectLost"
	// ReasonNameTaken: another object has the name. See HeldError.
	ReasonNameTaken Reason = "NameTaken"
	// ReasonOccupied: the namespace of the object is not empty. See OccupiedError.
	ReasonOccupied Reason = "Occupied"
	// ReasonConflict: the object was changed by another write. See ConflictError.
	ReasonConflict Reason = "Conflict"
	// ReasonNoOwner: the namespace has no Active owner. See ErrNoOwner.
	ReasonNoOwner Reason = "NoOwner"
	// ReasonBlocked: a peer cannot join or leave because of its objects. See BlockedError.
	ReasonBlocked Reason = "Blocked"
	// ReasonGuardRejected: a peer rejects the guards of the kind. See GuardError.
	ReasonGuardRejected Reason = "GuardRejected"
	// ReasonMembership: the configured peers are not the members. See ErrMembership.
	ReasonMembership Reason = "MembershipDiffers"
	// ReasonUnknownPeer: a peer is not configured. See region.ErrUnknownPeer and region.ErrNoPeers.
	ReasonUnknownPeer Reason = "UnknownPeer"
	// ReasonUnknownKind: Options.Kinds does not list the kind. See ErrUnknownKind.
	ReasonUnknownKind Reason = "UnknownKind"
	// ReasonUnknownOperation: neither the log nor a peer has the operation. See ErrUnknownOperation.
	ReasonUnknownOperation Reason = "UnknownOperation"
	// ReasonNotHeld: no removal of the object waits for a release. See ErrNotHeld.
	ReasonNotHeld Reason = "NotHeld"
	// ReasonNotFound: no peer has the object. See ErrNotFound.
	ReasonNotFound Reason = "NotFound"
	// ReasonCommitted: the operation cannot be aborted. See ErrCommitted.
	ReasonCommitted Reason = "Committed"
	// ReasonForeignOperation: another coordinator owns the operation. See ForeignError.
	ReasonForeignOperation Reason = "ForeignOperation"
	// ReasonPeerRejected: the API server of a peer rejected a request, for example because a right is missing, the
	// object is invalid, or an admission webhook denied or failed.
	ReasonPeerRejected Reason = "PeerRejected"
	// ReasonFinalizers: finalizers of other controllers block a deletion. See FinalizerError.
	ReasonFinalizers Reason = "Finalizers"
	// ReasonPeerUnreachable: a peer did not answer.
	ReasonPeerUnreachable Reason = "PeerUnreachable"
	// ReasonTimeout: the deadline of the call passed, and no peer is known to be the cause.
	ReasonTimeout Reason = "Timeout"
	// ReasonCanceled: the caller canceled the call.
	ReasonCanceled Reason = "Canceled"
	// ReasonEnded: the operation is not in effect, but perhaps was. See ErrEnded.
	ReasonEnded Reason = "Ended"
	// ReasonAborted: the operation ended without effect. See ErrAborted.
	ReasonAborted Reason = "Aborted"
	// ReasonFailed: any other error, such as one about an argument or the log.
	ReasonFailed Reason = "Failed"
)

// ReasonOf returns why a call of this package failed; empty if err is nil. err may be wrapped or joined with others, and
// may be the error of Operation.Peers. Repeated attempts that fail for the same reason have one Reason. ReasonOf does no
// I/O.
func ReasonOf(err error) Reason {
	if err == nil {
		return ""
	}
	t := treeOf(err, "")
	return t.class().reason
}

// class is how errors of one Reason are recognized, and what Message returns for them.
type class struct {
	reason  Reason
	applies func(tree) bool
	texts   func(tree) []string // in any order, perhaps with repetitions
}

// class returns the first class that applies.
func (t tree) class() class {
	all := classes()
	i := slices.IndexFunc(all, func(c class) bool { return c.applies(t) })
	return all[i] // the last class applies to all errors
}

// classes returns all classes, in their order of precedence.
func classes() []class {
	return []class{
		typedClass(ReasonInDoubt, (*InDoubtError).stable),
		sentinels(ReasonOtherLog, ErrOtherLog),
		sentinels(ReasonWrongPeer, ErrWrongPeer, ErrOtherRing, region.ErrOtherCluster, region.ErrSameCluster),
		{ReasonPeerRestored, func(t tree) bool { return t.is(ErrReturned) }, textsOfRestored},
		{ReasonObjectLost, func(t tree) bool { return slices.ContainsFunc(typed[*HeldError](t), (*HeldError).isLost) }, textsOf((*HeldError).stable)},
		typedClass(ReasonNameTaken, (*HeldError).stable),
		typedClass(ReasonOccupied, (*OccupiedError).Error),
		typedClass(ReasonConflict, (*ConflictError).stable),
		{ReasonNoOwner, func(t tree) bool { return t.is(ErrNoOwner) }, textsOfNoOwner},
		typedClass(ReasonBlocked, (*BlockedError).stable),
		typedClass(ReasonGuardRejected, (*GuardError).Error),
		sentinels(ReasonMembership, ErrMembership),
		sentinels(ReasonUnknownPeer, region.ErrUnknownPeer, region.ErrNoPeers),
		sentinels(ReasonUnknownKind, ErrUnknownKind),
		sentinels(ReasonUnknownOperation, ErrUnknownOperation),
		sentinels(ReasonNotHeld, ErrNotHeld),
		sentinels(ReasonNotFound, ErrNotFound),
		sentinels(ReasonCommitted, ErrCommitted),
		typedClass(ReasonForeignOperation, (*ForeignError).Error),
		{ReasonPeerRejected, func(t tree) bool { return troubled(t, rejecting) }, textsOfPeers},
		typedClass(ReasonFinalizers, (*FinalizerError).Error),
		{ReasonPeerUnreachable, func(t tree) bool { return troubled(t, silent, unsafe) || t.is(region.ErrUnavailable) }, textsOfPeers},
		{ReasonTimeout, func(t tree) bool { return t.is(context.DeadlineExceeded) }, always("the time ended before the commit")},
		{ReasonCanceled, func(t tree) bool { return t.is(context.Canceled) }, always("the caller canceled it before the commit")},
		{ReasonEnded, func(t tree) bool { return t.is(ErrEnded) }, textsOfEnd},
		{ReasonAborted, func(t tree) bool { return t.is(ErrAborted) }, textsOfEnd},
		{ReasonFailed, func(tree) bool { return true }, tree.leaves},
	}
}

// typedClass is the class of the errors of one type.
func typedClass[E error](r Reason, text func(E) string) class {
	return class{r, func(t tree) bool { return len(typed[E](t)) > 0 }, textsOf(text)}
}

// sentinels is the class of the errors that wrap one of the sentinels.
func sentinels(r Reason, errs ...error) class {
	return class{r, func(t tree) bool { return t.is(errs...) }, func(t tree) []string { return t.around(errs) }}
}
