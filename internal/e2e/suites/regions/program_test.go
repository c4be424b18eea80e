// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regions_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/central"
	"github.com/atoll-dev/atoll/region/claim"
	"github.com/atoll-dev/atoll/region/shard"
	"github.com/atoll-dev/atoll/wal/kubelog"
)

// program runs all loops for a central plane while the plane is a master.
type program struct {
	config   *rest.Config
	plane    region.API
	members  *shard.Members
	observer *region.Observer

	loops atomic.Pointer[loops] // the running loops; nil if none run
}

// loops holds the loops of one period in which the installation is a master.
type loops struct {
	ring        *region.Ring
	coordinator *fanout.Coordinator
}

// newProgram returns a replica with the given identity. It shares the work with the other replicas
// of its group.
func newProgram(config *rest.Config, group, identity string, observer *region.Observer) (*program, error) {
	plane, err := region.APIFor(config)
	if err != nil {
		return nil, err
	}
	members, err := shard.New(plane, central.Namespace, group, shard.Options{Identity: identity, Lease: 5 * time.Second})
	if err != nil {
		return nil, err
	}
	return &program{config: config, plane: plane, members: members, observer: observer}, nil
}

// Start runs the program until ctx ends.
func (p *program) Start(ctx context.Context) error {
	master, err := central.NewMaster(p.plane, p.run, central.MasterOptions{Shards: p.members})
	if err != nil {
		return err
	}
	return together(ctx, p.members.Start, master.Start)
}

// run runs the loops of a master.
func (p *program) run(ctx context.Context) error {
	local, err := region.FromConfig(p.config)
	if err != nil {
		return err
	}
	source, err := central.New(p.plane, central.Options{Local: local})
	if err != nil {
		return err
	}
	ring, err := region.NewRing(source, region.Options{
		Probe:    region.ProbeOptions{Interval: time.Second, Timeout: 2 * time.Second, MaxBackoff: 2 * time.Second},
		Observer: p.observer,
	})
	if err != nil {
		return err
	}
	peers, err := central.NewPeers(source, ring, central.PeersOptions{Shards: p.members})
	if err != nil {
		return err
	}
	claims, err := claim.New(p.plane, ring, claim.Options{Shard: p.members, CallTimeout: 5 * time.Second})
	if err != nil {
		return err
	}
	log, err := kubelog.New(p.plane, kubelog.Options{})
	if err != nil {
		return err
	}
	coordinator, err := fanout.New(ring, log, fanout.Options{
		Identity: p.members.Identity(), Kinds: kinds(), SweepEvery: time.Second,
	})
	if err != nil {
		return err
	}
	accounts, err := account.NewReplicator(p.plane, ring, coordinator, account.Options{Shard: p.members})
	if err != nil {
		return err
	}
	upkeep, err := account.NewController(ring, account.ControllerOptions{Shard: p.members})
	if err != nil {
		return err
	}
	catalog, err := account.NewCatalog(p.plane, ring, account.CatalogOptions{Shard: p.members})
	if err != nil {
		return err
	}
	p.loops.Store(&loops{ring: ring, coordinator: coordinator})
	defer p.loops.Store(nil)
	return together(ctx, ring.Start, peers.Start, claims.Start, coordinator.Start, accounts.Start, upkeep.Start, catalog.Start)
}

// kinds returns account.Kinds, with AdoptApplied set for ServiceClusters: in the proposal, people
// create ServiceClusters by applying them.
func kinds() []fanout.Kind {
	kinds := account.Kinds()
	for i := range kinds {
		kinds[i].AdoptApplied = kinds[i].GroupKind() == fanout.ServiceClusters().GroupKind()
	}
	return kinds
}

// together runs all functions until ctx ends or one of them returns, and then ends the other
// functions.
func together(ctx context.Context, starts ...func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	problems := make([]error, len(starts))
	var running sync.WaitGroup
	for i, start := range starts {
		running.Go(func() {
			defer cancel()
			problems[i] = start(ctx)
		})
	}
	running.Wait()
	return errors.Join(problems...)
}
