// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/wal"
)

// ErrCommitted means that an operation cannot be aborted: it is committed, or its commit may have
// been sent. Call Remove to undo a committed add, and Resume to finish an operation whose commit
// may have been sent.
var ErrCommitted = errors.New("committed: it cannot be aborted")

// ForeignError means that another coordinator, which may be alive, owns the operation. Wait for
// that coordinator, or set AbortOptions.Others: then Abort aborts the operation all the same.
type ForeignError struct {
	Operation   string
	Coordinator string
	Kind        schema.GroupKind
	Key         types.NamespacedName
	Holder      region.PeerName // the peer that holds the operation's primary; empty if no such peer was found
	Since       time.Time
}

// Error names the coordinator, the object and its peer, the start, and what to do.
func (e *ForeignError) Error() string {
	holds := fmt.Sprintf("holds %s %s in peer %s", e.Kind.Kind, keyString(e.Key), e.Holder)
	if e.Holder == "" {
		holds = fmt.Sprintf("works on %s %s", e.Kind.Kind, keyString(e.Key))
	}
	return fmt.Sprintf("operation %s is of coordinator %s, which %s since %s: to abort it all the same, set AbortOptions.Others: its operation ends without effect even if that coordinator is alive",
		e.Operation, orDefault(e.Coordinator, "unknown"), holds, e.Since.UTC().Format(time.RFC3339))
}

// AbortOptions tune one Abort.
type AbortOptions struct {
	// Others lets Abort delete the reservations of another coordinator, and take over an operation
	// that another coordinator has open in a shared log. Others is safe even if that coordinator is
	// alive: the operation ends without effect, or Abort returns ErrCommitted.
	Others bool
}

// Abort aborts an operation that is not committed: it deletes the operation's reservations in all
// peers at once, without waiting for a lease (Options.LeaseTimeout without a sign of life). If
// another coordinator reserved the operation's objects, or has the operation open in a shared log,
// Abort needs opts.Others; without it the error is a *ForeignError.
//
// The error wraps ErrCommitted if the operation is committed: only a removal undoes it. It also
// wraps ErrCommitted if the operation is not an add and its commit may have been sent: then Abort
// has no reservation to delete. The error wraps ErrEnded if the operation is gone and may have
// been in effect for a while. It wraps ErrUnknownOperation if neither the log nor a peer has the
// operation. The error is an *InDoubtError while the peer of the operation's primary does not
// answer. Abort blocks and is idempotent. The Operation reports the state afterwards; its Peers
// have Err set for each peer that may still hold objects of the operation.
func (c *Coordinator) Abort(ctx context.Context, operation string, opts AbortOptions) (*Operation, error) {
	e, k, err := c.inspector.explain(ctx, operation)
	if err != nil {
		return nil, err
	}
	switch {
	case e.State == Committed, e.State == Done:
		return e.operation(), fmt.Errorf("operation %s, %s of %s %s, is %w: %s; next: %s",
			operation, e.Action, e.Kind.Kind, keyString(e.Key), ErrCommitted, e.Text, e.Next)
	case k.entry.ID != "" && !k.entry.Ended.IsZero():
		return e.operation(), nil // it has ended without effect
	case k.entry.ID != "":
		return c.abortLogged(ctx, e, k.entry, opts)
	case e.State == InDoubt:
		return e.operation(), e.doubt()
	case e.State == Reserving && e.Coordinator != c.opts.Identity && !opts.Others:
		return e.operation(), e.foreign(e.Coordinator, e.Since)
	}
	return c.sweeper.takeDown(ctx, k, 0)
}

// abortLogged aborts an operation that the log has open.
func (c *Coordinator) abortLogged(ctx context.Context, e *Explanation, entry wal.Entry, opts AbortOptions) (*Operation, error) {
	if e.Action != string(protocol.Add) {
		if j, err := decodeJournal(entry); err == nil && j.Record.Committing {
			return e.operation(), fmt.Errorf("operation %s, %s of %s %s, may be %w: its commit may have been sent, and could be applied later: resume it",
				e.Operation, e.Action, e.Kind.Kind, keyString(e.Key), ErrCommitted)
		}
	}
	if identity, foreign := c.entries.foreign(entry); foreign {
		if !opts.Others {
			return e.operation(), e.foreign(identity, entry.Began)
		}
		if err := c.entries.takeOver(ctx, entry); err != nil && !errors.Is(err, errOver) {
			return e.operation(), &InDoubtError{Operation: e.Operation, Settles: "abort it again", Err: err}
		}
	}
	op, err := c.recovery.settleAsked(ctx, entry)
	if errors.Is(err, errOver) { // it has ended meanwhile
		op, err = c.recovery.outcome(ctx, e.Operation)
	}
	switch {
	case op != nil && (op.State == Committed || op.State == Done):
		return op, fmt.Errorf("operation %s became %w", e.Operation, ErrCommitted)
	case op != nil && op.State == Aborted && errors.Is(err, ErrAborted):
		return op, nil
	}
	return op, err
}

// foreign returns the error for an operation that the coordinator with this identity has owned
// since the given time.
func (e *Explanation) foreign(identity string, since time.Time) *ForeignError {
	foreign := &ForeignError{Operation: e.Operation, Coordinator: identity, Kind: e.Kind, Key: e.Key, Since: since}
	for _, p := range e.Peers {
		if p.Role == "Primary" && p.names {
			foreign.Holder = p.Peer
		}
	}
	return foreign
}

// Resume settles one operation now: it completes or undoes it. It recovers an operation in the log,
// as Recover does. It sweeps (checks and repairs) the objects of any other operation: it deletes a
// reservation after one lease (Options.LeaseTimeout) without a sign of life, and rolls a committed
// operation forward. The Operation reports the state afterwards.
//
// The error is an *InDoubtError while the peer of the operation's primary does not answer, or
// while the operation's reservation shows signs of life. It wraps ErrUnknownOperation if neither
// the log nor a peer has the operation, and is otherwise the error of the operation itself.
// Resume blocks and is idempotent.
func (c *Coordinator) Resume(ctx context.Context, operation string) (*Operation, error) {
	e, k, err := c.inspector.explain(ctx, operation)
	if err != nil {
		return nil, err
	}
	if k.entry.ID != "" {
		return c.recovery.outcome(ctx, operation)
	}
	if e.State == InDoubt {
		return e.operation(), e.doubt()
	}
	op, err := c.sweeper.takeDown(ctx, k, lease)
	if errors.Is(err, ErrCommitted) {
		return op, nil
	}
	return op, err
}

func (e *Explanation) doubt() error {
	doubt := &InDoubtError{Operation: e.Operation, Settles: e.Next, Err: errors.New(e.Text)}
	for _, p := range e.Peers {
		if p.Err != nil {
			doubt.Peers = append(doubt.Peers, p.Peer)
		}
	}
	return doubt
}

// takeDown sweeps the objects of an operation that is not in the log, and then reads them again.
// The parameter quiet is the number of quanta (see executor.quantum) for which a reservation must
// have stayed unchanged before takeDown deletes it; 0 means that takeDown deletes it at once.
func (w *sweeper) takeDown(ctx context.Context, k known, quiet int) (*Operation, error) {
	var errs []error
	var fenced bool
	for _, t := range k.survey.trace(k.key) {
		if !slices.ContainsFunc(t.sweep, func(x objectAt) bool { return x.names(k.claims) }) {
			continue
		}
		removed, err := w.sweepTrace(ctx, t, quiet)
		fenced = fenced || removed && t.State == Reserving
		errs = append(errs, err)
	}
	peers, err := w.clusters.peers(ctx)
	if err != nil {
		return nil, err
	}
	k.survey = w.surveyor.lookAt(ctx, k.kind, k.key, peers)
	e := k.survey.explain(k.key, peers, k.claims)
	op := e.operation()
	failed := errors.Join(errs...)
	switch {
	case e.State == Reserving:
		return op, &InDoubtError{Operation: k.claims, Settles: e.Next, Err: cmp.Or(failed, errors.New("its coordinator shows signs of life"))}
	case e.State == InDoubt:
		return op, e.doubt()
	case e.State == Committed, e.State == Done:
		return op, fmt.Errorf("operation %s is %w: %s", k.claims, ErrCommitted, e.Text)
	case fenced:
		// This call deleted the reservation, which proves that the operation was not committed.
		op.State = Aborted
	}
	return op, failed
}

// sweepTrace sweeps the objects of one operation, the primary first. It reports whether the
// first object was removed.
func (w *sweeper) sweepTrace(ctx context.Context, t trace, quiet int) (removed bool, err error) {
	var errs []error
	for i, x := range t.sweep {
		r, err := w.executor.sweepRunner(ctx, t.kind, region.PeerName(x.peer), x.obj, x.view, quiet > 0)
		if err == nil {
			r.machine.Op.Lease = quiet
			_, err = r.run(ctx)
			err = errors.Join(err, r.unmended())
			removed = removed || i == 0 && r.machine.Result.Removed
		}
		errs = append(errs, err)
	}
	return removed, errors.Join(errs...)
}

// ofOtherOperation reports whether p describes an object of another operation than e.Operation.
func (e *Explanation) ofOtherOperation(p PeerExplanation) bool {
	switch p.Judgement {
	case "absent", "undecidable", "damaged":
		return false
	case "missing": // a missing secondary belongs to the operation of its primary
		return !slices.ContainsFunc(e.Peers, func(q PeerExplanation) bool { return q.names && q.Judgement == "primary" })
	default:
		return !p.names
	}
}

// operation converts an explanation into the Operation that callers get, without the objects of
// other operations.
func (e *Explanation) operation() *Operation {
	op := &Operation{ID: e.Operation, State: e.State}
	if op.State == "" {
		op.State = Ended
	}
	var outcomes []region.Outcome[PeerState]
	for _, p := range e.Peers {
		o := region.Outcome[PeerState]{Peer: p.Peer, Err: p.Err}
		switch {
		case e.ofOtherOperation(p) && (op.State == Committed || op.State == Done):
			o.Value = PeerGone // another operation has the name by now
		case e.ofOtherOperation(p):
			o.Value = PeerUnchanged
		case p.Judgement == "primary":
			o.Value, op.Primary = PeerPrimary, p.Peer
		case p.Judgement == "guard":
			o.Value = PeerGuard
		case p.Judgement == "replica":
			o.Value = PeerReplica
		case p.Judgement == "absent":
			o.Value = PeerGone
		default:
			o.Value = PeerPending
			if p.Role == "Primary" {
				op.Primary = p.Peer
			}
			if o.Err == nil {
				o.Err = &region.Error{Peer: p.Peer, Op: "operation " + e.Operation, Err: errors.New(p.Text)}
			}
		}
		outcomes = append(outcomes, o)
	}
	op.Peers = region.ResultsOf("operation "+e.Operation, outcomes...)
	return op
}
