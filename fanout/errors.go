// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/region"
)

var (
	// ErrAborted means that an operation ended without effect, for good. Remove the cause that the
	// error names, and repeat the call. Objects of the operation in an unreachable peer hold no
	// name, and a sweep (a check and repair of all peers) deletes them when the peer answers.
	ErrAborted = errors.New("aborted: nothing is in effect")

	// ErrEnded means that an operation is not in effect and never will be again, but may have been
	// in effect for a while, until its object was removed. Check the work that relied on the
	// object, and submit the operation again if it is still wanted. If the error wraps ErrReturned,
	// too, the primary's peer was restored since, and it is unknown whether the operation was in
	// effect there.
	ErrEnded = errors.New("ended: not in effect now, perhaps was for a while")

	// ErrNotFound means that no peer holds a committed object with the requested name and, if the
	// call names a UID, with that UID. Treat a removal as done; add the object before an update.
	ErrNotFound = errors.New("no peer holds it")

	// ErrMembership means that the configured peers and the PeerSets of the peers differ. The error
	// that wraps it names the difference. Configure exactly the peers that the PeerSets list;
	// InitPeers ("atollctl peer init") writes the first PeerSets of a new ring.
	ErrMembership = errors.New("configured peers and PeerSet differ")

	// ErrWrongPeer means that a peer's credentials lead to another cluster than the one that the
	// ring knows under the peer's name. The error that wraps ErrWrongPeer names the difference.
	// Correct the peer's credentials. ErrWrongPeer wraps ErrMembership.
	ErrWrongPeer = fmt.Errorf("%w: credentials lead to another peer", ErrMembership)

	// ErrOtherRing means that a peer belongs to another ring than the other peers. The error that
	// wraps ErrOtherRing names the peer and both rings. Correct the peer's credentials, or remove
	// it from the configuration. ErrOtherRing wraps ErrWrongPeer.
	ErrOtherRing = fmt.Errorf("%w of another ring", ErrWrongPeer)

	// ErrReturned means that a peer's store was restored from an older state. The error that wraps
	// ErrReturned names the peer. Bring the peer back with Comeback ("atollctl peer comeback"),
	// then repeat the call.
	ErrReturned = errors.New("the peer was restored from an older state")

	// ErrOtherLog means that the log has an operation of another ring, or an operation that may be
	// of another ring. If this operation is open, the Coordinator settles no open operation of the
	// log, and begins none. Use the log of this ring, or correct the peers. Use Identity.SignLog
	// only if you know that a log of the first release belongs to this ring.
	ErrOtherLog = errors.New("the log belongs to another ring")

	// ErrNoOwner means that no Active object of the kind in Kind.Within, such as an Account, owns
	// the object's namespace. Add the owner first, and repeat the call.
	ErrNoOwner = errors.New("its namespace has no active owner")

	// ErrUnknownKind means that the Coordinator's Options.Kinds do not list the object's kind. Add
	// the kind to Options.Kinds, or correct the object's apiVersion and kind.
	ErrUnknownKind = errors.New("kind is not in Options.Kinds")
)

// HeldError means that another object has the requested name. errors.As finds it. Wait while Stage
// is Reserved or Removing; otherwise choose another name, or remove that object. If Operation is
// empty, that object was applied without a claim and can be adopted: see Adopt. If Lost is set,
// call Comeback for that peer, or ReleaseRemoval.
type HeldError struct {
	Kind      schema.GroupKind
	Key       types.NamespacedName
	Holder    region.PeerName // peer of the object that holds the name; see also Lost
	UID       types.UID
	Operation string // empty for an object that was applied without a claim
	Stage     string // stage of the object that holds the name; empty without a claim
	Since     time.Time
	// Coordinator is the coordinator that took the name; empty without a claim.
	Coordinator string
	// Lost, unless empty, is the peer where the object with UID was committed and is missing
	// now; the object in Holder proves the commit. Either the peer was restored from an older
	// state, or a person removed the finalizer fanout.atoll.dev/primary from the object.
	Lost region.PeerName

	rivals *rivalry // nil if there is no rivalry
}

// Error names the object, the peer that holds it, the operation and its start, and the remedy.
func (e *HeldError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s is held by peer %s", e.Kind.Kind, keyString(e.Key), e.Holder)
	if e.Operation == "" {
		b.WriteString(" (applied there without a claim)")
	} else {
		fmt.Fprintf(&b, " (%s, operation %s)", e.Stage, e.Operation)
	}
	if !e.Since.IsZero() {
		fmt.Fprintf(&b, " since %s", e.Since.UTC().Format(time.RFC3339))
	}
	if e.Coordinator != "" {
		fmt.Fprintf(&b, ", taken by %s", e.Coordinator)
	}
	b.WriteString(e.remedy())
	return b.String()
}

// remedy returns the end of the text: what a person can do.
func (e *HeldError) remedy() string {
	switch {
	case e.rivals != nil:
		return ": " + e.rivals.text
	case e.Lost != "":
		return fmt.Sprintf(", for the object that was committed in %[1]s and is missing there (UID %[2]s): bring the peer back (atollctl peer comeback %[1]s), or release the loss (%[3]s)", e.Lost, e.UID, releaseOf(e.Kind.Kind, e.Key))
	case e.Operation == "":
		return ": adopt it, delete it there, or choose another name"
	case e.Stage == "Reserved":
		return ": it is not committed: try again when that operation has ended"
	case e.Stage == "Removing":
		return ": it is being removed: try again when it is gone"
	default:
		return ": remove it first, or choose another name"
	}
}

// ConflictError means that an update or a removal was based on a revision or a resourceVersion that
// is no longer the latest. Read the object again, and repeat the call with its new revision.
type ConflictError struct {
	Kind     schema.GroupKind
	Key      types.NamespacedName
	Revision int64 // the latest revision; zero for a kind that exists once
}

// Error names the object and its latest revision.
func (e *ConflictError) Error() string {
	if e.Revision == 0 {
		return fmt.Sprintf("%s %s was changed by another write: read it again and repeat the removal", e.Kind.Kind, keyString(e.Key))
	}
	return fmt.Sprintf("%s %s was changed by another operation and is at revision %d: read it again and repeat the update",
		e.Kind.Kind, keyString(e.Key), e.Revision)
}

// Occupant is an object that keeps its namespace's owner from being removed (OccupiedError), that
// keeps a peer from joining or leaving (BlockedError), or that stays in a peer that has left
// (Change.Left).
type Occupant struct {
	Peer     region.PeerName
	Resource schema.GroupResource
	Key      types.NamespacedName
	Stage    string // empty without a claim
}

// OccupiedError means that the removal of an object was rejected, or waits, because the namespace
// that the object owns holds other objects. Remove the Occupants. Then repeat the removal, unless
// Committed is set: it continues by itself.
type OccupiedError struct {
	Kind      schema.GroupKind
	Key       types.NamespacedName
	Occupants []Occupant
	// Committed is set if the removal was committed before the occupants were found: the removal
	// continues once the occupants are removed.
	Committed bool
}

// Error lists the occupants, one peer after the other.
func (e *OccupiedError) Error() string {
	var names []string
	for _, o := range e.Occupants {
		names = append(names, fmt.Sprintf("%s %s in %s", o.Resource.Resource, keyString(o.Key), o.Peer))
	}
	state, do := "was not removed", "remove them first"
	if e.Committed {
		state, do = "is being removed and waits", "remove them, and it continues"
	}
	return fmt.Sprintf("%s %s %s: its namespace still holds %s: %s", e.Kind.Kind, keyString(e.Key), state, strings.Join(names, ", "), do)
}

// InDoubtError means that the outcome of an operation is not known yet. The operation stays in the
// log; Settles names the event that settles it. Treat the object as neither present nor absent. Ask
// again with Outcome, or repeat the call with the same idempotency key.
type InDoubtError struct {
	Operation string
	Peers     []region.PeerName // peers that did not answer
	Settles   string
	Err       error
}

// Error names the operation, the peers that did not answer and the event that settles it.
func (e *InDoubtError) Error() string {
	peers := make([]string, len(e.Peers))
	for i, p := range e.Peers {
		peers[i] = string(p)
	}
	silent := ""
	if len(peers) > 0 {
		silent = fmt.Sprintf("no answer from %s; ", strings.Join(peers, ", "))
	}
	return fmt.Sprintf("operation %s is in doubt: %s%s: %v", e.Operation, silent, e.Settles, e.Err)
}

// Unwrap returns the cause of the doubt, such as the last failed request to one of the peers.
func (e *InDoubtError) Unwrap() error { return e.Err }

func keyString(key types.NamespacedName) string {
	if key.Namespace == "" {
		return key.Name
	}
	return key.Namespace + "/" + key.Name
}
