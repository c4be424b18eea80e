// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import "github.com/atoll-dev/atoll/region"

// flow is what requests are counted by: where they go, and who makes them. A zero region stands for none.
type flow struct {
	region region.Key
	caller string
}

// everywhere is the region of requests that are about all regions.
var everywhere = region.Key{Name: "*"}

// bounds are how much may be taken at a time: in all, of one region, and by one caller.
type bounds struct{ all, region, caller int }

// shares count what is taken. They are pure, and not safe for concurrent use.
//
// No level can be used up by one taker, because each may have only as much as it leaves free: of one region, one caller
// gets at most half; of all, one region or caller does. With n takers that want more, each gets a part of 1/(n+1), and
// as much stays free for one that comes later.
type shares struct {
	bounds  bounds
	all     int
	regions map[region.Key]int
	callers map[string]int
	flows   map[flow]int
}

func newShares(b bounds) shares {
	return shares{bounds: b, regions: map[region.Key]int{}, callers: map[string]int{}, flows: map[flow]int{}}
}

// level is a bound that keeps a flow from taking more.
type level int

const (
	free level = iota
	byFlow
	byCaller
	byRegion
	byAll
)

// held returns the innermost bound that keeps f from taking one more; free: none does.
func (s *shares) held(f flow) level {
	left, callers := s.bounds.all-s.all, s.callers[f.caller]
	least := s.bounds.caller - callers
	regions, ofRegion := 0, left
	if f.region != (region.Key{}) {
		regions, ofRegion = s.regions[f.region], s.ofRegion(f.region)
		least = min(least, ofRegion-regions)
	}
	switch {
	case left <= 0:
		return byAll
	case callers >= s.bounds.caller:
		return byCaller
	case regions >= ofRegion:
		return byRegion
	case s.flows[f] >= least:
		return byFlow
	case callers >= left:
		return byCaller
	case f.region != (region.Key{}) && regions >= left:
		return byRegion
	}
	return free
}

// ofRegion is the bound of a region. Requests to all regions count in each, so that half of it stays for its own.
func (s *shares) ofRegion(k region.Key) int {
	if k == everywhere {
		return max(1, s.bounds.region/2)
	}
	return s.bounds.region
}

// take counts one of f, whether or not it is held.
func (s *shares) take(f flow) { s.add(f, 1) }

// give counts one of f less.
func (s *shares) give(f flow) { s.add(f, -1) }

func (s *shares) add(f flow, n int) {
	s.all += n
	count(s.callers, f.caller, n)
	count(s.flows, f, n)
	if f.region != (region.Key{}) {
		count(s.regions, f.region, n)
	}
}

// count keeps nothing of those that have nothing, so that the maps are no larger than what is taken.
func count[K comparable](of map[K]int, k K, n int) {
	if n += of[k]; n > 0 {
		of[k] = n
	} else {
		delete(of, k)
	}
}
