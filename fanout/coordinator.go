// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	opts      *Options
	kinds     *kinds
	clusters  *clusters
	entries   *entries
	surveyor  *surveyor
	executor  *executor
	changes   *changes
	identity  *Identity
	recovery  *recovery
	submitter *submitter
	sweeper   *sweeper
	inspector *inspector
}

// New checks its arguments and reads nothing: it does not block, and d may still be empty.
// Coordinators that use one log at the same time need a shared log (wal.Log.Shared), and each of
// them needs its own handle for the log. An error names the argument, or the field of opts and a
// valid value.
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
	c := &Coordinator{opts: &opts, kinds: &kinds{&opts}, entries: newEntries(&opts, log)}
	c.clusters = &clusters{opts: &opts, directory: d, sets: newSetReader(), identities: newIdentities()}
	c.surveyor = &surveyor{opts: &opts, clusters: c.clusters}
	c.executor = &executor{opts: &opts, clusters: c.clusters, entries: c.entries, kinds: c.kinds}
	c.changes = &changes{&opts, c.clusters, c.entries, c.surveyor, c.executor}
	c.identity = &Identity{opts: &opts, clusters: c.clusters, entries: c.entries, surveyor: c.surveyor, kinds: c.kinds}
	c.recovery = &recovery{&opts, c.clusters, c.entries, c.kinds, c.identity, c.changes, c.executor}
	c.submitter = &submitter{&opts, c.clusters, c.entries, c.kinds, c.surveyor, c.identity, c.executor, c.changes, c.recovery}
	c.sweeper = &sweeper{opts: &opts, clusters: c.clusters, surveyor: c.surveyor, executor: c.executor, submitter: c.submitter}
	c.inspector = &inspector{&opts, c.clusters, c.entries, c.kinds, c.surveyor, c.executor, c.sweeper}
	return c, nil
}

// Kinds returns the kinds of Options.Kinds. It does no I/O. The caller may modify the slice.
func (c *Coordinator) Kinds() []Kind { return slices.Clone(c.opts.Kinds) }

// Add creates obj, and its guards or replicas in all other peers, or leaves nothing in effect. It
// uses the name, the labels and the annotations of obj's metadata, and ignores status. It waits
// until the Directory has a peer or ctx ends.
//
// Add returns nil when the operation is committed: Operation.State is Done if every peer has
// confirmed, and Committed if a peer has not. Start or Recover complete the operation in that peer.
// Otherwise the error is a *HeldError if another object has the name, or an *InDoubtError if the
// outcome is not known yet: the operation stays in the log, so call Outcome and do not call Add
// again. After any other error nothing is in effect: the error wraps ErrAborted or ErrEnded, unless
// Add rejects the call before the operation begins. Adding the same object again under the same
// idempotency key returns the first result.
func (c *Coordinator) Add(ctx context.Context, obj Object, opts AddOptions) (*Operation, error) {
	op, _, err := c.submitter.add(ctx, obj, opts, false)
	return op, err
}

func (b *submitter) add(ctx context.Context, obj Object, opts AddOptions, agree bool) (*Operation, *runner, error) {
	kind, u, err := b.kinds.object(obj)
	if err != nil {
		return nil, nil, fmt.Errorf("add: %w", err)
	}
	if agree && kind.Mode != Everywhere {
		return nil, nil, fmt.Errorf("agree: %s exists %s, only the content of kinds that exist Everywhere can be agreed on", kind.Kind, kind.Mode)
	}
	return b.submit(ctx, request{
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
// obj's resourceVersion: it replaces the revision AddOptions.Revision or, if that is zero, the
// revision that it reads. The error is a *ConflictError if the object has another revision, or if
// another update commits between this read and the write, and wraps ErrNotFound if the object does
// not exist. Other errors are those of Add.
func (c *Coordinator) Update(ctx context.Context, obj Object, opts AddOptions) (*Operation, error) {
	kind, u, err := c.kinds.object(obj)
	if err != nil {
		return nil, fmt.Errorf("update: %w", err)
	}
	if kind.Mode != Everywhere {
		return nil, fmt.Errorf("update: %s exists %s: change the object in its own peer", kind.Kind, kind.Mode)
	}
	op, _, err := c.submitter.submit(ctx, request{
		action:         protocol.Update,
		kind:           kind,
		key:            objectKey(u),
		obj:            u,
		uid:            opts.UID,
		base:           opts.Revision,
		idempotencyKey: opts.IdempotencyKey,
		fieldManager:   opts.FieldManager,
		unreachable:    opts.Unreachable,
	})
	return op, err
}

// Agree is Add for content that is decided once, such as a generated password or a CA. The first
// caller's content wins. Every caller gets the object with this content, read from the primary's
// peer. Agree is only for kinds that exist Everywhere. The errors are those of Add, but an existing
// object is not an error, also while a peer with one of its replicas does not answer. Then Agree
// changes nothing: it sends one create, which the API server rejects.
func (c *Coordinator) Agree(ctx context.Context, obj Object, opts AddOptions) (*unstructured.Unstructured, error) {
	op, r, err := c.submitter.add(ctx, obj, opts, true)
	if err != nil {
		return nil, err
	}
	agreed, err := c.submitter.agreed(ctx, r, op)
	if err != nil {
		return nil, fmt.Errorf("operation %s is committed, but its object cannot be read: %w", op.ID, err)
	}
	return agreed, nil
}

// Remove removes the object from all peers. It returns nil if the removal is committed, except in the three cases that
// the list marks with COMMITTED. Operation.State is Done if nothing is left, and Committed if Start or Recover have to
// continue the removal. The errors:
//   - an error that wraps ErrNotFound: no peer that answers holds the object with the UID in opts.
//   - *ConflictError: the object has another revision or resourceVersion than opts.
//   - *HeldError: the object is only a reservation, or it has no claim because a person applied it. COMMITTED, if
//     Operation.State is Done and the error also wraps ErrReturned: the object was removed, but a peer was restored
//     from an older state, and another object has the name.
//   - *OccupiedError: other objects are in the namespace that the object owns. COMMITTED, if its field Committed is
//     set: the removal continues once these objects are removed.
//   - *InDoubtError: the outcome is not known yet. COMMITTED, if Operation.State is Committed and the error also wraps
//     ErrReturned: the object's peer was restored from an older state, and another object may have the name. After the
//     Comeback of the peer, remove the name again if an object has it.
//   - an error that wraps ErrAborted or ErrEnded: any other failure.
//   - any other error: Remove rejected the call before the removal began.
//
// If the removal is neither committed nor in doubt, it has not removed the object.
func (c *Coordinator) Remove(ctx context.Context, gk schema.GroupKind, key types.NamespacedName, opts RemoveOptions) (*Operation, error) {
	kind, err := c.kinds.find(gk)
	if err == nil {
		err = kind.check(key)
	}
	if err != nil {
		return nil, fmt.Errorf("remove: %w", err)
	}
	op, _, err := c.submitter.submit(ctx, request{
		action:         protocol.Remove,
		kind:           kind,
		key:            key,
		uid:            opts.UID,
		base:           opts.Revision,
		version:        opts.ResourceVersion,
		idempotencyKey: opts.IdempotencyKey,
		unreachable:    opts.Unreachable,
	})
	return op, err
}

// Start recovers the open operations of the log and then sweeps (checks and repairs) all peers,
// every SweepEvery until ctx ends. It also finishes abandoned changes of the membership, and writes
// notes (Options.NoteEvery). A sweep deletes reservations of operations on which no coordinator
// works, restores missing guards and replicas, and finishes removals. After each sweep, Start
// adopts objects without a claim if their kind sets AdoptApplied. Start logs failures to
// Options.Logger, or else to the logger in ctx, and retries. It blocks, and returns nil when ctx
// has ended. A short-lived program need not call Start: without it, each operation first settles
// the open operations of the log.
func (c *Coordinator) Start(ctx context.Context) error {
	ctx = logging.Into(ctx, c.opts.Logger, "fanout")
	defer func() { _ = c.executor.tails.wait(context.WithoutCancel(ctx)) }()
	for {
		// Log failures and retry: an unreachable peer must not stop the work on the others.
		var errs []error
		c.recovery.recoverOpen(ctx, func(wal.Entry) bool { return true }, func(_ *Operation, err error) {
			if unsettled(err) {
				errs = append(errs, err)
			}
		})
		if backlog, err := c.entries.backlog(ctx); err != nil {
			errs = append(errs, err)
		} else {
			c.opts.Observer.backlog(ctx, backlog)
		}
		unfinished := errors.Join(c.changes.finishChanges(ctx), c.sweeper.takeNotes(ctx))
		_, unmended := c.sweeper.sweep(ctx, c.sweeper.owns)
		unadopted := c.sweeper.adoptApplied(ctx)
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
