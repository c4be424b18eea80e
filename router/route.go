// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"fmt"
	"time"

	"github.com/atoll-dev/atoll/region"
)

// Layer is the origin of an answer.
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

// Route is the answer to a look-up, and its provenance.
type Route struct {
	Region region.Key
	Peer   region.PeerName
	From   Layer
	At     time.Time // when it was last confirmed; zero if it holds now, as all that is FromSource
}

// Age returns how old the answer is: zero if it is FromSource.
func (r Route) Age() time.Duration {
	if r.At.IsZero() {
		return 0
	}
	return max(time.Since(r.At), 0)
}
