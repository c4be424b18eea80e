// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/region"
)

// origin returns the ring that this coordinator works on. The result is not Known if the ring is
// not known yet.
func (s *identities) origin() protocol.Origin {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.judge()
	return protocol.OriginOf(s.presences(), s.judged)
}

// acquaint identifies the clusters of the peers, unless the ring is known.
func (cs *clusters) acquaint(ctx context.Context) {
	if cs.identities.origin().Known() {
		return
	}
	for p := range cs.directory.Snapshot().Peers() {
		if conn, err := cs.directory.Conn(p.Name); err == nil {
			// One call identifies all peers; those that do not answer are left out.
			_ = cs.meetAll(region.WithAttempt(ctx, new(region.Attempt)), conn)
			return
		}
	}
}

// checkLog returns an error that wraps ErrOtherLog if an operation of another ring is open in the
// log: a coordinator of this ring does not find its objects, and must not take it for undone. After
// an entry that stores this ring, no later entry is of another ring, so checkLog stops there. Once
// the log is checked and the ring is known, checkLog does nothing.
func (id *Identity) checkLog(ctx context.Context) error {
	if id.logOurs.Load() {
		return nil
	}
	id.clusters.acquaint(ctx)
	for entry, err := range id.entries.log.Open(ctx) {
		if err != nil {
			continue // the recovery of the entry reports the error
		}
		if _, err := id.ofThisRing(ctx, entry); errors.Is(err, ErrOtherLog) {
			return err
		}
		if j, err := decodeJournal(entry); err == nil && j.Origin.Known() {
			break // no later entry of this log is of another ring
		}
	}
	if id.clusters.identities.origin().Known() {
		id.logOurs.Store(true)
	}
	return nil
}

// ringText describes a ring in error texts.
func ringText(o protocol.Origin) string {
	var peers []string
	for _, p := range slices.Sorted(maps.Keys(o.Clusters)) {
		peers = append(peers, p+" "+o.Clusters[p])
	}
	return fmt.Sprintf("%s (%s)", cmp.Or(o.Ring, "without an ID"), strings.Join(peers, ", "))
}
