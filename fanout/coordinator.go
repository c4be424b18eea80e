// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/internal/argument"
	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/wal"
)

// Object is any typed or unstructured API object: the method set of
// controller-runtime's client.Object.
type Object interface {
	metav1.Object
	runtime.Object
}

// Coordinator runs operations on all peers, and finishes operations that it or another
// coordinator left open. Any number of coordinators may work on the same peers, in any number
// of processes; they need not know one another. Use New: the zero value does not work. A
// Coordinator is safe for concurrent use.
type Coordinator struct {
	directory region.Directory
	log       wal.Log
	opts      Options

	logOurs atomic.Bool  // the open operations of the log are of this ring
	logged  atomic.Int64 // duration of the last write to the log, in nanoseconds

	holder string // this coordinator's name in a shared log; empty if the log is exclusive

	mu      sync.Mutex
	busy    map[string]bool      // operations in the log that this process works on
	watched map[string]watched   // entries of other coordinators
	nothing map[string]watched   // entries of a shared log whose operations had no effect
	rest    map[string]time.Time // when to retry an operation that could not be settled

	tails      tails
	noting     pace
	sets       *setReader
	identities *identities
	reach      reach
	guards     guardChecks
}

// New checks opts and reads nothing: it does not block, and d may still be empty. Coordinators
// that use one log at the same time need a shared log (wal.Log.Shared), each with a handle of
// its own. An error names the field of opts and a valid value.
func New(d region.Directory, log wal.Log, opts Options) (*Coordinator, error) {
	switch {
	case argument.Missing(d):
		return nil, errors.New("fanout: directory is nil: pass a region.Ring or region.Fixed(...)")
	case argument.Missing(log):
		return nil, errors.New("fanout: log is nil: pass a wal.Log, such as from wal.Open")
	}
	opts = opts.withDefaults()
	if err := opts.validate(); err != nil {
		return nil, err
	}
	c := &Coordinator{directory: d, log: log, opts: opts, busy: map[string]bool{}, rest: map[string]time.Time{}, sets: newSetReader(), identities: newIdentities()}
	if log.Shared() {
		c.holder = opts.Identity + "/" + rand.Text()[:6]
		c.watched, c.nothing = map[string]watched{}, map[string]watched{}
	}
	return c, nil
}

func (o Options) validate() error {
	seen := map[schema.GroupKind]bool{}
	for i, k := range o.Kinds {
		switch {
		case k.Resource.Resource == "" || k.Resource.Version == "" || k.Kind == "":
			return fmt.Errorf("fanout: Options.Kinds[%d]: Resource and Kind are required", i)
		case seen[k.GroupKind()]:
			return fmt.Errorf("fanout: Options.Kinds[%d]: %s is listed twice", i, k.GroupKind())
		case !k.Within.Empty() && !k.Namespaced:
			return fmt.Errorf("fanout: Options.Kinds[%d]: %s is Within %s but has no namespace", i, k.Kind, k.Within.Resource)
		case k.Guard != nil && k.Mode != Once:
			return fmt.Errorf("fanout: Options.Kinds[%d]: %s exists %s, so it has replicas and no guards: leave Guard nil", i, k.Kind, k.Mode)
		case len(k.Holds) > 0 && (k.Namespaced || k.Mode != Everywhere):
			return fmt.Errorf("fanout: Options.Kinds[%d]: %s Holds others, so it must be cluster-scoped and Everywhere", i, k.Kind)
		}
		seen[k.GroupKind()] = true
	}
	if share := o.RemovalCap.Share; !(share > 0 && share <= 1) {
		return fmt.Errorf("fanout: Options.RemovalCap.Share is %v: it must be above 0 and at most 1", share)
	}
	for _, d := range []struct {
		field string
		value time.Duration
	}{
		{"LeaseTimeout", o.LeaseTimeout},
		{"CallTimeout", o.CallTimeout},
		{"Cleanup", o.Cleanup},
		{"SweepEvery", o.SweepEvery},
		{"MaxInFlight", o.MaxInFlight},
	} {
		if d.value < 0 {
			return fmt.Errorf("fanout: Options.%s is %s: it must not be negative", d.field, d.value)
		}
	}
	return nil
}

// Add creates obj in all peers, or in none. It uses the name, the labels and the annotations of
// obj's metadata, and ignores status. Within ctx it waits for the Directory's first Snapshot.
//
// Add returns nil when the operation is committed: Operation.State is Done if every peer has
// confirmed, and Committed if one has not; Start or Recover bring that peer along. Otherwise
// the error is a *HeldError if another object has the name, or an *InDoubtError if the outcome
// is not known yet: the operation stays in the log, so call Outcome and do not start it anew.
// Any other error wraps ErrAborted or ErrEnded: nothing is in effect. Adding the same object
// again under the same idempotency key returns the first result.
func (c *Coordinator) Add(ctx context.Context, obj Object, opts AddOptions) (*Operation, error) {
	op, _, err := c.add(ctx, obj, opts, false)
	return op, err
}

func (c *Coordinator) add(ctx context.Context, obj Object, opts AddOptions, agree bool) (*Operation, *runner, error) {
	kind, u, err := c.object(obj)
	if err != nil {
		return nil, nil, fmt.Errorf("add: %w", err)
	}
	if agree && kind.Mode != Everywhere {
		return nil, nil, fmt.Errorf("agree: %s exists %s, only the content of kinds that exist Everywhere can be agreed on", kind.Kind, kind.Mode)
	}
	return c.submit(ctx, request{
		action:         protocol.Add,
		kind:           kind,
		key:            objectKey(u),
		obj:            u,
		target:         opts.Target,
		idempotencyKey: opts.IdempotencyKey,
		fieldManager:   opts.FieldManager,
		unreachable:    opts.Unreachable,
		agree:          agree,
		durable:        opts.Durable,
	})
}

// Update replaces the content of obj in all peers, for kinds that exist Everywhere. It ignores
// obj's resourceVersion: it is based on the revision that it finds. The error is a
// *ConflictError if another update commits in between, and wraps ErrNotFound if the object does
// not exist. Other errors are those of Add.
func (c *Coordinator) Update(ctx context.Context, obj Object, opts AddOptions) (*Operation, error) {
	kind, u, err := c.object(obj)
	if err != nil {
		return nil, fmt.Errorf("update: %w", err)
	}
	if kind.Mode != Everywhere {
		return nil, fmt.Errorf("update: %s exists %s: change the object in its own peer", kind.Kind, kind.Mode)
	}
	op, _, err := c.submit(ctx, request{
		action:         protocol.Update,
		kind:           kind,
		key:            objectKey(u),
		obj:            u,
		idempotencyKey: opts.IdempotencyKey,
		fieldManager:   opts.FieldManager,
		unreachable:    opts.Unreachable,
	})
	return op, err
}

// Agree is Add for content that is decided once, such as a generated password or a CA. The
// first caller's content wins. Every caller gets the object that the peers hold, as its primary
// has it. Agree is only for kinds that exist Everywhere. The errors are those of Add, but an
// existing name is not an error.
func (c *Coordinator) Agree(ctx context.Context, obj Object, opts AddOptions) (*unstructured.Unstructured, error) {
	op, r, err := c.add(ctx, obj, opts, true)
	if err != nil {
		return nil, err
	}
	agreed, err := c.agreed(ctx, r, op)
	if err != nil {
		return nil, fmt.Errorf("operation %s is committed, but its object cannot be read: %w", op.ID, err)
	}
	return agreed, nil
}

// Remove removes the object from all peers. It returns nil when the removal is committed:
// Operation.State is Done if nothing is left, and Committed if Start or Recover have to
// continue it. Otherwise the error wraps ErrNotFound if no peer holds the object, is a
// *HeldError if the object has no claim or is only reserved, an *OccupiedError if other objects
// are in the namespace that it owns, an *InDoubtError, or wraps ErrAborted: the object stays.
func (c *Coordinator) Remove(ctx context.Context, gk schema.GroupKind, key types.NamespacedName, opts RemoveOptions) (*Operation, error) {
	kind, err := c.kindFor(gk)
	if err == nil {
		err = kind.check(key)
	}
	if err != nil {
		return nil, fmt.Errorf("remove: %w", err)
	}
	op, _, err := c.submit(ctx, request{
		action:         protocol.Remove,
		kind:           kind,
		key:            key,
		uid:            opts.UID,
		idempotencyKey: opts.IdempotencyKey,
		unreachable:    opts.Unreachable,
	})
	return op, err
}

// owns reports whether this coordinator's Shard has the object.
func (c *Coordinator) owns(kind Kind, key types.NamespacedName) bool {
	return c.opts.Shard == nil || c.opts.Shard.Owns(kind.Kind+"/"+keyString(key))
}

// Start recovers the open operations of the log and then sweeps all peers, every SweepEvery
// until ctx ends. A sweep deletes reservations of dead operations, restores missing guards and
// replicas, finishes removals, and adopts objects without a claim of kinds with AdoptApplied.
// Start logs failures to the logger in ctx and retries. It blocks, and returns nil when ctx has
// ended. Without Start each operation first settles the open ones, so a short-lived program
// need not call it.
func (c *Coordinator) Start(ctx context.Context) error {
	ctx = logging.Into(ctx, c.opts.Logger, "fanout")
	defer func() { _ = c.Wait(context.WithoutCancel(ctx)) }()
	for {
		// Log failures and retry: an unreachable peer must not stop the work on the others.
		var errs []error
		c.recoverOpen(ctx, func(wal.Entry) bool { return true }, func(_ *Operation, err error) {
			if unsettled(err) {
				errs = append(errs, err)
			}
		})
		unfinished := errors.Join(c.finishChanges(ctx), c.takeNotes(ctx))
		_, unmended := c.sweep(ctx, c.owns)
		unadopted := c.adoptApplied(ctx)
		if err := errors.Join(append(errs, unfinished, unmended, unadopted)...); err != nil && ctx.Err() == nil {
			logging.From(ctx).Error(err, "recovery and sweep are not complete")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(c.opts.SweepEvery):
		}
	}
}

// begin marks an operation of the log as being worked on. It returns false if it is marked.
func (c *Coordinator) begin(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy[id] {
		return false
	}
	c.busy[id] = true
	return true
}

func (c *Coordinator) done(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.busy, id)
}
