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

// submit runs a request: as one operation, or as several if it gives way to older rivals.
func (c *Coordinator) submit(ctx context.Context, req request) (*Operation, *runner, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, fmt.Errorf("%s %s %s: %w: %w", req.action, req.kind.Kind, keyString(req.key), ErrAborted, err)
	}
	peers, err := c.peers(ctx)
	if err != nil {
		return nil, nil, err
	}
	var silent error
	if req.action != protocol.Remove {
		if silent, err = c.distinct(ctx); err != nil {
			return nil, nil, err
		}
	}
	start := req.start
	if start.IsZero() {
		start = time.Now()
	}
	id := newOperationID(time.Now())
	op, content, err := c.operation(req, peers, start, id)
	if err != nil {
		return nil, nil, err
	}
	waited := silent
	if ctx.Err() == nil { // after the deadline this fails as well, and would hide the cause
		waited = cmp.Or(c.recoverFirst(ctx), silent)
	}
	if errors.Is(waited, ErrOtherLog) {
		return nil, nil, fmt.Errorf("%s: %w: %w", operationName(req.action, req.kind, req.key), ErrAborted, waited)
	}
	logKey, first, err := c.earlier(ctx, req, op, id)
	if err != nil && ctx.Err() != nil {
		err = waitedFor(err, waited)
	}
	if err != nil || first != nil {
		return first, c.runner(req.kind, req.key, protocol.New(op), journal{Operation: op}), err
	}
	unasked, err := c.checkGuards(ctx, req, op)
	if err != nil {
		return nil, nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, notBegun(operationName(req.action, req.kind, req.key), context.Cause(ctx), cmp.Or(waited, unasked))
	}
	if !c.begin(id) {
		return nil, nil, fmt.Errorf("operation ID %s is in use", id)
	}
	var rest func()
	defer func() {
		if rest == nil {
			c.done(id)
			return
		}
		rest()
	}()
	op.Epochs = c.identities.epochs()
	j := journal{
		Group:        req.kind.Resource.Group,
		Kind:         req.kind.Kind,
		Namespace:    req.key.Namespace,
		Name:         req.key.Name,
		Operation:    op,
		Content:      content,
		FieldManager: req.fieldManager,
		Request:      fingerprint(req, op),
		Origin:       c.identities.origin(),
	}
	entry := wal.Entry{
		ID:    id,
		Kind:  entryKind(req.kind.GroupKind(), req.action),
		Key:   logKey,
		Owner: cmp.Or(c.holder, c.opts.Identity),
		Began: start,
	}
	again := func(r *runner, result protocol.Result) (*Operation, *runner, error) {
		c.done(id)
		_, _ = r.conclude(ctx, result, nil) // the caller gets the result of the next operation
		req.start = start
		return c.submit(ctx, req)
	}
	for {
		r := c.runner(req.kind, req.key, protocol.New(op), j)
		r.entry.took(entry)
		var result protocol.Result
		result, rest, err = r.answer(ctx, req.durable)
		entry = r.entry.present()
		failed := r.failure("")
		step := afterAttempt(result, err, errors.Is(failed, wal.ErrExists), errors.Is(failed, wal.ErrStale), j.Attempt > 0, ctx.Err() != nil)
		if step == attemptYields {
			alive := r.entry.showLife(ctx)
			c.outlast(ctx, req.kind, req.key, result)
			alive()
			entry = r.entry.present()
			step = afterYielding(result, ctx.Err() != nil)
		}
		switch step {
		case attemptLate:
			return c.submit(ctx, req)
		case attemptTaken:
			return again(r, result)
		case attemptNext:
			op.ID = newOperationID(time.Now())
			j.Operation = op
			j.Attempt++
			continue
		}
		if result.Reason == protocol.GaveWay && !result.Keep {
			// If this is lost, the entry is found open and settled again.
			_ = c.log.End(context.WithoutCancel(ctx), entry, r.outcome())
		}
		operation, err := r.conclude(ctx, result, err)
		return operation, r, err
	}
}

// outlast waits, without a reservation, until the older rival to which a request gave way is no
// longer pending, or deletes that rival's reservation after a lease without a sign of life.
func (c *Coordinator) outlast(ctx context.Context, kind Kind, key types.NamespacedName, result protocol.Result) {
	obj := kind.object(key, nil)
	// The result does not matter: the next attempt reads the name itself.
	_, _ = c.sweepOne(ctx, kind, region.PeerName(result.HolderAt), obj, result.Holder, true)
}

// notBegun returns the error of an operation whose deadline passed before it sent anything;
// waited is what took the time, nil if nothing did.
func notBegun(name string, cause, waited error) error {
	return waitedFor(fmt.Errorf("%s: %w: it was not begun in time: %w", name, ErrAborted, cause), waited)
}

// waitedFor adds what took the time to an error about a deadline; waited may be nil.
func waitedFor(err, waited error) error {
	if waited == nil {
		return err
	}
	return fmt.Errorf("%w: it waited for %w", err, waited)
}

// distinct returns an error if two peers are one cluster. silent has the errors of peers whose
// identity could not be read: the operation itself rejects those.
func (c *Coordinator) distinct(ctx context.Context) (silent, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.CallTimeout)
	defer cancel()
	uids, _ := region.Each(ctx, c.directory, "read identity", region.BestEffort(), func(ctx context.Context, conn *region.Conn) (types.UID, error) {
		uid, err := conn.UID(ctx)
		return uid, explain(conn.Peer(), "read identity", err)
	})
	first := map[types.UID]region.PeerName{}
	for o := range uids.All() {
		if o.Err != nil {
			continue
		}
		if other, ok := first[o.Value]; ok {
			return nil, sameCluster(other, o.Peer, o.Value)
		}
		first[o.Value] = o.Peer
	}
	return uids.Err(), nil
}

func sameCluster(one, other region.PeerName, uid types.UID) error {
	return fmt.Errorf("%w: %s and %s (kube-system has UID %s): configure it under one name", region.ErrSameCluster, one, other, uid)
}

// fingerprint returns a hash that identifies a request.
func fingerprint(req request, op protocol.Operation) string {
	sum, err := hash(req.action, req.kind.GroupKind().String(), keyString(req.key), op.Payload, req.target, req.uid)
	if err != nil {
		return ""
	}
	return sum
}

// agreed reads the object that was agreed on from its primary's peer.
func (c *Coordinator) agreed(ctx context.Context, r *runner, op *Operation) (*unstructured.Unstructured, error) {
	conn, err := c.trusted(ctx, op.Primary)
	if err != nil {
		return nil, err
	}
	obj, err := within(ctx, c.opts.CallTimeout, func(ctx context.Context) (*unstructured.Unstructured, error) {
		return r.resource(conn).Get(ctx, r.key.Name, metav1.GetOptions{})
	})
	return obj, explain(op.Primary, "read "+keyString(r.key), err)
}
