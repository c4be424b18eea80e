// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"time"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
)

// RemovalCap limits the removals that plain deletes of primaries request (kubectl delete, the
// deletion of a CRD), for kinds that exist Everywhere. It is exceeded if more than Objects and more
// than Share of the primaries of one kind in one peer have a request that is neither committed nor
// released. Then each request is held until a person releases it. All counts are read from the
// peer's API server, so every coordinator decides alike and a restart changes nothing. Calls of
// Coordinator.Remove are not counted.
type RemovalCap struct {
	// Objects is the number of requests that may always continue; zero: 5; negative: no limit.
	Objects int
	// Share is the share of a peer's primaries of the kind, above 0 and at most 1; zero: 0.1.
	Share float64
	// Within is how long each request waits from its deletionTimestamp, so that later requests
	// are counted with it. The clock of the coordinator's host measures it. Zero: 10 seconds;
	// negative: no wait.
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

// Exceeded reports whether the cap is exceeded. The parameter total is the number of a peer's
// primaries of one kind, and deleted the number of these whose removal a plain delete requests. A
// zero field counts as its default.
func (c RemovalCap) Exceeded(deleted, total int) bool {
	return c.withDefaults().limit().Exceeded(protocol.Requests{Homes: total, Requested: deleted})
}

// Settling returns how long, at the time now, a request still has to wait; zero or less if the
// wait is over. The parameter deleted is the deletionTimestamp of the object.
func (c RemovalCap) Settling(deleted, now time.Time) time.Duration {
	return c.withDefaults().Within - now.Sub(deleted)
}

func (c RemovalCap) limit() protocol.Limit {
	return protocol.Limit{Objects: c.Objects, Share: c.Share}
}
