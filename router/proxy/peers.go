// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"iter"
	"sync"

	"github.com/atoll-dev/atoll/internal/argument"
	"github.com/atoll-dev/atoll/region"
)

// peerProvider is the provider of regions that stand for peers.
const peerProvider = "peer"

// Peers returns a view of d in which each peer serves exactly one region, with the peer's name and the provider
// "peer". Use it as the directory of the router in [Options].Peers.
func Peers(d region.Directory) region.Directory {
	if argument.Missing(d) {
		return nil // refused by router.New
	}
	return &peersDirectory{Directory: d}
}

type peersDirectory struct {
	region.Directory
	mu       sync.Mutex
	of, made *region.Snapshot // of is the last Snapshot of Directory that was converted; made is the result
}

func (d *peersDirectory) Snapshot() *region.Snapshot { return d.asRegions(d.Directory.Snapshot()) }

func (d *peersDirectory) Watch(ctx context.Context) iter.Seq[*region.Snapshot] {
	return func(yield func(*region.Snapshot) bool) {
		for s := range d.Directory.Watch(ctx) {
			if !yield(d.asRegions(s)) {
				return
			}
		}
	}
}

func (d *peersDirectory) asRegions(s *region.Snapshot) *region.Snapshot {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s == d.of {
		return d.made
	}
	var peers []region.Peer
	for p := range s.Peers() {
		alone := *p
		alone.Regions = []region.Key{{Provider: peerProvider, Name: string(p.Name)}}
		peers = append(peers, alone)
	}
	snapshot, err := region.NewSnapshot(peers...)
	if err != nil {
		snapshot = &region.Snapshot{} // cannot happen: the names are valid and distinct in s
	}
	d.of, d.made = s, snapshot
	return snapshot
}
