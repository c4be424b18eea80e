// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/wal"
)

// A log that several coordinators share (a wal.Decider) holds the decisions
// about adds. Each coordinator leaves the operations of the others alone until
// they show no sign of life for one lease, on its own clock, and adopts them
// then by compare-and-swap of the entry's owner.

// watched is another coordinator's entry as it was last seen.
type watched struct {
	version string
	since   time.Time // when it was first seen so, on this coordinator's clock
	seen    time.Time // when it was last seen
}

// lapsed says whether the lease of an entry's holder has run out, as far as has
// been seen here. It has for one's own.
func (c *Coordinator) lapsed(e wal.Entry) bool {
	if c.decider == nil || e.Owner == c.holder {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	w := c.watched[e.ID]
	if w.version != e.Version {
		w = watched{version: e.Version, since: now}
	}
	w.seen = now
	c.watched[e.ID] = w
	return now.Sub(w.since) >= c.opts.LeaseTimeout
}

// idle is how long ago an entry that came to nothing was begun: by the clock of
// who began it if that is this coordinator's identity, else as far as has been
// seen here.
func (c *Coordinator) idle(e wal.Entry) time.Duration {
	now := time.Now()
	if c.decider == nil {
		return now.Sub(e.Began)
	}
	if j, err := decodeJournal(e); err == nil && j.Operation.Coordinator == c.opts.Identity {
		return now.Sub(e.Began)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	w, ok := c.nothing[e.ID]
	if !ok {
		w.since = now
	}
	w.seen = now
	c.nothing[e.ID] = w
	return now.Sub(w.since)
}

// unwatch forgets the entries that are no longer seen: others have ended them.
func (c *Coordinator) unwatch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(c.watched, func(_ string, w watched) bool { return now.Sub(w.seen) > 2*c.opts.LeaseTimeout })
	maps.DeleteFunc(c.nothing, func(_ string, w watched) bool { return now.Sub(w.seen) > 2*c.opts.LeaseTimeout })
	maps.DeleteFunc(c.rest, func(_ string, until time.Time) bool { return now.After(until) })
}

// adopt makes an open entry of a shared log this coordinator's. It watches the
// entry for one lease if it must, and returns errAtWork if its holder is alive.
func (c *Coordinator) adopt(ctx context.Context, e wal.Entry) (wal.Entry, error) {
	if c.decider == nil || e.Owner == c.holder {
		return e, nil
	}
	was := e.Version
	for !c.lapsed(e) {
		select {
		case <-time.After(c.opts.LeaseTimeout / 4):
		case <-ctx.Done():
			return e, errAtWork
		}
		now, err := c.reread(ctx, e)
		if err != nil {
			return e, err
		}
		if now.Version != was {
			return e, errAtWork
		}
	}
	return c.seize(ctx, e)
}

// foreign says whether another coordinator works on an entry of a shared log, or
// did, and how it is named: by its identity, as in claims.
func (c *Coordinator) foreign(e wal.Entry) (identity string, ok bool) {
	if c.decider == nil || e.Owner == c.holder {
		return "", false
	}
	identity = e.Owner
	if at := strings.LastIndex(identity, "/"); at >= 0 {
		identity = identity[:at]
	}
	return identity, identity != c.opts.Identity
}

// takeOver makes an open entry of a shared log this coordinator's at once, be
// its holder alive or not: every write of the holder's to the log fails then.
func (c *Coordinator) takeOver(ctx context.Context, e wal.Entry) error {
	for range takeovers {
		now, err := c.reread(ctx, e)
		if err != nil {
			return err
		}
		if _, err = c.seize(ctx, now); !errors.Is(err, errAtWork) {
			return err
		}
	}
	return errAtWork
}

// takeovers is how often an entry is taken that goes on meanwhile.
const takeovers = 5

// seize writes this coordinator into an entry that is as it was read, or returns
// errAtWork.
func (c *Coordinator) seize(ctx context.Context, e wal.Entry) (wal.Entry, error) {
	c.mu.Lock()
	delete(c.watched, e.ID)
	c.mu.Unlock()
	e.Owner = c.holder
	adopted, err := c.log.Advance(ctx, e)
	switch {
	case errors.Is(err, wal.ErrStale):
		return e, errAtWork
	case err != nil:
		return e, fmt.Errorf("operation %s: write-ahead log: %w", e.ID, err)
	}
	return adopted, nil
}

// keepAlive shows the other coordinators of a shared log that the operation is
// being worked on, until ctx ends.
func (r *runner) keepAlive(ctx context.Context) {
	for {
		select {
		case <-time.After(r.coordinator.opts.LeaseTimeout / 4):
		case <-ctx.Done():
			return
		}
		if err := r.beat(ctx); errors.Is(err, wal.ErrStale) || errors.Is(err, wal.ErrNotFound) {
			return // another has it, or it has ended
		}
	}
}

// beat writes the entry as it is.
func (r *runner) beat(ctx context.Context) error {
	select {
	case r.logTurn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-r.logTurn }()
	e := r.present()
	if e.Version == "" {
		return nil
	}
	now, err := r.coordinator.log.Advance(ctx, e)
	if r.ownStale(e, now, err) {
		now, err = r.coordinator.log.Advance(ctx, now)
	}
	if err == nil {
		r.took(now)
	}
	return err
}

// advance writes what has become of the entry.
func (r *runner) advance(ctx context.Context, e wal.Entry) (wal.Entry, error) {
	now, err := r.coordinator.log.Advance(ctx, e)
	if r.ownStale(e, now, err) {
		e.Version = now.Version
		now, err = r.coordinator.log.Advance(ctx, e)
	}
	return now, err
}

// ownStale says that e is stale for an earlier write whose answer was lost: what
// stands in a shared log as this coordinator's is by this operation, whose writes
// take turns.
func (r *runner) ownStale(e, now wal.Entry, err error) bool {
	return r.coordinator.decider != nil && errors.Is(err, wal.ErrStale) &&
		now.ID == e.ID && now.Owner == e.Owner && now.Ended.IsZero() && now.Version != e.Version
}

func (r *runner) present() wal.Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.entry
}

func (r *runner) took(e wal.Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entry = e
}

// onRecord carries out a command on a record of the central log.
func (r *runner) onRecord(ctx context.Context, command protocol.Command, write logWrite) (protocol.Reply, error) {
	log := r.coordinator.decider
	if log == nil {
		return protocol.Reply{Class: protocol.NotApplied, Code: protocol.Unavailable},
			errors.New("a claim is decided by a record of a central log, and this coordinator has none: use the log that the others use")
	}
	r.logTurn <- struct{}{}
	defer func() { <-r.logTurn }()
	own := command.Record == r.machine.Op.ID
	switch command.Verb {
	case protocol.ReadRecord:
		d, err := log.Decision(ctx, command.Record)
		if errors.Is(err, wal.ErrNotFound) {
			return protocol.Reply{Class: protocol.NotApplied, Code: protocol.NotFound}, nil
		}
		if err != nil {
			return protocol.Reply{Class: protocol.NotApplied, Code: protocol.Unavailable}, err
		}
		reply := recorded(d)
		if e := r.present(); own && e.Version != "" {
			// Whoever took the entry over while this process stood still writes it
			// from then on: the version that this one knows stays stale.
			reply.Decision.Taken = d.Owner != e.Owner
			if !reply.Decision.Taken {
				e.Version = d.Version
				r.took(e)
			}
		}
		return reply, nil
	case protocol.Propose:
		e, d, err := log.Propose(context.WithoutCancel(ctx), write.entry)
		if err == nil {
			r.took(e)
			return recorded(d), nil
		}
		if errors.Is(err, wal.ErrExists) {
			// Another call with this idempotency key was faster.
			return protocol.Reply{Class: protocol.NotApplied, Code: protocol.Denied}, err
		}
		return answered(err)
	case protocol.Decide:
		e := write.entry
		e.Version = r.present().Version
		e, d, err := log.Decide(context.WithoutCancel(ctx), e, command.Decision.Of.Peer, command.Decision.Of.UID)
		if err == nil {
			r.took(e)
			return recorded(d), nil
		}
		return answered(err)
	default: // Withdraw
		d := wal.Decision{ID: command.Record, UID: command.UID, Version: command.RV}
		result := outcome{State: Ended, Reason: "withdrawn by " + r.coordinator.opts.Identity}
		if own {
			result = write.result
			if v := r.present().Version; v != "" {
				d.Version = v
			}
		}
		text, err := json.Marshal(result)
		if err == nil {
			err = log.Withdraw(context.WithoutCancel(ctx), d, text)
		}
		if err != nil {
			return answered(err)
		}
		return protocol.Reply{Class: protocol.Applied, Code: protocol.OK}, nil
	}
}

// recorded is the answer that shows d.
func recorded(d wal.Decision) protocol.Reply {
	return protocol.Reply{Class: protocol.Applied, Code: protocol.OK, Decision: &protocol.Decision{
		UID: d.UID, RV: d.Version, Committed: d.Decided, Of: protocol.Ref{Peer: d.Target, UID: d.TargetUID},
	}}
}

// answered classifies the failure of a write of a record.
func answered(err error) (protocol.Reply, error) {
	err = fmt.Errorf("central log: %w", err)
	if errors.Is(err, wal.ErrStale) || errors.Is(err, wal.ErrNotFound) {
		return protocol.Reply{Class: protocol.NotApplied, Code: protocol.Conflict}, err
	}
	return protocol.Reply{Class: protocol.Unknown, Code: protocol.Unavailable}, err
}
