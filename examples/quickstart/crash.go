// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/wal"
)

// killBeforeCommit kills a coordinator that has reserved a name everywhere and would commit next.
// After the recovery, no peer may have an object with this name.
func (s *story) killBeforeCommit(ctx context.Context) error {
	return s.kill(ctx, "db-2", beforeCommit)
}

// killAfterCommit kills a coordinator after its commit, before it returns a result. The object must
// stay.
func (s *story) killAfterCommit(ctx context.Context) error {
	return s.kill(ctx, "db-3", afterCommit)
}

// kill lets another process add a ServiceCluster to the first peer, kills that process, and
// recovers the operation from the killed process's log.
func (s *story) kill(ctx context.Context, name string, when moment) error {
	o := s.serviceCluster(name)
	e := errand{
		Peers: s.ring.files, Log: s.path("killed-" + name),
		Account: s.account, Name: name, Target: s.ring.peer(0), When: when,
	}
	s.killed = append(s.killed, e.Log)
	if when == afterCommit {
		s.added = append(s.added, o)
	}
	pid, err := e.killAt(ctx)
	if err != nil {
		return err
	}
	s.out.note("Process %d was killed (SIGKILL) %s. It left:", pid, when)
	if err := s.show(ctx, o); err != nil {
		return err
	}
	operations, err := s.recoverLog(ctx, e.Log)
	if err != nil {
		return err
	}
	if len(operations) != 1 {
		return fmt.Errorf("%s held %d operations, not one", e.Log, len(operations))
	}
	if op := operations[0]; op.State != fanout.Done && when == afterCommit {
		return fmt.Errorf("operation %s is %s, although it was committed", op.ID, op.State)
	} else if op.State == fanout.Done && when == beforeCommit {
		return fmt.Errorf("operation %s is %s, although it was not committed", op.ID, op.State)
	}
	s.out.note("Another coordinator recovered it from that log: %s. Now there is:", when.outcome())
	return s.show(ctx, o)
}

// recoverLog settles the open operations in the log of a killed coordinator.
func (s *story) recoverLog(ctx context.Context, path string) (operations []*fanout.Operation, err error) {
	heir, journal, err := newCoordinator(s.ring, path, fanout.Options{
		Identity: "heir",
		// The killed process had a response to every request, so no request can still be in flight.
		// By default an aborted operation stays in the log for some minutes, in case a late request
		// creates a reservation.
		MaxInFlight: time.Nanosecond,
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, journal.Close()) }()
	if err := s.showLog(ctx, journal); err != nil {
		return nil, err
	}
	if operations, err = heir.Recover(ctx); err != nil {
		return nil, err
	}
	if err := allSettled(ctx, journal); err != nil {
		return nil, err
	}
	s.killed = slices.DeleteFunc(s.killed, func(p string) bool { return p == path })
	return operations, nil
}

// showLog prints the open operations of a log.
func (s *story) showLog(ctx context.Context, log wal.Log) error {
	for entry, err := range log.Open(ctx) {
		if err != nil {
			return err
		}
		d, err := fanout.Describe(entry)
		if err != nil {
			return err
		}
		s.out.row("its log", fmt.Sprintf("%s %s %s in %s: %s, operation %s", d.Action, d.Kind.Kind, d.Key, d.Primary, entry.State, entry.ID))
	}
	return nil
}

// allSettled returns an error if a log has open operations. The error names the first of them.
func allSettled(ctx context.Context, log wal.Log) error {
	for entry, err := range log.Open(ctx) {
		if err != nil {
			return err
		}
		return fmt.Errorf("operation %s is still open in its log", entry.ID)
	}
	return nil
}

// moment is the moment at which a coordinator is killed.
type moment string

const (
	beforeCommit moment = "just before its commit"
	afterCommit  moment = "just after its commit"
)

// outcome returns the outcome of an operation whose coordinator was killed at that moment.
func (m moment) outcome() string {
	if m == afterCommit {
		return "in effect, and complete"
	}
	return "never in effect, and taken down"
}

// reached reports whether the step e is the commit in the given peer: before the request, or after
// its reply, depending on m.
func (m moment) reached(e fanout.StepEvent, peer region.PeerName) bool {
	commit := e.Verb == "put" && e.Stage == "Configured" && e.Peer == peer
	return commit && e.Done == (m == afterCommit)
}
