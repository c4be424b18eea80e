// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/region"
)

// Observer has functions that the loops of this package call on events. A nil Observer and nil
// fields are valid. The loops call these functions synchronously without a lock held, possibly from
// many goroutines, so the functions must return quickly.
type Observer struct {
	// Repaired is called after a Controller has restored an Account's objects in a peer, or
	// failed to.
	Repaired func(ctx context.Context, e RepairEvent)
	// Replicated is called after each operation of a Replicator.
	Replicated func(ctx context.Context, e ReplicateEvent)
	// Ready is called after a write of a status that gave the condition Ready a new status or
	// reason.
	Ready func(ctx context.Context, e ReadyEvent)
	// Removed is called after every peer has confirmed that nothing of a central object is left.
	Removed func(ctx context.Context, e RemoveEvent)
	// Changed is called when the Presence of an object has changed.
	Changed func(ctx context.Context, p Presence)
	// Orphaned is called when a peer has an object whose central object is missing. The Replicator
	// leaves the object alone.
	Orphaned func(ctx context.Context, e OrphanEvent)
}

// RepairEvent is one repair of an Account in one peer.
type RepairEvent struct {
	Peer    region.PeerName
	Account string
	UID     types.UID // of the Account in the peer
	// Drifted is true if the Account's status was Ready before the repair, so that another client
	// has changed or deleted the Account's objects. Otherwise the objects were not complete yet, or
	// the peer is Quarantined and its Roles and RoleBindings are deleted.
	Drifted bool
	Err     error
}

// Object names an object in one API server.
type Object struct {
	APIVersion, Kind string
	types.NamespacedName
	UID types.UID
}

// ReadyEvent is a change of the condition Ready of a central object.
type ReadyEvent struct {
	Object          Object
	Before, Status  metav1.ConditionStatus // Before is empty if there was no condition
	Reason, Message string
}

// RemoveEvent reports that a central object is gone from all peers.
type RemoveEvent struct {
	Object Object
}

// ReplicateEvent is one operation on all peers.
type ReplicateEvent struct {
	Kind   schema.GroupKind
	Key    types.NamespacedName
	Action string // "add", "update", "adopt" or "remove"
	Err    error
}

// OrphanEvent is an object in a peer without its central object.
type OrphanEvent struct {
	Kind   schema.GroupKind
	Key    types.NamespacedName
	Peer   region.PeerName
	Origin types.UID // UID of the central object that the object in Peer was made for
	Object Object    // the object in Peer
}

func (o *Observer) repaired(ctx context.Context, e RepairEvent) {
	if o != nil && o.Repaired != nil {
		o.Repaired(ctx, e)
	}
}

func (o *Observer) replicated(ctx context.Context, e ReplicateEvent) {
	if o != nil && o.Replicated != nil {
		o.Replicated(ctx, e)
	}
}

func (o *Observer) ready(ctx context.Context, e ReadyEvent) {
	if o != nil && o.Ready != nil {
		o.Ready(ctx, e)
	}
}

func (o *Observer) removed(ctx context.Context, e RemoveEvent) {
	if o != nil && o.Removed != nil {
		o.Removed(ctx, e)
	}
}

func (o *Observer) changed(ctx context.Context, p Presence) {
	if o != nil && o.Changed != nil {
		o.Changed(ctx, p)
	}
}

func (o *Observer) orphaned(ctx context.Context, e OrphanEvent) {
	if o != nil && o.Orphaned != nil {
		o.Orphaned(ctx, e)
	}
}
