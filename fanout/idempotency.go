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

// The operations of one idempotency key are a chain in the log: KEY, KEY#1, KEY#2 and so
// on. A request goes along it until an operation answers it, or a key is free.

// keyStep is what follows from the operation that the log has under a key.
type keyStep uint8

const (
	keyFree    keyStep = iota // the request takes the key
	keySettle                 // the operation is open: its end decides
	keyAnswer                 // the request gets its answer
	keyNext                   // it answers nothing: the next key of the chain decides
	keyReused                 // refuse: it was another request
	keyUnclear                // in doubt: it may be another ring's
	keyForeign                // refuse: it may be another ring's, and no peer here shows it
)

// keyed is an operation that the log has under a key.
type keyed struct {
	stored    bool // there is one
	open      bool
	same      bool // it was this very request
	committed bool // it ended in effect
	signed    bool // its entry has its ring
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

// settledStep is what follows once the open operation of a key was settled as far as can
// be: over says that it has ended meanwhile, by another hand. An operation that is still in
// doubt answers as such.
func settledStep(over bool, state State) keyStep {
	switch {
	case over:
		return keySettle
	case state == Aborted, state == Ended:
		// It came to nothing, also if something of it may yet appear and is swept then.
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
	outcome outcome          // of one that has ended
	unread  map[string]error // why peers were not read that may show it
}

// earlier looks the idempotency key up. It returns the key for a new entry, or
// the answer of the operation that was committed under it. A key whose
// operation came to nothing, or is of another ring, may be used again.
func (c *Coordinator) earlier(ctx context.Context, req request, op protocol.Operation, id string) (string, *Operation, error) {
	if req.idempotencyKey == "" {
		return "operation/" + id, nil, nil
	}
	request := fingerprint(req, op)
	for n := 0; ; n++ {
		l, err := c.link(ctx, req, request, n)
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
			operation, err := c.settleAsked(ctx, l.entry)
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

// link reads what the log has under the n-th key of a chain. Peers are read only for an
// operation of the first release that would answer.
func (c *Coordinator) link(ctx context.Context, req request, request string, n int) (l link, err error) {
	l.key = req.idempotencyKey
	if n > 0 {
		l.key = fmt.Sprintf("%s#%d", req.idempotencyKey, n)
	}
	l.entry, err = c.log.Find(ctx, l.key)
	switch {
	case errors.Is(err, wal.ErrNotFound):
		return l, nil
	case err != nil:
		return l, fmt.Errorf("write-ahead log: %w", err)
	}
	l.stored, l.open = true, l.entry.Ended.IsZero()
	j, damaged := decodeJournal(l.entry)
	if l.open {
		l.same = damaged != nil || j.Request == request // what is damaged is not settled
		return l, nil
	}
	if err := json.Unmarshal(l.entry.Outcome, &l.outcome); err != nil {
		return l, fmt.Errorf("outcome of operation %s: %w", l.entry.ID, err)
	}
	now := c.identities.origin()
	l.same, l.committed = l.outcome.Request == "" || l.outcome.Request == request, l.outcome.committed()
	l.signed = j.Origin.Known()
	var seen protocol.Sighting
	if !l.signed && l.same && l.committed && now.Known() {
		seen, l.unread, err = c.sightEnded(ctx, req, j, l)
	}
	l.belongs = protocol.Belong(j.Origin, now, !now.Known(), seen)
	return l, err
}

// refusal is why a request under a key is neither answered nor begun.
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

// sightEnded looks for an operation that has ended in all peers. A removal is seen where
// nothing stands: its answer is true in this ring, too.
func (c *Coordinator) sightEnded(ctx context.Context, req request, j journal, l link) (seen protocol.Sighting, unread map[string]error, err error) {
	peers, err := c.peers(ctx)
	if err != nil {
		return seen, nil, err
	}
	s := c.glance(ctx, req.kind, req.key, peers)
	at := s.early[req.key]
	seen.Found = l.outcome.Removal && len(at) == 0 && len(s.unread) == 0
	for _, m := range at {
		seen.Found = seen.Found || m.bad == nil && m.view.Shows(j.Record, j.Operation.ID, l.entry.ID)
	}
	seen.Unread = len(s.unread) > 0
	return seen, s.unread, nil
}
