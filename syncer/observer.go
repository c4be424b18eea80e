// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Observer receives what happens. nil, and any nil field, is fine. Hooks are called synchronously without a lock held,
// possibly from many goroutines, and must return quickly. Events are structs so that they can grow.
type Observer struct {
	// Wrote is called after each write to either side that was accepted.
	Wrote func(ctx context.Context, e WriteEvent)
	// Problem is called when an object begins to have a problem, has another, or has none any more; and of pods, without an
	// Object, when they may not be counted and when they may again: see Options.Unscheduled.
	Problem func(ctx context.Context, e ProblemEvent)
	// Overruled is called when somebody had changed fields downstream that belong to the upstream, and got them changed
	// back.
	Overruled func(ctx context.Context, e OverruledEvent)
	// Type is called when a type begins or ceases to be synced.
	Type func(ctx context.Context, e TypeEvent)
	// Another is called when another Syncer of the same target is noticed, and when there was no sign of one for 10 minutes.
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
	WriteStatus         Write = "Status"         // upstream: what the cluster reports
	WriteFields         Write = "Fields"         // upstream: fields of the spec that belong to the downstream, see Rule
	WriteUpsync         Write = "Upsync"         // upstream: an object that was born downstream was made or changed
	WriteCondition      Write = "Condition"      // upstream: whether it is synced, see Options.Conditions
	WriteUnscheduled    Write = "Unscheduled"    // upstream: how many pods find no node, see Options.Unscheduled
	WriteNamespace      Write = "Namespace"      // a namespace was created downstream, or upstream for what was born downstream
	WriteCreate         Write = "Create"         // downstream
	WriteUpdate         Write = "Update"         // downstream
	WriteDelete         Write = "Delete"         // downstream
	WriteStatusDown     Write = "StatusDown"     // downstream: the part of the status that belongs to the upstream, see Rule
	WriteDeleteUpstream Write = "DeleteUpstream" // upstream: somebody has deleted the copy, see DeleteUpstream
)

// WriteEvent is a write that was accepted.
type WriteEvent struct {
	Write    Write
	Resource schema.GroupResource
	Object   types.NamespacedName // where it is upstream; of a namespace, its name downstream
}

// ProblemEvent is a change of an object's problem.
type ProblemEvent struct {
	Resource schema.GroupResource
	Object   types.NamespacedName // where it is upstream
	Reason   Reason               // empty: no more
	Message  string
}

// OverruledEvent names fields that somebody else had changed.
type OverruledEvent struct {
	Resource schema.GroupResource
	Object   types.NamespacedName // where it is upstream
	Fields   []string             // as the server names them, with the manager of each
}

// TypeEvent is a change of what is synced.
type TypeEvent struct {
	Resource schema.GroupVersionResource
	Synced   bool
}

// AnotherEvent is a change of whether another Syncer works for the same target.
type AnotherEvent struct {
	// Message says by what it was noticed, and which of the two this is; empty: no longer.
	Message string
}

// CapacityEvent is a change of whether the capacity of the downstream can be read. What was last known stays in the status of
// the SyncTarget meanwhile.
type CapacityEvent struct {
	// Err says why not; nil: it can be read again.
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
