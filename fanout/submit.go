// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/wal"
)

// submitter begins operations and changes of the membership, and runs them to their result.
type submitter struct {
	opts     *Options
	clusters *clusters
	entries  *entries
	kinds    *kinds
	surveyor *surveyor
	identity *Identity
	executor *executor
	changes  *changes
	recovery *recovery
}

// submit runs a request: as one operation, or as several if it gives way to older rivals.
func (b *submitter) submit(ctx context.Context, req request) (*Operation, *runner, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, fmt.Errorf("%s %s %s: %w: %w", req.action, req.kind.Kind, keyString(req.key), ErrAborted, err)
	}
	peers, err := b.clusters.peers(ctx)
	if err != nil {
		return nil, nil, err
	}
	var silent error
	if req.action != protocol.Remove {
		if silent, err = b.clusters.distinct(ctx); err != nil {
			return nil, nil, err
		}
	}
	start := req.start
	if start.IsZero() {
		start = time.Now()
	}
	id := newOperationID(time.Now())
	op, content, err := b.operation(req, peers, start, id)
	if err != nil {
		return nil, nil, err
	}
	waited := silent
	if ctx.Err() == nil { // after the deadline recoverFirst fails as well, and its error would hide the cause
		waited = cmp.Or(b.recovery.recoverFirst(ctx), silent)
	}
	if errors.Is(waited, ErrOtherLog) {
		return nil, nil, fmt.Errorf("%s: %w: %w", operationName(req.action, req.kind, req.key), ErrAborted, waited)
	}
	logKey, first, err := b.lookUpKey(ctx, req, op, id)
	if err != nil && ctx.Err() != nil {
		err = waitedFor(err, waited)
	}
	if err != nil || first != nil {
		return first, b.executor.runner(req.kind, req.key, protocol.New(op), journal{Operation: op}), err
	}
	unasked, err := b.checkGuards(ctx, req, op)
	if err != nil {
		return nil, nil, err
	}
	if ctx.Err() != nil {
		return nil, nil, notBegun(operationName(req.action, req.kind, req.key), context.Cause(ctx), cmp.Or(waited, unasked))
	}
	op.Epochs = b.clusters.identities.epochs()
	j := journal{
		Group:        req.kind.Resource.Group,
		Kind:         req.kind.Kind,
		Namespace:    req.key.Namespace,
		Name:         req.key.Name,
		Operation:    op,
		Content:      content,
		FieldManager: req.fieldManager,
		Request:      fingerprint(req, op),
		Origin:       b.clusters.identities.origin(),
	}
	entry := wal.Entry{
		ID:    id,
		Kind:  entryKind(req.kind.GroupKind(), req.action),
		Key:   logKey,
		Owner: cmp.Or(b.entries.holder, b.opts.Identity),
		Began: start,
	}
	return b.attempts(ctx, req, j, entry)
}

// attempts runs the operations of one request under one log entry. It begins another operation
// after each one that gave way to a rival.
func (b *submitter) attempts(ctx context.Context, req request, j journal, entry wal.Entry) (*Operation, *runner, error) {
	id, start := entry.ID, entry.Began
	if !b.entries.begin(id) {
		return nil, nil, fmt.Errorf("operation ID %s is in use", id)
	}
	var finishInBackground func()
	defer func() {
		if finishInBackground == nil {
			b.entries.done(id)
			return
		}
		finishInBackground()
	}()
	for {
		r := b.executor.runner(req.kind, req.key, protocol.New(j.Operation), j)
		r.entry.took(entry)
		result, left, err := r.answer(ctx, req.durable)
		finishInBackground = left
		step := b.next(ctx, r, result, err)
		entry = r.entry.present()
		switch step {
		case attemptLate:
			return b.submit(ctx, req)
		case attemptTaken:
			b.entries.done(id)
			_, _ = r.conclusion().conclude(ctx, result, nil) // the caller gets the result of the next operation
			req.start = start
			return b.submit(ctx, req)
		case attemptNext:
			j.Operation.ID = newOperationID(time.Now())
			j.Attempt++
		default:
			if result.Reason == protocol.GaveWay && !result.Keep {
				// If this write is lost, recovery finds the entry open and settles it again.
				_ = b.entries.log.End(context.WithoutCancel(ctx), entry, r.conclusion().outcome())
			}
			operation, err := r.conclusion().conclude(ctx, result, err)
			b.nameRivals(ctx, req, err)
			return operation, r, err
		}
	}
}

// next returns the step after an attempt of r that ended with result or err. If the attempt gave
// way to a rival, next first waits for that rival.
func (b *submitter) next(ctx context.Context, r *runner, result protocol.Result, err error) attemptStep {
	failed := r.failure("")
	step := afterAttempt(result, err, errors.Is(failed, wal.ErrExists), errors.Is(failed, wal.ErrStale), r.journal.Attempt > 0, ctx.Err() != nil)
	if step != attemptYields {
		return step
	}
	defer r.entry.showLife(ctx)()
	b.executor.outlast(ctx, r.kind, r.key, result)
	return afterYielding(result, ctx.Err() != nil)
}

// notBegun returns the error of an operation whose deadline passed before it sent anything.
// waited is the error of the peer or operation that took the time; nil if nothing did.
func notBegun(name string, cause, waited error) error {
	return waitedFor(fmt.Errorf("%s: %w: it was not begun in time: %w", name, ErrAborted, cause), waited)
}

// waitedFor adds the cause of the delay to an error about a deadline; waited may be nil.
func waitedFor(err, waited error) error {
	if waited == nil {
		return err
	}
	return fmt.Errorf("%w: it waited for %w", err, waited)
}

func sameCluster(one, other region.PeerName, uid types.UID) error {
	return fmt.Errorf("%w: %s and %s (kube-system has UID %s): configure it under one name", region.ErrSameCluster, one, other, uid)
}

// fingerprint returns a hash that identifies a request.
func fingerprint(req request, op protocol.Operation) string {
	parts := []any{req.action, req.kind.GroupKind().String(), keyString(req.key), op.Payload, req.target, req.uid}
	if req.base != 0 || req.version != "" { // the fingerprints in earlier logs were made without them
		parts = append(parts, req.base, req.version)
	}
	sum, err := hash(parts...)
	if err != nil {
		return ""
	}
	return sum
}

// agreed reads, in the primary's peer, the object that was agreed on.
func (b *submitter) agreed(ctx context.Context, r *runner, op *Operation) (*unstructured.Unstructured, error) {
	conn, err := b.clusters.trusted(ctx, op.Primary)
	if err != nil {
		return nil, err
	}
	obj, err := within(ctx, b.opts.CallTimeout, func(ctx context.Context) (*unstructured.Unstructured, error) {
		return r.caller().resource(conn).Get(ctx, r.key.Name, metav1.GetOptions{})
	})
	return obj, explain(op.Primary, "read "+keyString(r.key), err)
}
