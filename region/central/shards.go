// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package central

import (
	"context"
	"iter"
	"sync"

	"github.com/atoll-dev/atoll/region"
)

// Shards divides peers and KubeCarriers among the replicas of a program, by name.
type Shards = region.Shard

// owned is a Directory reduced to this replica's peers.
type owned struct {
	region.Directory
	shards Shards
}

func (o owned) Snapshot() *region.Snapshot {
	var peers []region.Peer
	for p := range o.Directory.Snapshot().Peers() {
		if o.shards.Owns(string(p.Name)) {
			peers = append(peers, *p)
		}
	}
	s, err := region.NewSnapshot(peers...)
	if err != nil { // impossible: a part of a Snapshot is valid
		return o.Directory.Snapshot()
	}
	return s
}

func (o owned) Watch(ctx context.Context) iter.Seq[*region.Snapshot] {
	return func(yield func(*region.Snapshot) bool) {
		var wg sync.WaitGroup
		defer wg.Wait()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		moved := make(chan struct{}, 1)
		tell := func() {
			select {
			case moved <- struct{}{}:
			default:
			}
		}
		wg.Go(func() {
			for range o.Directory.Watch(ctx) {
				tell()
			}
		})
		wg.Go(func() {
			for range o.shards.Watch(ctx) {
				tell()
			}
		})
		for {
			select {
			case <-moved:
				if !yield(o.Snapshot()) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}
