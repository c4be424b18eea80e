// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package central

import (
	"context"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/region"
)

// deal assigns keys to replicas.
type deal struct {
	mu      sync.Mutex
	owners  map[string]string
	changed chan struct{}
}

func (d *deal) give(owners map[string]string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.owners = owners
	close(d.changed)
	d.changed = make(chan struct{})
}

// replica is the view of one replica of a deal.
type replica struct {
	deal *deal
	name string
}

func (r replica) Owns(key string) bool {
	r.deal.mu.Lock()
	defer r.deal.mu.Unlock()
	return r.deal.owners[key] == r.name
}

func (r replica) Watch(ctx context.Context) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for n := uint64(1); ctx.Err() == nil; n++ {
			r.deal.mu.Lock()
			changed := r.deal.changed
			r.deal.mu.Unlock()
			if !yield(n) {
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
			}
		}
	}
}

// Each Peer is reconciled by the replica that owns it, and by another replica after a move. All replicas are
// connected to all peers.
func TestReplicasSharePeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "eu", "us")
		w.register("eu", "us")
		d := &deal{owners: map[string]string{"eu": "a", "us": "b"}, changed: make(chan struct{})}
		var mu sync.Mutex
		said := map[string][]region.PeerName{}
		programs := map[string]*program{}
		for _, name := range []string{"a", "b"} {
			programs[name] = w.start(PeersOptions{Shards: replica{d, name}, Observer: &Observer{Ready: func(_ context.Context, e ReadyEvent) {
				mu.Lock()
				defer mu.Unlock()
				said[name] = append(said[name], e.Peer)
			}}})
		}
		speaks := func(name string) map[region.PeerName]bool {
			mu.Lock()
			defer mu.Unlock()
			set := map[region.PeerName]bool{}
			for _, peer := range said[name] {
				set[peer] = true
			}
			said[name] = nil
			return set
		}
		pass(3 * time.Second)
		for _, name := range []string{"eu", "us"} {
			require.Equal(t, "True Reachable", w.ready(name))
		}
		require.Equal(t, map[region.PeerName]bool{"eu": true}, speaks("a"))
		require.Equal(t, map[region.PeerName]bool{"us": true}, speaks("b"))
		for _, p := range programs {
			for _, name := range []region.PeerName{"eu", "us"} {
				conn, err := p.ring.Conn(name)
				require.NoError(t, err)
				require.Equal(t, region.Healthy, conn.Health().State)
			}
		}
		w.claim(w.servers["eu"], "loodse", "eu-west-1", "Bound")
		pass(time.Second)
		require.Equal(t, []string{"eu-west-1.loodse"}, programs["a"].served("eu"))
		require.Equal(t, []string{"eu-west-1.loodse"}, programs["b"].served("eu"))

		w.plane.Reset()
		d.give(map[string]string{"eu": "b", "us": "b"})
		pass(time.Minute)
		require.Empty(t, writes(w.plane), "a move changes nothing")
		w.servers["eu"].Partition(true)
		pass(time.Minute)
		require.Equal(t, "False Unreachable", w.ready("eu"))
		require.Empty(t, speaks("a"))
		require.Equal(t, map[region.PeerName]bool{"eu": true}, speaks("b"))

		// Without an owner nothing is written. The next owner continues.
		d.give(map[string]string{"us": "b"})
		w.servers["eu"].Partition(false)
		pass(time.Hour)
		require.Equal(t, "False Unreachable", w.ready("eu"))
		d.give(map[string]string{"us": "b", "eu": "a"})
		pass(3 * time.Second)
		require.Equal(t, "True Reachable", w.ready("eu"))
		require.Equal(t, map[region.PeerName]bool{"eu": true}, speaks("a"))
		w.plane.Reset()
		pass(time.Hour)
		require.Empty(t, writes(w.plane))
	})
}

// Two programs that observe different states overwrite each other's status, at a limited rate.
func TestTwoViewsWithoutShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "eu")
		w.register("eu")
		w.start(PeersOptions{})
		blind := w.start(PeersOptions{})
		pass(3 * time.Second)
		w.plane.Reset()
		// The second program considers the peer unreachable.
		conn, err := blind.ring.Conn("eu")
		require.NoError(t, err)
		conn.Close()
		const while = 10 * time.Minute
		pass(while)
		limit := 2 * (int(while/budgetInterval) + budgetSize)
		require.Less(t, len(writes(w.plane)), limit)
	})
}
