// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"fmt"
	"time"

	"github.com/atoll-dev/atoll/region"
)

// Layer says where an answer comes from.
type Layer int

const (
	// FromSource is the Directory's present Snapshot: the truth as far as this process knows it.
	FromSource Layer = iota
	// FromResolver is what Options.Resolver answered this process.
	FromResolver
	// FromCache is what an earlier process wrote into Options.Cache.
	FromCache
)

// String names the layer: "source", "resolver", "cache".
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

// MarshalText is String, so that JSON shows names.
func (l Layer) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// Route is the answer to a look-up, and its provenance.
type Route struct {
	Region region.Key
	Peer   region.PeerName
	From   Layer
	At     time.Time // when it was last known to be so; zero if it is so now, as all that is FromSource
}

// Age is how old the answer is: zero if it is FromSource.
func (r Route) Age() time.Duration {
	if r.At.IsZero() {
		return 0
	}
	return max(time.Since(r.At), 0)
}
