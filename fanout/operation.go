// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/region"
)

// State is the state of an operation.
type State string

const (
	// Reserving: the operation holds the name in some peers and is not committed. Only three
	// results can have this state: an Explanation, a Trace, and an Operation that Abort or Resume
	// returns with an error.
	Reserving State = "Reserving"
	// Committed: the operation is in effect and cannot be undone, but not every peer has confirmed it
	// yet. Recovery or a sweep rolls it forward.
	Committed State = "Committed"
	// Done: the operation is committed, and every peer has confirmed it.
	Done State = "Done"
	// Aborted: the operation never took effect and never will.
	Aborted State = "Aborted"
	// Ended: the operation is not in effect now, but may have been for a while.
	Ended State = "Ended"
	// InDoubt: it is not known yet whether the operation took effect.
	InDoubt State = "InDoubt"
)

// PeerState is the result of an operation in one peer.
type PeerState string

const (
	// PeerPrimary: the peer holds the object itself.
	PeerPrimary PeerState = "Primary"
	// PeerGuard: the peer holds a guard of the name.
	PeerGuard PeerState = "Guard"
	// PeerReplica: the peer holds a replica in effect.
	PeerReplica PeerState = "Replica"
	// PeerGone: the peer holds no object of the operation.
	PeerGone PeerState = "Gone"
	// PeerUnchanged: the operation did not change this peer.
	PeerUnchanged PeerState = "Unchanged"
	// PeerPending: the peer has not confirmed the operation yet, or the operation is in doubt. For
	// an add without effect: the peer did not answer or is no longer configured, so a reservation
	// that holds no name may be left there. The next Recover or sweep that reaches the peer, or the
	// peer's next join, deletes that reservation.
	PeerPending PeerState = "Pending"
)

// Operation is the state of one operation when the call returned it.
type Operation struct {
	// ID names the operation in the log and in errors. Claims have it, too, except the claims of an
	// adoption, and those of a request that gave way to an older one and was tried again.
	ID string
	// State is the state of the operation.
	State State
	// Primary is the peer of the primary.
	Primary region.PeerName
	// UID is the UID of the primary, by which Remove can require that it removes this object and no
	// later one of its name. An audit names a lost object by it. It is empty if no primary is
	// known, or if the operation was logged by a version that did not store it.
	UID types.UID
	// Object is the primary as its API server last returned it to the operation, with claim, UID and
	// resourceVersion: an update or a status update can begin with it, and Into makes it a typed
	// object. Kind.Activated may have changed it since, as it writes the status of Accounts. It is nil for a removal, for an
	// operation that is not committed, and if the result comes from the log. The caller may change
	// it.
	Object *unstructured.Unstructured
	// Revision is the number of the revision that the operation committed, for kinds that exist
	// everywhere.
	Revision int64
	// Durable reports whether every other member holds evidence of the commit: a guard that is
	// bound to the object, or a replica in effect. If a peer is restored from an older state, a
	// durable commit is not lost without a report. Add of a kind that exists once returns at the
	// commit and makes the operation durable in the background: AddOptions.Durable waits for
	// that, and Observer.Durable reports it.
	Durable bool
	// AlreadyDone is set if an earlier operation had the same effect, so that this operation
	// changed nothing.
	AlreadyDone bool
	// Peers are the results by peer. Err is set for a peer that has not confirmed the operation.
	Peers region.Results[PeerState]
}

// Into replaces obj, a pointer to an object of the kind's Go type, by Operation.Object, so that a typed client can update
// it. The error means that Operation.Object is nil, or has a field that obj cannot hold; then obj is of no use.
func (o *Operation) Into(obj Object) error {
	if o.Object == nil {
		return errors.New("fanout: the operation has no object: read the object from its peer")
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object.Object, obj); err != nil {
		return fmt.Errorf("fanout: convert %s to %T: %w", o.Object.GetKind(), obj, err)
	}
	return nil
}
