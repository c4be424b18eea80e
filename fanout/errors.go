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
	// ErrAborted says that an operation ended without effect: nothing of it
	// is or will be in force. What an unreachable peer may still hold is dead
	// and will be swept.
	ErrAborted = errors.New("aborted: nothing is in effect")

	// ErrEnded says that an operation is not in effect now and never will be
	// again, but may have been for a while: its commit may have been applied
	// before somebody removed the object. If errors.Is says ErrReturned too, the
	// primary's peer was restored since, and what was in effect there is unknown.
	ErrEnded = errors.New("ended: not in effect now, perhaps was for a while")

	// ErrNotFound says that no peer holds a committed object of that name.
	ErrNotFound = errors.New("no peer holds it")

	// ErrMembership says that the configured peers and the PeerSets of the
	// peers do not agree. The error that wraps it names the difference.
	ErrMembership = errors.New("configured peers and PeerSet differ")

	// ErrWrongPeer says that a peer's credentials lead to another cluster than the
	// one that the ring knows under its name: a *WrongPeerError says in what it
	// differs. It wraps ErrMembership.
	ErrWrongPeer = fmt.Errorf("%w: credentials lead to another peer", ErrMembership)

	// ErrOtherRing says that a peer belongs to another ring than the other peers.
	// The error that wraps it names the peer and both rings. It wraps ErrWrongPeer.
	ErrOtherRing = fmt.Errorf("%w of another ring", ErrWrongPeer)

	// ErrReturned says that a peer's store was restored from an older state. A
	// *ReturnedError wraps it.
	ErrReturned = errors.New("the peer was restored from an older state")

	// ErrOtherLog says that the log has open operations of another ring. Nothing of it
	// is settled, and nothing is begun in it.
	ErrOtherLog = errors.New("the log belongs to another ring")

	// ErrNoOwner says that the object's namespace belongs to no Active object
	// of the kind that it must be Within, such as an Account.
	ErrNoOwner = errors.New("its namespace has no active owner")

	// ErrUnknownKind says that the Coordinator's Options.Kinds do not list the
	// object's kind.
	ErrUnknownKind = errors.New("kind is not in Options.Kinds")
)

// HeldError says that the name belongs to another. errors.As finds it. One that
// was applied without a claim, whose Operation is empty, can be adopted: Adopt.
type HeldError struct {
	Kind      schema.GroupKind
	Key       types.NamespacedName
	Holder    region.PeerName // where the owner's primary is
	UID       types.UID
	Operation string // empty for an object that was applied without a claim
	Stage     string // the primary's stage; empty without a claim
	Since     time.Time
	// Coordinator is who took the name; empty without a claim.
	Coordinator string
	// Lost, unless empty, is the peer where the object of that UID was committed and
	// is missing: what stands in Holder proves it. The peer was restored from an older
	// state, or somebody took our finalizer from the object.
	Lost region.PeerName
}

// Error names the object, who holds it, where and since when, and what to do.
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
	switch {
	case e.Lost != "":
		fmt.Fprintf(&b, ", for the object that was committed in %[1]s and is missing there (UID %[2]s): bring the peer back (atollctl peer comeback %[1]s), or release the loss (%[3]s)", e.Lost, e.UID, releaseOf(e.Kind.Kind, e.Key))
	case e.Operation == "":
		b.WriteString(": adopt it, delete it there, or choose another name")
	case e.Stage == "Reserved":
		b.WriteString(": it is not committed: try again when that operation has ended")
	case e.Stage == "Removing":
		b.WriteString(": it is being removed: try again when it is gone")
	default:
		b.WriteString(": remove it first, or choose another name")
	}
	return b.String()
}

// ConflictError says that an Account, or another object that exists everywhere,
// got another revision than the one that an update was based on.
type ConflictError struct {
	Kind     schema.GroupKind
	Key      types.NamespacedName
	Revision int64 // the revision now
}

// Error names the object and its revision now.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("%s %s was changed by another operation and is at revision %d: read it again and repeat the update",
		e.Kind.Kind, keyString(e.Key), e.Revision)
}

// Occupant is an object that keeps its namespace's owner from being removed.
type Occupant struct {
	Peer     region.PeerName
	Resource schema.GroupResource
	Key      types.NamespacedName
	Stage    string // empty without a claim
}

// OccupiedError says that an object was not removed because others live in its
// namespace. It lists them.
type OccupiedError struct {
	Kind      schema.GroupKind
	Key       types.NamespacedName
	Occupants []Occupant
	// Committed says that the removal was committed before the occupants
	// showed: it goes on once they are removed.
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
		state, do = "is being removed and waits", "remove them, and it goes on"
	}
	return fmt.Sprintf("%s %s %s: its namespace still holds %s: %s", e.Kind.Kind, keyString(e.Key), state, strings.Join(names, ", "), do)
}

// InDoubtError says that the outcome cannot be known yet. The operation stays in
// the log; Settles says what will settle it.
type InDoubtError struct {
	Operation string
	Peers     []region.PeerName // that did not answer
	Settles   string
	Err       error
}

// Error names the operation, the silent peers and what will settle it.
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

// Unwrap returns why it is in doubt, such as the last failure of a request to
// one of the peers.
func (e *InDoubtError) Unwrap() error { return e.Err }

func keyString(key types.NamespacedName) string {
	if key.Namespace == "" {
		return key.Name
	}
	return key.Namespace + "/" + key.Name
}
