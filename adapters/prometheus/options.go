// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package atollprometheus

import (
	"fmt"
	"math"

	"github.com/atoll-dev/atoll/region"
)

// Options configures New. The zero value is valid.
type Options struct {
	// Directory returns the peers whose health is collected as atoll_peer_healthy. It also bounds the label region of
	// the Proxy and Router metrics: a region that the Directory does not have gets the value "unknown". It is called at
	// each collection and each request, possibly from many goroutines, so it must return quickly. Its result may be nil
	// while there are no peers, and may change. If Directory is nil, there is no atoll_peer_healthy, and that label is
	// empty.
	Directory func() region.Directory

	// Buckets replaces the upper bounds of the buckets of histograms, by the name of the metric. The bounds must rise. A
	// histogram without an entry keeps the bounds that suit its usual durations.
	Buckets map[string][]float64
}

// checkBuckets returns an error if bounds are not valid for a histogram. The Prometheus client panics on such bounds.
func checkBuckets(name string, bounds []float64) error {
	if len(bounds) == 0 {
		return fmt.Errorf("atollprometheus: Options.Buckets[%q] is empty: give bounds, or remove the entry for the default", name)
	}
	for i, bound := range bounds {
		if math.IsNaN(bound) || i > 0 && bound <= bounds[i-1] {
			return fmt.Errorf("atollprometheus: Options.Buckets[%q][%d] is %v: each bound must be a number above the one before it", name, i, bound)
		}
	}
	return nil
}
