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

// onRecord runs a command on a record: the entry of the central log by which the first release
// decided an add. This release makes and commits no records; it only reads and ends them.
func (r *runner) onRecord(ctx context.Context, command protocol.Command, write logWrite) (protocol.Reply, error) {
	log := r.executor.entries.log
	r.entry.turn <- struct{}{}
	defer func() { <-r.entry.turn }()
	own := command.Record == r.machine.Op.ID
	if command.Verb == protocol.ReadRecord {
		d, err := log.Decision(ctx, command.Record)
		switch {
		case errors.Is(err, wal.ErrNoDecisions):
			return protocol.Reply{Class: protocol.NotApplied, Code: protocol.Unavailable},
				fmt.Errorf("operation %s is decided by a record in another log: use the central log of its coordinator: %w", command.Record, err)
		case errors.Is(err, wal.ErrNotFound):
			return protocol.Reply{Class: protocol.NotApplied, Code: protocol.NotFound}, nil
		case err != nil:
			return protocol.Reply{Class: protocol.NotApplied, Code: protocol.Unavailable}, err
		}
		reply := protocol.Reply{Class: protocol.Applied, Code: protocol.OK, Decision: &protocol.Decision{
			UID: d.UID, RV: d.Version, Committed: d.Decided, Of: protocol.Ref{Peer: d.Target, UID: d.TargetUID},
		}}
		if e := r.entry.present(); own && e.Version != "" {
			// If another coordinator took the entry over while this process was paused, keep the
			// old version: each later write by this process must then fail as stale.
			reply.Decision.Taken = d.Owner != e.Owner
			if !reply.Decision.Taken {
				e.Version = d.Version
				r.entry.took(e)
			}
		}
		return reply, nil
	}
	// Withdraw: at this version the record is undecided, so ending it cannot undo a commit.
	e := wal.Entry{ID: command.Record, Version: command.RV}
	result := outcome{State: Ended, Reason: "withdrawn by " + r.executor.opts.Identity}
	if own {
		result = write.result
		if v := r.entry.present().Version; v != "" {
			e.Version = v
		}
	}
	text, err := json.Marshal(result)
	if err == nil {
		err = log.End(context.WithoutCancel(ctx), e, text)
	}
	reply, err := logged(err)
	if reply.Code == protocol.Denied {
		reply = protocol.Reply{Class: protocol.Unknown, Code: protocol.Unavailable} // the log rejected the write, not a peer
	}
	return reply, err
}

// logged classifies the result of a write of the log.
func logged(err error) (protocol.Reply, error) {
	switch {
	case err == nil:
		return protocol.Reply{Class: protocol.Applied, Code: protocol.OK}, nil
	case errors.Is(err, wal.ErrInDoubt):
		return protocol.Reply{Class: protocol.Unknown, Code: protocol.Unavailable}, fmt.Errorf("write-ahead log: %w", err)
	case errors.Is(err, wal.ErrStale), errors.Is(err, wal.ErrNotFound):
		// Another coordinator has taken the entry over, and may have ended it.
		return protocol.Reply{Class: protocol.NotApplied, Code: protocol.Conflict}, fmt.Errorf("write-ahead log: %w", err)
	default:
		return protocol.Reply{Class: protocol.NotApplied, Code: protocol.Denied}, fmt.Errorf("write-ahead log: %w", err)
	}
}
