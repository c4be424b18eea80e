// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package servicecluster

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/argument"
	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/internal/rivals"
	"github.com/atoll-dev/atoll/region"
)

// Controller probes the cluster of every ServiceCluster in every peer and writes the conditions Claimed, Reachable and
// Ready, the phase and the version. Any number of Controllers may run over the same peers. Make one with New.
type Controller struct {
	directory region.Directory
	opts      Options
	started   atomic.Bool

	mu    sync.Mutex
	peers map[region.PeerName]*peer // the engaged peers
}

// New returns a Controller for the peers of d. New does no I/O. The error names the wrong argument or option.
func New(d region.Directory, opts Options) (*Controller, error) {
	if argument.Missing(d) {
		return nil, errors.New("servicecluster: Directory is nil: pass the region.Ring of the peers")
	}
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Controller{directory: d, opts: opts, peers: map[region.PeerName]*peer{}}, nil
}

// Start works until ctx ends, waits for its goroutines, then returns nil. An unreachable peer does not end it: Start
// retries, and the other peers are not affected. Call it once.
func (c *Controller) Start(ctx context.Context) error {
	if c.directory == nil {
		return errors.New("servicecluster: the Controller was not made by New")
	}
	ctx = logging.Into(ctx, c.opts.Logger, "servicecluster")
	if c.started.Swap(true) {
		return errors.New("servicecluster: Start was called twice")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { loop.Resharded(ctx, c.opts.Shard, c.touchAll) })
	return region.Engage(ctx, c.directory, c.engage)
}

// touch queues a name in every peer: a ServiceCluster without a claim depends on the other peers.
func (c *Controller) touch(key types.NamespacedName) {
	for _, p := range c.engaged() {
		p.queue.Add(loop.KeyText(key))
	}
}

// touchAll queues every known ServiceCluster.
func (c *Controller) touchAll() {
	for _, p := range c.engaged() {
		for _, key := range p.clusters.Keys() {
			p.queue.Add(loop.KeyText(key))
		}
	}
}

// engaged returns the engaged peers, unordered.
func (c *Controller) engaged() []*peer {
	c.mu.Lock()
	defer c.mu.Unlock()
	peers := make([]*peer, 0, len(c.peers))
	for _, p := range c.peers {
		peers = append(peers, p)
	}
	return peers
}

// occupancy returns what the other peers hold of the name, and all ServiceClusters of the name without a claim if there
// are several. A guard for this peer belongs to an adoption of the
// ServiceCluster itself.
func (c *Controller) occupancy(of *peer, key types.NamespacedName) (occupancy, []rivals.Rival) {
	o := free
	var unclaimed []rivals.Rival
	seen := map[region.PeerName]bool{of.name: true}
	for _, p := range c.engaged() {
		seen[p.name] = p.name == of.name || p.clusters.Err() == nil
		other, ok := p.get(key)
		switch {
		case !ok:
		case stageOf(other) == "":
			unclaimed = append(unclaimed, rivals.Rival{UID: string(other.UID), Created: other.CreationTimestamp.UTC()})
		case isPrimary(other):
			return held, nil
		case other.Spec.Fanout.Claim != nil && region.PeerName(other.Spec.Fanout.Claim.Target) != of.name:
			o = held
		}
	}
	if len(unclaimed) > 1 { // a guard only shows which of them a coordinator began to adopt
		return contested, unclaimed
	}
	if o == held {
		return held, nil
	}
	for p := range c.directory.Snapshot().Peers() {
		if !seen[p.Name] {
			o = unseen
		}
	}
	return o, nil
}
