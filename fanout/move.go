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
	// Forward has the same effect as Fail. The move needs the primary's peer and the peer that
	// it moves to; the other peers follow the new primary when they answer.
	Unreachable Unreachable
}

// Move moves the primary of an object to the given peer, for kinds that exist Everywhere. Possible
// reasons are that the primary's peer is to leave, or that the given peer is nearer. The content
// and its revisions do not change. An update or removal that begins between two steps of the move
// finishes the move first.
//
// Move returns nil when the move is committed: Operation.State is Done if every peer follows the
// new primary, and Committed if a peer does not yet; Start or Recover let that peer follow.
// AlreadyDone is set if the peer already had the primary. Otherwise the error wraps ErrNotFound if
// no peer holds the object, and is a *HeldError if the object is only reserved, is being removed or
// has no claim, or if another object has the name in the given peer. If the outcome is not known
// yet, the error is an *InDoubtError. Any other error wraps ErrAborted, or ErrEnded if the primary
// moved to the peer and then to another one, unless Move rejects the call before the operation
// begins. Recover, or a sweep of any coordinator, finishes a move that a crash interrupted.
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
