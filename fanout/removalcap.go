// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"time"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
)

// RemovalCap limits removals that plain deletes of primaries request (kubectl
// delete, the deletion of a CRD), for kinds that exist Everywhere. It is exceeded
// when, of one kind in one peer, more than Objects and more than Share of the
// primaries are deleted and wait: then each that waits is held until a person
// releases it. It is judged by what the peer's API server shows, so every coordinator
// judges alike and a restart changes nothing. Removals that somebody asks a
// Coordinator for with Remove are not counted.
type RemovalCap struct {
	// Objects is how many may go in any case; zero: 5; negative: there is no limit.
	Objects int
	// Share is which part of a peer's primaries of the kind may go, above 0 and at
	// most 1; zero: 0.1.
	Share float64
	// Within is how long each deletion waits, from its deletionTimestamp, for others
	// to be counted with it, by the clock of the coordinator's host; zero: 10 seconds;
	// negative: it does not wait.
	Within time.Duration
}

func (c RemovalCap) withDefaults() RemovalCap {
	if c.Objects == 0 {
		c.Objects = 5
	}
	if c.Share == 0 {
		c.Share = 0.1
	}
	if c.Within == 0 {
		c.Within = 10 * time.Second
	}
	return c
}

// Exceeded says whether so many of so many primaries are too many to go at once. A
// field that is zero counts as its default.
func (c RemovalCap) Exceeded(deleted, total int) bool {
	return c.withDefaults().limit().Exceeded(protocol.Requests{Homes: total, Requested: deleted})
}

// Settling is how long a deletion of that time still waits for others to be counted
// with it; zero or less: it does not.
func (c RemovalCap) Settling(deleted, now time.Time) time.Duration {
	return c.withDefaults().Within - now.Sub(deleted)
}

func (c RemovalCap) limit() protocol.Limit {
	return protocol.Limit{Objects: c.Objects, Share: c.Share}
}
