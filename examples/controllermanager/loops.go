// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/events"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/central"
	"github.com/atoll-dev/atoll/region/claim"
	"github.com/atoll-dev/atoll/region/shard"
	"github.com/atoll-dev/atoll/wal/kubelog"
)

// blueprint holds the parts from which run makes the loops, each time the installation becomes a
// master.
type blueprint struct {
	config  *rest.Config
	plane   region.API
	members *shard.Members
	numbers *numbers
	events  *events.Recorder
	opts    options

	ring atomic.Pointer[region.Ring] // ring of the running loops; nil if none run
}

// ready returns an error if the running loops have not read their peers.
func (b *blueprint) ready() error {
	ring := b.ring.Load()
	if ring == nil {
		return nil // not a master: no peers to read
	}
	select {
	case <-ring.Synced():
		return nil
	default:
		return errors.New("the Peers of the central plane have not been read yet")
	}
}

// run makes the loops and runs them until ctx ends or one of them returns. Then it ends all loops.
func (b *blueprint) run(ctx context.Context) error {
	local, err := region.FromConfig(b.config)
	if err != nil {
		return err
	}
	source, err := central.New(b.plane, central.Options{Namespace: b.opts.Namespace, Local: local})
	if err != nil {
		return err
	}
	ring, err := region.NewRing(source, region.Options{Probe: b.probe(), Observer: b.numbers.ofRegion()})
	if err != nil {
		return err
	}
	peers, err := central.NewPeers(source, ring, central.PeersOptions{
		Shards: b.members, Observer: b.events.Peers(b.plane, b.numbers.ofCentral()),
	})
	if err != nil {
		return err
	}
	claims, err := claim.New(b.plane, ring, claim.Options{
		Namespace: b.opts.Namespace, Shard: b.members, Observer: b.events.Claims(ring, b.numbers.ofClaim()),
	})
	if err != nil {
		return err
	}
	// All replicas share one log in the plane. Each replica finishes operations that another
	// replica left open.
	log, err := kubelog.New(b.plane, kubelog.Options{})
	if err != nil {
		return err
	}
	coordinator, err := fanout.New(ring, log, fanout.Options{
		Identity: b.members.Identity(), Kinds: account.Kinds(), SweepEvery: b.sweepEvery(), Shard: b.members,
	})
	if err != nil {
		return err
	}
	observer := b.events.Accounts(b.plane, ring, b.numbers.ofAccount())
	accounts, err := account.NewReplicator(b.plane, ring, coordinator, account.Options{Shard: b.members, Observer: observer})
	if err != nil {
		return err
	}
	upkeep, err := account.NewController(ring, account.ControllerOptions{Shard: b.members, Observer: observer})
	if err != nil {
		return err
	}
	// The Catalog publishes the regions that a tenant may use, in the tenant's namespace in the
	// plane.
	catalog, err := account.NewCatalog(b.plane, ring, account.CatalogOptions{Shard: b.members})
	if err != nil {
		return err
	}
	membership := &membership{ring: ring, coordinator: coordinator, shard: b.members, every: b.sweepEvery()}

	b.ring.Store(ring)
	defer b.ring.Store(nil)
	group, ctx := errgroup.WithContext(ctx)
	for _, start := range []func(context.Context) error{
		ring.Start, peers.Start, claims.Start, coordinator.Start, accounts.Start, upkeep.Start, catalog.Start, membership.Start,
	} {
		group.Go(func() error { return start(ctx) })
	}
	return group.Wait()
}

func (b *blueprint) probe() region.ProbeOptions {
	if b.opts.Hurry {
		return region.ProbeOptions{Interval: time.Second, MaxBackoff: time.Second}
	}
	return region.ProbeOptions{}
}

func (b *blueprint) sweepEvery() time.Duration {
	if b.opts.Hurry {
		return time.Second
	}
	return 30 * time.Second
}
