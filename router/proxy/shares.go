// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import "github.com/atoll-dev/atoll/region"

// flow is the key by which requests are counted: their region and their caller. The zero region means no region.
type flow struct {
	region region.Key
	caller string
}

// everywhere stands for the region of requests about all regions.
var everywhere = region.Key{Name: "*"}

// bounds are the maximum numbers of concurrent requests: in all, to one region, and by one caller.
type bounds struct{ all, region, caller int }

// shares count requests by flow. They do no I/O, and are not safe for concurrent use.
//
// No flow can use up a bound, because each flow may take only as many places as it leaves free: one caller gets at
// most half of a region's places, one region or one caller at most half of all places. If n flows want more than that,
// each of them gets 1/(n+1) of the places, and the same part stays free for the next flow.
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

// level names the bound that keeps a flow from taking more places.
type level int

const (
	free level = iota
	byFlow
	byCaller
	byRegion
	byAll
)

// bindingBound returns a bound that keeps f from taking one more place, or free if no bound does.
func (s *shares) bindingBound(f flow) level {
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

// ofRegion returns the bound of a region. Requests about all regions take a place in each region, so their bound is
// half of a region's.
func (s *shares) ofRegion(k region.Key) int {
	if k == everywhere {
		return max(1, s.bounds.region/2)
	}
	return s.bounds.region
}

// take adds one request to the count of f, without checking a bound.
func (s *shares) take(f flow) { s.add(f, 1) }

// give subtracts one request from the count of f.
func (s *shares) give(f flow) { s.add(f, -1) }

func (s *shares) add(f flow, n int) {
	s.all += n
	count(s.callers, f.caller, n)
	count(s.flows, f, n)
	if f.region != (region.Key{}) {
		count(s.regions, f.region, n)
	}
}

// count adds n to the entry of k. It deletes an entry that becomes zero, so that the maps do not grow.
func count[K comparable](of map[K]int, k K, n int) {
	if n += of[k]; n > 0 {
		of[k] = n
	} else {
		delete(of, k)
	}
}
