// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/wal"
)

// Ring returns the ID of the ring of the configured peers, or "" if that ring has none yet or the
// peers are in no ring. It reads the peers unless the ring is known, writes nothing, and blocks
// until the peers have answered or timed out. The error is why the ring is not known: no member
// answers, or none of the answers counts.
func (id *Identity) Ring(ctx context.Context) (string, error) {
	id.clusters.acquaint(ctx)
	if ring := id.clusters.identities.origin(); ring.Known() {
		return ring.Ring, nil
	}
	peers, err := id.Peers(ctx)
	if err != nil {
		return "", err
	}
	if ring := id.clusters.identities.origin(); ring.Known() {
		return ring.Ring, nil
	}
	var errs []error
	for o := range peers.All() {
		errs = append(errs, o.Err, o.Value.Problem)
	}
	if err := errors.Join(errs...); err != nil {
		return "", fmt.Errorf("the ring of the peers is not known: %w", err)
	}
	return "", nil // the peers are in no ring
}

// CheckLog returns nil if the Coordinator may settle all open operations of its log: each operation
// began in this ring, or is in effect nowhere. Otherwise the error wraps ErrOtherLog and names an
// operation, or wraps an *InDoubtError, or is an error of Ring, or means that an entry cannot be
// judged because its data or the log cannot be read. An *InDoubtError is about an operation of the
// first release, whose entry does not store its ring: no peer that answers shows the operation, and
// a peer that does not answer may show it. CheckLog writes nothing. It blocks until the necessary
// peers were read.
func (id *Identity) CheckLog(ctx context.Context) error {
	if _, err := id.Ring(ctx); err != nil {
		return err
	}
	var unclear []error
	for entry, err := range id.entries.log.Open(ctx) {
		if err != nil {
			continue // the recovery of the entry reports the error
		}
		_, err := id.ofThisRing(ctx, entry)
		if errors.Is(err, ErrOtherLog) {
			return err
		}
		unclear = append(unclear, err)
	}
	return errors.Join(unclear...)
}

// SignLog writes this ring into the open entries of the log that store no ring: those of the
// first release. The caller vouches that these entries are of this ring, which CheckLog cannot
// know. SignLog returns the IDs of the operations that it signed. In a shared log it waits for
// one lease for a sign of life of an entry's owner, and skips the entries of owners that are
// alive.
func (id *Identity) SignLog(ctx context.Context) ([]string, error) {
	if _, err := id.Ring(ctx); err != nil {
		return nil, err
	}
	ring := id.clusters.identities.origin()
	if !ring.Known() {
		return nil, fmt.Errorf("sign the log: %w: the configured peers are in no ring", ErrMembership)
	}
	var signed []string
	var errs []error
	for entry, err := range id.entries.log.Open(ctx) {
		if err != nil {
			continue // the recovery of the entry reports the error
		}
		j, err := decodeJournal(entry)
		if err != nil || j.Origin.Known() {
			continue
		}
		if err := id.sign(ctx, entry, j, ring); err != nil {
			errs = append(errs, fmt.Errorf("sign operation %s: %w", entry.ID, err))
			continue
		}
		signed = append(signed, entry.ID)
	}
	return signed, errors.Join(errs...)
}

func (id *Identity) sign(ctx context.Context, entry wal.Entry, j journal, ring protocol.Origin) error {
	entry, err := id.entries.adopt(ctx, entry)
	if err != nil {
		return err
	}
	j.Origin = ring
	if entry.Data, err = j.encode(); err != nil {
		return err
	}
	_, err = id.entries.log.Advance(ctx, entry)
	return err
}

// ofThisRing returns the data of a log entry. It returns an error if this coordinator may not
// settle the entry. If a peer shows the operation, the data gets this ring, which the next write of
// the entry stores.
func (id *Identity) ofThisRing(ctx context.Context, entry wal.Entry) (journal, error) {
	j, err := decodeJournal(entry)
	if err != nil {
		return j, err
	}
	now := id.clusters.identities.origin()
	effectless, err := id.effectless(ctx, entry, j)
	if err != nil {
		return j, err
	}
	var seen protocol.Sighting
	var unread map[string]error
	if !j.Origin.Known() && !effectless {
		if seen, unread, err = id.find(ctx, entry, j); err != nil {
			return j, err
		}
	}
	switch protocol.Belong(j.Origin, now, effectless, seen) {
	case protocol.Unclear:
		id.entries.postpone(entry.ID)
		return j, unclear(entry.ID, unread)
	case protocol.OfAnother:
		return j, otherLog(entry.ID, j, now)
	}
	if seen.Found {
		j.Origin = id.clusters.identities.origin()
	}
	return j, nil
}

func (id *Identity) effectless(ctx context.Context, entry wal.Entry, j journal) (bool, error) {
	switch {
	case j.Origin.Known():
		return false, nil // the stored ring decides
	case j.Change != nil:
		return protocol.EffectlessChange(j.Change.Record), nil
	case !j.Operation.Central:
		return protocol.Effectless(j.Operation, j.Record, entry.State, false), nil
	}
	decision, err := id.entries.log.Decision(ctx, j.Operation.ID)
	if err != nil && !errors.Is(err, wal.ErrNotFound) && !errors.Is(err, wal.ErrNoDecisions) {
		return false, fmt.Errorf("operation %s: write-ahead log: %w", entry.ID, err)
	}
	return protocol.Effectless(j.Operation, j.Record, entry.State, err == nil && !decision.Decided), nil
}

// find looks for an operation in all peers: in the objects of its name, or in the PeerSets.
// unread has the errors of peers that were not read.
func (id *Identity) find(ctx context.Context, entry wal.Entry, j journal) (seen protocol.Sighting, unread map[string]error, err error) {
	peers, err := id.clusters.peers(ctx)
	if err != nil {
		return seen, nil, err
	}
	var s survey
	if j.Change == nil {
		kind, err := id.kinds.find(j.groupKind())
		if err != nil {
			return seen, nil, fmt.Errorf("operation %s: %w", entry.ID, err)
		}
		s = id.surveyor.glance(ctx, kind, j.key(), peers)
		for _, m := range s.early[j.key()] {
			seen.Found = seen.Found || m.bad == nil && m.view.Shows(j.Record, j.Operation.ID, entry.ID)
		}
	} else {
		s = survey{unread: map[string]error{}, sets: map[string]protocol.PeerSet{}}
		s.gather(peers, func(peer region.PeerName) ([]unstructured.Unstructured, protocol.PeerSet, error) {
			set, err := id.clusters.peerSet(ctx, peer)
			return nil, set, err
		})
		for _, set := range s.sets {
			seen.Found = seen.Found || set.Shows(j.Change.Operation)
		}
	}
	seen.Unread = len(s.unread) > 0
	return seen, s.unread, nil
}

func unclear(id string, unread map[string]error) error {
	doubt := &InDoubtError{Operation: id, Settles: "it is of the first release, or began before any peer had answered, so it does not have its ring: it is settled when all peers were read, or say that it is of this ring (Identity.SignLog, atollctl wal recover --this-ring)"}
	var errs []error
	for _, p := range slices.Sorted(maps.Keys(unread)) {
		doubt.Peers = append(doubt.Peers, region.PeerName(p))
		errs = append(errs, unread[p])
	}
	doubt.Err = errors.Join(errs...)
	return doubt
}

func otherLog(id string, j journal, now protocol.Origin) error {
	if j.Origin.Known() {
		return fmt.Errorf("%w: its operation %s was begun in ring %s, and this ring is %s: use the log of this ring, or correct the peers; nothing was changed",
			ErrOtherLog, id, ringText(j.Origin), ringText(now))
	}
	return fmt.Errorf("%w: its operation %s, %s, is of the first release, or began before any peer had answered, so it does not have its ring, and no peer of ring %s shows it: if its process is still starting, this error goes away by itself; otherwise use the log of this ring, correct the peers, or say that it is of this ring (Identity.SignLog, atollctl wal recover --this-ring); nothing was changed",
		ErrOtherLog, id, j.about(), ringText(now))
}

// about describes the operation.
func (j journal) about() string {
	if j.Change != nil {
		return fmt.Sprintf("%s of %s", j.Change.Operation.Kind, j.Change.Operation.Peer)
	}
	return fmt.Sprintf("%s %s %s", j.Operation.Action, j.Kind, keyString(j.key()))
}
