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
	// IdempotencyKey makes a repeated call give the first call's answer.
	IdempotencyKey string

	// Unreachable says what to do about peers that do not answer: Fail, the
	// default, or Wait; Forward is Fail. The peer of the primary and the one it
	// moves to are needed; the others are brought along when they answer.
	Unreachable Unreachable
}

// Move makes to the peer of the primary of the object of that kind and name, for
// kinds that exist Everywhere: because the primary's peer is to leave, or because
// another one is nearer. The content and its revisions stay what they are.
// Between two of its steps the object takes no update and no removal: they
// finish the move first.
//
// It returns nil when the move is committed: Operation.State is Done if every
// peer follows the new primary and Committed if one has yet to be brought along,
// which Start or Recover do; AlreadyDone says that the primary was there before.
// Otherwise the error wraps ErrNotFound if no peer holds the object, or is a
// *HeldError if it is only reserved, is being removed, or is not under the
// protocol, a *InDoubtError, or one that wraps ErrAborted, or ErrEnded if the
// primary was moved and has moved on since. A move that a crash interrupted is
// finished by Recover, or by anybody's sweep.
func (c *Coordinator) Move(ctx context.Context, gk schema.GroupKind, key types.NamespacedName, to region.PeerName, opts MoveOptions) (*Operation, error) {
	kind, err := c.kindFor(gk)
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
	op, _, err := c.submit(ctx, request{
		action:         protocol.Move,
		kind:           kind,
		key:            key,
		target:         to,
		idempotencyKey: opts.IdempotencyKey,
		unreachable:    opts.Unreachable,
	})
	return op, err
}
