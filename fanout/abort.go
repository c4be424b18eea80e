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
)

// ErrCommitted says that an operation cannot be taken back: it is committed, or
// may be.
var ErrCommitted = errors.New("committed: it cannot be taken back")

// ForeignError says that a reservation is another coordinator's, which may be
// alive: Abort takes it down only if it is told to.
type ForeignError struct {
	Operation   string
	Coordinator string
	Kind        schema.GroupKind
	Key         types.NamespacedName
	Holder      region.PeerName // where its primary is; empty if it has none yet
	Since       time.Time
}

// Error names the holder, where, since when, and what to do.
func (e *ForeignError) Error() string {
	holds := fmt.Sprintf("holds %s %s in peer %s", e.Kind.Kind, keyString(e.Key), e.Holder)
	if e.Holder == "" {
		holds = fmt.Sprintf("works on %s %s", e.Kind.Kind, keyString(e.Key))
	}
	return fmt.Sprintf("operation %s is of coordinator %s, which %s since %s: if that coordinator is gone, say so (AbortOptions.Others); if it is alive, its operation ends without effect",
		e.Operation, or(e.Coordinator, "unknown"), holds, e.Since.UTC().Format(time.RFC3339))
}

// AbortOptions tune one Abort.
type AbortOptions struct {
	// Others lets Abort take down what another coordinator reserved, and what
	// another one works on by a log that both share. That is safe at any time:
	// should it be alive, its operation is aborted.
	Others bool
}

// Abort takes an operation back that is not committed: its reservations go from
// all peers at once, without waiting for a lease. The log's own operations and
// those whose claims name this Coordinator's Identity are taken back as they are;
// another's is a *ForeignError unless opts.Others is set, also one that another
// coordinator has open in a log that both share. One that is committed,
// or whose commit may have been sent and has nothing that could be taken down,
// gives an error that wraps ErrCommitted: only a removal undoes it. The error
// wraps ErrEnded if it is gone and perhaps was in effect for a while,
// ErrUnknownOperation if nobody knows the operation, and is an
// *InDoubtError while its primary's peer does not answer. Abort blocks and is
// idempotent. The Operation says how it stands; a peer that still has something
// of it has Err set.
func (c *Coordinator) Abort(ctx context.Context, operation string, opts AbortOptions) (*Operation, error) {
	e, k, err := c.explain(ctx, operation)
	if err != nil {
		return nil, err
	}
	logged := k.entry.ID != "" && k.entry.Ended.IsZero()
	switch {
	case e.State == Committed, e.State == Done:
		return c.stands(e), fmt.Errorf("operation %s, %s of %s %s, is %w: %s; next: %s",
			operation, e.Action, e.Kind.Kind, keyString(e.Key), ErrCommitted, e.Text, e.Next)
	case logged && e.Action != string(protocol.Add):
		j, err := decodeJournal(k.entry)
		if err == nil && j.Record.Committing {
			return c.stands(e), fmt.Errorf("operation %s, %s of %s %s, may be %w: its commit may have been sent, and could be applied later: resume it",
				operation, e.Action, e.Kind.Kind, keyString(e.Key), ErrCommitted)
		}
	}
	if identity, foreign := c.foreign(k.entry); logged && foreign {
		if !opts.Others {
			return c.stands(e), e.foreign(identity, k.entry.Began)
		}
		if err := c.takeOver(ctx, k.entry); err != nil && !errors.Is(err, errOver) {
			return c.stands(e), &InDoubtError{Operation: operation, Settles: "abort it again", Err: err}
		}
	}
	if logged {
		op, err := c.settleAsked(ctx, k.entry)
		if errors.Is(err, errOver) { // it has ended meanwhile
			op, err = c.Outcome(ctx, operation)
		}
		switch {
		case op != nil && (op.State == Committed || op.State == Done):
			return op, fmt.Errorf("operation %s became %w", operation, ErrCommitted)
		case op != nil && op.State == Aborted && errors.Is(err, ErrAborted):
			return op, nil
		}
		return op, err
	}
	if k.entry.ID != "" {
		return c.stands(e), nil // it has ended without effect
	}
	if e.State == InDoubt {
		return c.stands(e), c.doubtful(e)
	}
	if e.State == Reserving && e.Coordinator != c.opts.Identity && !opts.Others {
		return c.stands(e), e.foreign(e.Coordinator, e.Since)
	}
	return c.takeDown(ctx, k, 0)
}

// foreign says that the operation is of the coordinator of that identity.
func (e *Explanation) foreign(identity string, since time.Time) *ForeignError {
	foreign := &ForeignError{Operation: e.Operation, Coordinator: identity, Kind: e.Kind, Key: e.Key, Since: since}
	for _, p := range e.Peers {
		if p.Role == "Primary" && p.names {
			foreign.Holder = p.Peer
		}
	}
	return foreign
}

// Resume settles one operation now: one of the log as Recover does, another as a
// sweep does, which waits one lease for a sign of life before it takes down a
// reservation, and carries forward what is committed. The Operation says how it
// stands then. The error is an *InDoubtError while its primary's peer does not
// answer or a reservation is alive, wraps ErrUnknownOperation if nobody knows the
// operation, and is otherwise that of the operation itself. Resume blocks and is
// idempotent.
func (c *Coordinator) Resume(ctx context.Context, operation string) (*Operation, error) {
	e, k, err := c.explain(ctx, operation)
	if err != nil {
		return nil, err
	}
	if k.entry.ID != "" {
		return c.Outcome(ctx, operation)
	}
	if e.State == InDoubt {
		return c.stands(e), c.doubtful(e)
	}
	op, err := c.takeDown(ctx, k, lease)
	if errors.Is(err, ErrCommitted) {
		return op, nil
	}
	return op, err
}

func (c *Coordinator) doubtful(e *Explanation) error {
	doubt := &InDoubtError{Operation: e.Operation, Settles: e.Next, Err: errors.New(e.Text)}
	for _, p := range e.Peers {
		if p.Err != nil {
			doubt.Peers = append(doubt.Peers, p.Peer)
		}
	}
	return doubt
}

// takeDown sweeps what the peers show of an operation that the log does not
// know, and looks again. A reservation is fenced once it has stood still for so
// many quanta.
func (c *Coordinator) takeDown(ctx context.Context, k known, quiet int) (*Operation, error) {
	var errs []error
	var fenced bool
	for _, t := range k.survey.trace(k.key) {
		if !slices.ContainsFunc(t.sweep, func(x standing) bool { return x.names(k.claims) }) {
			continue
		}
		removed, err := c.sweepTrace(ctx, t, quiet)
		fenced = fenced || removed && t.State == Reserving
		errs = append(errs, err)
	}
	peers, err := c.peers(ctx)
	if err != nil {
		return nil, err
	}
	k.survey = c.lookAt(ctx, k.kind, k.key, peers)
	e := k.survey.explain(k.key, peers, k.claims)
	op := c.stands(e)
	failed := errors.Join(errs...)
	switch {
	case e.State == Reserving:
		return op, &InDoubtError{Operation: k.claims, Settles: e.Next, Err: cmp.Or(failed, errors.New("its coordinator shows signs of life"))}
	case e.State == InDoubt:
		return op, c.doubtful(e)
	case e.State == Committed, e.State == Done:
		return op, fmt.Errorf("operation %s is %w: %s", k.claims, ErrCommitted, e.Text)
	case fenced:
		// Our own delete of the reservation proves that it was not committed.
		op.State = Aborted
	}
	return op, failed
}

// sweepTrace sweeps the objects of one operation, the primary first. It says
// whether the first was removed.
func (c *Coordinator) sweepTrace(ctx context.Context, t trace, quiet int) (removed bool, err error) {
	var errs []error
	for i, x := range t.sweep {
		r, err := c.sweeper(ctx, t.kind, region.PeerName(x.peer), x.obj, x.view, quiet > 0)
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

// another says that p tells of an object, and not of the operation's.
func (e *Explanation) another(p PeerExplanation) bool {
	switch p.Judgement {
	case "absent", "undecidable", "damaged":
		return false
	case "missing": // beside a primary, whose operation it is about
		return !slices.ContainsFunc(e.Peers, func(q PeerExplanation) bool { return q.names && q.Judgement == "primary" })
	default:
		return !p.names
	}
}

// stands is an explained operation as callers of the others get it. What peers
// hold of another operation is not shown.
func (c *Coordinator) stands(e *Explanation) *Operation {
	op := &Operation{ID: e.Operation, State: e.State}
	if op.State == "" {
		op.State = Ended
	}
	var outcomes []region.Outcome[PeerState]
	for _, p := range e.Peers {
		o := region.Outcome[PeerState]{Peer: p.Peer, Err: p.Err}
		switch {
		case e.another(p) && (op.State == Committed || op.State == Done):
			o.Value = PeerGone // another has the name since
		case e.another(p):
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
