// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Observer receives the events of a Syncer. A nil Observer and nil fields are valid. Hooks are called synchronously
// without a lock held, possibly from many goroutines, and must return quickly. Events are structs so that they can
// get more fields.
type Observer struct {
	// Wrote is called after each write that a server accepted.
	Wrote func(ctx context.Context, e WriteEvent)
	// Problem is called when an object gets a problem, when its problem changes, and when its problem is over. It is
	// also called, with the Resource pods and without an Object, when the syncer lacks a right to count pods without a
	// node, and when it can count them again: see Options.Unscheduled.
	Problem func(ctx context.Context, e ProblemEvent)
	// Overruled is called after the syncer has overwritten fields downstream that another client had changed, and that
	// belong to the upstream.
	Overruled func(ctx context.Context, e OverruledEvent)
	// Type is called when the syncer begins or ceases to sync a type.
	Type func(ctx context.Context, e TypeEvent)
	// Another is called when this Syncer notices another Syncer of the same target, and when it has noticed no sign of
	// another Syncer for 10 minutes.
	Another func(ctx context.Context, e AnotherEvent)
	// Capacity is called when the nodes of the downstream cannot be read, and when they can be read again.
	Capacity func(ctx context.Context, e CapacityEvent)
}

// Write is a kind of write.
type Write string

// The kinds of writes.
const (
	WriteFinalizer      Write = "Finalizer"      // upstream: the finalizer was added
	WriteRelease        Write = "Release"        // upstream: the finalizer was removed
	WriteStatus         Write = "Status"         // upstream: the status of the downstream object was written
	WriteFields         Write = "Fields"         // upstream: fields of the spec that belong to the downstream were written, see Rule
	WriteUpsync         Write = "Upsync"         // upstream: an object was created or changed for one that was born downstream
	WriteCondition      Write = "Condition"      // upstream: the condition that reports whether the object is synced was written, see Options.Conditions
	WriteUnscheduled    Write = "Unscheduled"    // upstream: the number of pods without a node was written, see Options.Unscheduled
	WriteNamespace      Write = "Namespace"      // a namespace was created: downstream, or upstream for an object that was born downstream
	WriteCreate         Write = "Create"         // downstream: an object was created
	WriteUpdate         Write = "Update"         // downstream: an object was changed
	WriteDelete         Write = "Delete"         // downstream: an object was deleted
	WriteStatusDown     Write = "StatusDown"     // downstream: the part of the status that belongs to the upstream was written, see Rule
	WriteDeleteUpstream Write = "DeleteUpstream" // upstream: an object was deleted, see DeleteUpstream, Options.Upsync and NamespaceOptions
)

// WriteEvent is a write that was accepted.
type WriteEvent struct {
	Write    Write
	Resource schema.GroupResource
	Object   types.NamespacedName // the upstream key of the object; with WriteNamespace, the name of the namespace
}

// ProblemEvent is a change of an object's problem.
type ProblemEvent struct {
	Resource schema.GroupResource
	Object   types.NamespacedName // the upstream key of the object
	Reason   Reason               // empty: the object has no problem any longer
	Message  string
	// APIVersion, Kind and UID are those of the object upstream. UID is empty if the upstream has no such object, if it
	// is a Namespace, if its type is not synced, or if the object was born downstream.
	APIVersion, Kind string
	UID              types.UID
}

// OverruledEvent lists fields that another client had changed downstream and that the syncer changed back.
type OverruledEvent struct {
	Resource schema.GroupResource
	Object   types.NamespacedName // the upstream key of the object
	Fields   []string             // each as the server names it, with the manager that changed it
	// APIVersion, Kind and UID are those of the object upstream.
	APIVersion, Kind string
	UID              types.UID
}

// TypeEvent reports that a type begins or ceases to be synced.
type TypeEvent struct {
	Resource schema.GroupVersionResource
	Synced   bool
}

// AnotherEvent reports whether another Syncer works for the same target.
type AnotherEvent struct {
	// Message has the sign of the other Syncer, and identifies this one. Empty: no sign counts any longer.
	Message string
}

// CapacityEvent reports whether the capacity of the downstream can be read. While it cannot, the last known capacity
// stays in the status of the SyncTarget.
type CapacityEvent struct {
	// Err is why the capacity cannot be read; nil: it can be read again.
	Err error
}

func (o *Observer) wrote(ctx context.Context, e WriteEvent) {
	if o != nil && o.Wrote != nil {
		o.Wrote(ctx, e)
	}
}

func (o *Observer) problem(ctx context.Context, e ProblemEvent) {
	if o != nil && o.Problem != nil {
		o.Problem(ctx, e)
	}
}

func (o *Observer) overruled(ctx context.Context, e OverruledEvent) {
	if o != nil && o.Overruled != nil {
		o.Overruled(ctx, e)
	}
}

func (o *Observer) kind(ctx context.Context, e TypeEvent) {
	if o != nil && o.Type != nil {
		o.Type(ctx, e)
	}
}

func (o *Observer) another(ctx context.Context, e AnotherEvent) {
	if o != nil && o.Another != nil {
		o.Another(ctx, e)
	}
}

func (o *Observer) capacity(ctx context.Context, e CapacityEvent) {
	if o != nil && o.Capacity != nil {
		o.Capacity(ctx, e)
	}
}
