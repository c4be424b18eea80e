// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"maps"
	"slices"
	"sync"

	"github.com/atoll-dev/atoll/region"
)

// Delivered remembers which regions have delivered objects to one cache, by namespace, types and selectors of its
// informers. It is the memory of RequireDelivered. The zero value remembers nothing and works. It is safe for concurrent
// use.
type Delivered struct {
	mu      sync.Mutex
	regions map[string]map[region.Key]bool // by query: true if the region has delivered, false if it is missing
}

// RequireDelivered returns a Policy for the lists and watches of one cache. The first list, or the initial events of a
// watch, need the regions that answer, at least one. From then on they need every region whose objects the cache may have,
// so that the cache never takes the objects of an unreachable region for deleted. The watch delivers the objects of a
// missing region as ADDED when the region answers. Pass the same d for all requests of the cache, and for no other
// request. Without a d, the Policy is All.
func RequireDelivered(d *Delivered) Policy {
	if d == nil {
		return All()
	}
	return Policy{kind: kindRequireDelivered, delivered: d}
}

// Missing returns the regions that have not delivered the objects of all informers of the cache, sorted. It does not name a
// region that is unreachable now and has delivered before.
func (d *Delivered) Missing() []region.Key {
	d.mu.Lock()
	defer d.mu.Unlock()
	missing := map[region.Key]bool{}
	for _, regions := range d.regions {
		for k, delivered := range regions {
			if !delivered {
				missing[k] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(missing), compareRegions)
}

// has reports whether the region may have objects in the cache.
func (d *Delivered) has(query string, k region.Key) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.regions[query][k]
}

// note remembers the outcomes of a list, or of initial events, that the cache gets.
func (d *Delivered) note(query string, outcomes []Outcome) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, o := range outcomes {
		switch {
		case o.State == OK || o.State == Empty:
			d.set(query, o.Region, true)
		case d.regions[query][o.Region]:
		case o.State == NotServed: // it has no objects, so it is not missing
			delete(d.regions[query], o.Region)
		default:
			d.set(query, o.Region, false)
		}
	}
}

// set remembers one region. The caller holds mu.
func (d *Delivered) set(query string, k region.Key, delivered bool) {
	if d.regions == nil {
		d.regions = map[string]map[region.Key]bool{}
	}
	if d.regions[query] == nil {
		d.regions[query] = map[region.Key]bool{}
	}
	d.regions[query][k] = delivered
}

// keep forgets the regions that have left: a watch has delivered the deletion of their objects.
func (d *Delivered) keep(query string, sources []source) {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.regions[query], func(k region.Key, _ bool) bool {
		return !slices.ContainsFunc(sources, func(s source) bool { return s.region == k })
	})
}
