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

// origin is the ring that this coordinator works on, as far as it is known.
func (s *identities) origin() protocol.Origin {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.judge()
	return protocol.OriginOf(s.presences(), s.judged)
}

// acquaint asks the peers which clusters they are, unless that is known.
func (c *Coordinator) acquaint(ctx context.Context) {
	if c.identities.origin().Known() {
		return
	}
	for p := range c.directory.Snapshot().Peers() {
		if conn, err := c.directory.Conn(p.Name); err == nil {
			// One asks all; those that do not answer have no say.
			_ = c.meetAll(region.WithAttempt(ctx, new(region.Attempt)), conn)
			return
		}
	}
}

// checkLog refuses a log that has an operation of another ring: what this ring lacks of it
// was not undone. The first entry that has its ring tells for all that follow. It is asked
// until the ring is known, and then no longer.
func (c *Coordinator) checkLog(ctx context.Context) error {
	if c.logOurs.Load() {
		return nil
	}
	c.acquaint(ctx)
	for entry, err := range c.log.Open(ctx) {
		if err != nil {
			continue // its recovery reports that
		}
		if _, err := c.ofThisRing(ctx, entry); errors.Is(err, ErrOtherLog) {
			return err
		}
		if j, err := decodeJournal(entry); err == nil && j.Origin.Known() {
			break // nothing was begun in it for another ring
		}
	}
	if c.identities.origin().Known() {
		c.logOurs.Store(true)
	}
	return nil
}

// ringText names a ring for people.
func ringText(o protocol.Origin) string {
	var peers []string
	for _, p := range slices.Sorted(maps.Keys(o.Clusters)) {
		peers = append(peers, p+" "+o.Clusters[p])
	}
	return fmt.Sprintf("%s (%s)", cmp.Or(o.Ring, "without an ID"), strings.Join(peers, ", "))
}
