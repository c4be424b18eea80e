// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"fmt"
	"time"

	"github.com/atoll-dev/atoll/region"
)

// Layer is the part of the Router that an answer comes from.
type Layer int

const (
	// FromSource is the Directory's present Snapshot, the authority for this process.
	FromSource Layer = iota
	// FromResolver is an answer of Options.Resolver to this process.
	FromResolver
	// FromCache is a route that an earlier process saved in Options.Cache.
	FromCache
)

// String returns the layer's name: "source", "resolver", "cache".
func (l Layer) String() string {
	switch l {
	case FromSource:
		return "source"
	case FromResolver:
		return "resolver"
	case FromCache:
		return "cache"
	default:
		return fmt.Sprintf("Layer(%d)", int(l))
	}
}

// MarshalText returns String, so that JSON shows names.
func (l Layer) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// Route is the answer to a look-up, with its origin.
type Route struct {
	Region region.Key
	Peer   region.PeerName
	From   Layer
	At     time.Time // when the route was last confirmed; zero if it is valid now, as every route FromSource is
}

// Age returns how old the answer is. An answer FromSource has the age zero.
func (r Route) Age() time.Duration {
	if r.At.IsZero() {
		return 0
	}
	return max(time.Since(r.At), 0)
}
