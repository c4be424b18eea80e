// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/wal"
)

// The operations of one idempotency key are a chain in the log: KEY, KEY#1, KEY#2 and so on. A
// request follows the chain to an operation that has its result, or to a free key.

// keyStep is the next step after reading the operation that the log has under a key.
type keyStep uint8

const (
	keyFree    keyStep = iota // the request takes the key
	keySettle                 // the operation is open: settle it, and then decide by its state
	keyAnswer                 // return the operation's result
	keyNext                   // the operation has no result for the request: read the next key of the chain
	keyReused                 // reject: the operation was another request
	keyUnclear                // in doubt: the operation may be of another ring
	keyForeign                // reject: the operation may be of another ring, and no peer here shows it
)

// keyed is the operation that the log has under a key.
type keyed struct {
	stored    bool // the log has an operation under the key
	open      bool
	same      bool // the operation was the same request
	committed bool // the operation has ended, and was committed
	signed    bool // the operation's entry stores the operation's ring
	belongs   protocol.Belonging
}

func (k keyed) step() keyStep {
	switch {
	case !k.stored:
		return keyFree
	case k.open && !k.same:
		return keyReused
	case k.open:
		return keySettle
	case k.signed && k.belongs == protocol.OfAnother:
		return keyNext
	case !k.same:
		return keyReused
	case !k.committed:
		return keyNext
	case k.belongs == protocol.Unclear:
		return keyUnclear
	case k.belongs == protocol.OfAnother:
		return keyForeign
	default:
		return keyAnswer
	}
}

// settledStep returns the next step after an attempt to settle the open operation of a key. over
// means that another process has ended the operation meanwhile. If the operation is still in
// doubt, the caller gets that result.
func settledStep(over bool, state State) keyStep {
	switch {
	case over:
		return keySettle
	case state == Aborted, state == Ended:
		// The operation has no effect. A sweep deletes an object of it that appears later.
		return keyNext
	default:
		return keyAnswer
	}
}

// link is one operation of a chain, or the free key at its end.
type link struct {
	keyed
	key     string
	entry   wal.Entry
	outcome outcome          // set if the operation has ended
	unread  map[string]error // errors of unread peers that may show the operation
}

// lookUpKey looks up the request's idempotency key in the log. It returns the log key for a new
// entry, or the Operation that was committed under the idempotency key. A key whose operation
// had no effect, or is of another ring, may be used again.
func (b *submitter) lookUpKey(ctx context.Context, req request, op protocol.Operation, id string) (string, *Operation, error) {
	if req.idempotencyKey == "" {
		return "operation/" + id, nil, nil
	}
	request := fingerprint(req, op)
	for n := 0; ; n++ {
		l, err := b.link(ctx, req, request, n)
		if err != nil {
			return "", nil, err
		}
		switch step := l.step(); step {
		case keyFree:
			return l.key, nil, nil
		case keyAnswer:
			return "", l.outcome.operation(l.entry.ID, req.kind), nil
		case keyNext:
		case keySettle:
			operation, err := b.recovery.settleAsked(ctx, l.entry)
			var state State
			if operation != nil {
				state = operation.State
			}
			switch step := settledStep(errors.Is(err, errOver), state); step {
			case keySettle:
				n--
			case keyAnswer:
				return "", operation, err
			}
		default:
			return "", nil, l.refusal(step, req)
		}
	}
}

// link reads the n-th key of a chain from the log. It reads the peers only for an operation of
// the first release whose result would be returned.
func (b *submitter) link(ctx context.Context, req request, request string, n int) (l link, err error) {
	l.key = req.idempotencyKey
	if n > 0 {
		l.key = fmt.Sprintf("%s#%d", req.idempotencyKey, n)
	}
	l.entry, err = b.entries.log.Find(ctx, l.key)
	switch {
	case errors.Is(err, wal.ErrNotFound):
		return l, nil
	case err != nil:
		return l, fmt.Errorf("write-ahead log: %w", err)
	}
	l.stored, l.open = true, l.entry.Ended.IsZero()
	j, damaged := decodeJournal(l.entry)
	if l.open {
		l.same = damaged != nil || j.Request == request // a damaged entry shows no request: let settleAsked return its error
		return l, nil
	}
	if err := json.Unmarshal(l.entry.Outcome, &l.outcome); err != nil {
		return l, fmt.Errorf("outcome of operation %s: %w", l.entry.ID, err)
	}
	now := b.clusters.identities.origin()
	l.same, l.committed = l.outcome.Request == "" || l.outcome.Request == request, l.outcome.committed()
	l.signed = j.Origin.Known()
	var seen protocol.Sighting
	if !l.signed && l.same && l.committed && now.Known() {
		seen, l.unread, err = b.sightEnded(ctx, req, j, l)
	}
	l.belongs = protocol.Belong(j.Origin, now, !now.Known(), seen)
	return l, err
}

// refusal returns why a request under a key is rejected.
func (l link) refusal(step keyStep, req request) error {
	switch step {
	case keyUnclear:
		return unclear(l.entry.ID, l.unread)
	case keyForeign:
		return fmt.Errorf("%w: idempotency key %q was used by operation %s of the first release, which does not have its ring, and no peer shows it: choose a new key",
			ErrOtherLog, req.idempotencyKey, l.entry.ID)
	default:
		return fmt.Errorf("idempotency key %q was used by operation %s for another request: choose a new key", req.idempotencyKey, l.entry.ID)
	}
}

// sightEnded looks in all peers for objects that show an operation that has ended. A removal counts
// as found if all peers were read and none has an object of the name.
func (b *submitter) sightEnded(ctx context.Context, req request, j journal, l link) (seen protocol.Sighting, unread map[string]error, err error) {
	peers, err := b.clusters.peers(ctx)
	if err != nil {
		return seen, nil, err
	}
	s := b.surveyor.glance(ctx, req.kind, req.key, peers)
	at := s.early[req.key]
	seen.Found = l.outcome.Removal && len(at) == 0 && len(s.unread) == 0
	for _, m := range at {
		seen.Found = seen.Found || m.bad == nil && m.view.Shows(j.Record, j.Operation.ID, l.entry.ID)
	}
	seen.Unread = len(s.unread) > 0
	return seen, s.unread, nil
}
