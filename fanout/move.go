// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/region"
)

// MoveOptions tune one Move.
type MoveOptions struct {
	// IdempotencyKey makes a repeated call return the first call's result.
	IdempotencyKey string

	// Unreachable is the policy for peers that do not answer: Fail, the default, or Wait;
	// Forward is Fail. The move needs the primary's peer and the peer that it moves to; it
	// brings the other peers along when they answer.
	Unreachable Unreachable
}

// Move makes the object in peer to the primary, for kinds that exist Everywhere: because the
// primary's peer is to leave, or because to is nearer. The content and its revisions do not
// change. Between two of its steps the object accepts no update and no removal: they finish the
// move first.
//
// Move returns nil when the move is committed: Operation.State is Done if every peer follows
// the new primary, and Committed if one does not yet; Start or Recover bring it along.
// AlreadyDone is set if the primary was there before. Otherwise the error wraps ErrNotFound if
// no peer holds the object, is a *HeldError if the object is only reserved, is being removed or
// has no claim, is an *InDoubtError, or wraps ErrAborted, or ErrEnded if the primary was moved
// and has moved on since. Recover, or a sweep of any coordinator, finishes a move that a crash
// interrupted.
func (c *Coordinator) Move(ctx context.Context, gk schema.GroupKind, key types.NamespacedName, to region.PeerName, opts MoveOptions) (*Operation, error) {
	kind, err := c.kinds.find(gk)
	if err == nil {
		err = kind.check(key)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("move: %w", err)
	case kind.Mode != Everywhere:
		return nil, fmt.Errorf("move: %s exists %s: only the primary of what exists Everywhere can move", kind.Kind, kind.Mode)
	case to == "":
		return nil, fmt.Errorf("move: %s %s: the peer to move to is empty", kind.Kind, keyString(key))
	}
	op, _, err := c.submitter.submit(ctx, request{
		action:         protocol.Move,
		kind:           kind,
		key:            key,
		target:         to,
		idempotencyKey: opts.IdempotencyKey,
		unreachable:    opts.Unreachable,
	})
	return op, err
}
