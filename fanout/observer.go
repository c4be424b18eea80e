// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/region"
)

// Observer receives the events of a Coordinator. A nil Observer and nil fields are valid. Hooks
// are called synchronously without a lock held, possibly from many goroutines, and must return
// quickly.
type Observer struct {
	// Step is called before and after each command of the protocol.
	Step func(ctx context.Context, e StepEvent)
	// End is called when an operation has ended or its call returns.
	End func(ctx context.Context, e EndEvent)
	// Durable is called after End for an operation that returned at its commit, when its
	// background work has ended: EndEvent.Durable reports whether the operation is durable. State
	// is Committed if recovery or a sweep has yet to make the operation durable.
	Durable func(ctx context.Context, e EndEvent)
	// Backlog is called by Start after each recovery, about once in Options.SweepEvery. It reports the
	// operations that are open in the log. It is not called while the log cannot be read.
	Backlog func(ctx context.Context, e BacklogEvent)
}

// BacklogEvent reports the operations and changes of the membership that are open in the log. If
// several coordinators share the log, it reports those of all of them.
type BacklogEvent struct {
	Open      int       // number of open ones
	Oldest    time.Time // when the oldest one began; zero if none is open, or if no start can be read
	Operation string    // ID of the oldest one
}

// StepEvent is one command of the protocol.
type StepEvent struct {
	Operation string
	Action    string // such as "add", "move" or "sweep"; empty for the commands of a change of the membership
	Kind      schema.GroupKind
	Key       types.NamespacedName
	Peer      region.PeerName // empty for the log
	Verb      string          // "create", "read", "put", "delete", "begin", ...
	Stage     string          // of the object that is written, if any
	Role      string          // of the object that is written, if any
	Done      bool            // false before the command, true after it
	Code      string          // code of the answer, once done
	Class     string          // known effect, once done: "NotApplied", "Applied" or "Unknown"; empty in a change
	Err       error           // why it failed, once done

	// UID is the UID of the object in Peer after a successful read or put, once done; empty otherwise.
	UID types.UID
	// Version is the version of the object's API.
	Version string
	// Held is why a removal that a plain delete of the object requested is held, as recorded in the
	// object in Peer. It is set together with UID, and empty if no removal is held.
	Held string

	// Finalizers are the finalizers of other controllers that block the object's deletion, if a
	// read or a put has shown that the object is being deleted.
	Finalizers []string
}

// EndEvent is the end of an operation.
type EndEvent struct {
	Operation string
	Kind      schema.GroupKind
	Key       types.NamespacedName
	State     State
	// Durable is Operation.Durable.
	Durable bool
	Err     error
}

func (o *Observer) step(ctx context.Context, e StepEvent) {
	if o != nil && o.Step != nil {
		o.Step(ctx, e)
	}
}

func (o *Observer) durable(ctx context.Context, e EndEvent) {
	if o != nil && o.Durable != nil {
		o.Durable(ctx, e)
	}
}

func (o *Observer) backlog(ctx context.Context, e BacklogEvent) {
	if o != nil && o.Backlog != nil {
		o.Backlog(ctx, e)
	}
}

func (o *Observer) end(ctx context.Context, e EndEvent) {
	if o != nil && o.End != nil {
		o.End(ctx, e)
	}
}
