// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/cmd/atoll-manager/config"
	"github.com/atoll-dev/atoll/events"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/central"
	"github.com/atoll-dev/atoll/region/claim"
	"github.com/atoll-dev/atoll/region/servicecluster"
	"github.com/atoll-dev/atoll/region/shard"
	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/clusterdaemonset"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
	"github.com/atoll-dev/atoll/syncer/join"
	"github.com/atoll-dev/atoll/wal/kubelog"
)

// loops makes and runs the loops of a master, each time the installation becomes one.
type loops struct {
	config  *config.Configuration
	central *rest.Config
	plane   region.API
	members *shard.Members
	metrics *metrics
	events  *events.Recorder
	types   []v1alpha1.WorkloadTypeSpec // from files

	ring atomic.Pointer[region.Ring] // ring of the running loops; nil if none run
}

// run makes the loops and runs them until ctx ends or one of them returns. Then it ends all loops.
func (l *loops) run(ctx context.Context) error {
	ring, parts, err := l.make()
	if err != nil {
		return err
	}
	l.ring.Store(ring)
	defer l.ring.Store(nil)
	group, ctx := errgroup.WithContext(ctx)
	for _, start := range parts {
		group.Go(func() error { return start(ctx) })
	}
	return group.Wait()
}

// make returns a new ring and the Start functions of all loops.
func (l *loops) make() (*region.Ring, []func(context.Context) error, error) {
	ring, parts, err := l.makeRing()
	for _, part := range []func(*region.Ring) ([]func(context.Context) error, error){l.makeRegions, l.makeAccounts, l.makeClusters, l.makeWorkloads, l.makeClusterDaemonSets} {
		if err != nil {
			return nil, nil, err
		}
		var more []func(context.Context) error
		more, err = part(ring)
		parts = append(parts, more...)
	}
	return ring, parts, err
}

// makeRing makes the ring, and the loop that keeps the status of Peers.
func (l *loops) makeRing() (*region.Ring, []func(context.Context) error, error) {
	local, err := region.FromConfig(l.central)
	if err != nil {
		return nil, nil, err
	}
	source, err := central.New(l.plane, central.Options{
		Namespace: l.config.Central.Namespace, Local: local, Trust: region.Trust{Exec: l.config.Peers.ExecPlugins},
	})
	if err != nil {
		return nil, nil, err
	}
	ring, err := region.NewRing(source, region.Options{
		Probe: region.ProbeOptions{Interval: l.config.Peers.ProbeInterval.Duration}, Observer: l.metrics.Region(nil),
	})
	if err != nil {
		return nil, nil, err
	}
	peers, err := central.NewPeers(source, ring, central.PeersOptions{
		Shards: l.members, Observer: l.events.Peers(l.plane, l.metrics.Central(nil)),
	})
	if err != nil {
		return nil, nil, err
	}
	return ring, []func(context.Context) error{ring.Start, peers.Start}, nil
}

// makeRegions makes the loops of RegionClaims and ServiceClusters.
func (l *loops) makeRegions(ring *region.Ring) ([]func(context.Context) error, error) {
	claims, err := claim.New(l.plane, ring, claim.Options{
		Namespace: l.config.Central.Namespace, Shard: l.members, Observer: l.events.Claims(ring, l.metrics.Claim(nil)),
	})
	if err != nil {
		return nil, err
	}
	c := &l.config.ServiceClusters
	clusters, err := servicecluster.New(ring, servicecluster.Options{
		Probe: servicecluster.NewProbe(c.Addresses()), Interval: c.ProbeInterval.Duration, Timeout: c.ProbeTimeout.Duration,
		Shard: l.members, Observer: l.events.ServiceClusters(ring, l.metrics.ServiceCluster(nil)),
	})
	if err != nil {
		return nil, err
	}
	return []func(context.Context) error{claims.Start, clusters.Start}, nil
}

// makeAccounts makes the coordinator and the loops of Accounts, of the membership and of the catalogue.
func (l *loops) makeAccounts(ring *region.Ring) ([]func(context.Context) error, error) {
	// All replicas share one log in the plane. Each replica finishes operations that another
	// replica left open.
	log, err := kubelog.New(l.plane, kubelog.Options{})
	if err != nil {
		return nil, err
	}
	sweep := l.config.Fanout.SweepInterval.Duration
	coordinator, err := fanout.New(ring, log, fanout.Options{
		Identity: l.members.Identity(), Kinds: l.kinds(), SweepEvery: sweep, Shard: l.members, Observer: l.events.Fanout(ring, l.metrics.Fanout(nil)),
	})
	if err != nil {
		return nil, err
	}
	observer := l.events.Accounts(l.plane, ring, l.metrics.Account(nil))
	accounts, err := account.NewReplicator(l.plane, ring, coordinator, account.Options{Shard: l.members, Observer: observer})
	if err != nil {
		return nil, err
	}
	upkeep, err := account.NewController(ring, account.ControllerOptions{Shard: l.members, Observer: observer})
	if err != nil {
		return nil, err
	}
	// The Catalog publishes the regions that a tenant may use, in the tenant's namespace in the
	// plane.
	catalog, err := account.NewCatalog(l.plane, ring, account.CatalogOptions{Shard: l.members})
	if err != nil {
		return nil, err
	}
	parts := []func(context.Context) error{coordinator.Start, accounts.Start, upkeep.Start, catalog.Start}
	if *l.config.Peers.Join {
		parts = append(parts, (&membership{ring: ring, coordinator: coordinator, shard: l.members, every: sweep}).Start)
	}
	return parts, nil
}

// makeClusters makes the loop of clusters that join, if the configuration has it.
func (l *loops) makeClusters(*region.Ring) ([]func(context.Context) error, error) {
	c := l.config.Clusters
	if c == nil {
		return nil, nil
	}
	approver, err := join.NewApprover(l.plane, join.ApproverOptions{
		Namespace: c.TokenNamespace, Longest: c.LongestCertificate.Duration, Observer: l.metrics.ofClusters(l.events, l.plane),
	})
	if err != nil {
		return nil, err
	}
	return []func(context.Context) error{approver.Start}, nil
}

// workloads returns the loop of the workloads; nil if the configuration has none.
func (l *loops) workloads() *workloads {
	if l.config.Workloads == nil {
		return nil
	}
	return &workloads{plane: l.plane, config: l.config.Workloads, fixed: l.types, shard: l.members, metrics: l.metrics, events: l.events}
}

// makeWorkloads makes the loop of the workloads, if the configuration has it.
func (l *loops) makeWorkloads(*region.Ring) ([]func(context.Context) error, error) {
	if w := l.workloads(); w != nil {
		return []func(context.Context) error{w.Start}, nil
	}
	return nil, nil
}

// makeClusterDaemonSets makes the loop of ClusterDaemonSets, if the configuration has it.
func (l *loops) makeClusterDaemonSets(*region.Ring) ([]func(context.Context) error, error) {
	c := l.config.ClusterDaemonSets
	if c == nil {
		return nil, nil
	}
	controller, err := clusterdaemonset.New(l.plane, splitter.SyncTargets(l.plane), clusterdaemonset.Options{
		Label: c.ClusterLabel, Shard: l.members, Observer: l.metrics.ClusterDaemonSet(nil),
	})
	if err != nil {
		return nil, err
	}
	return []func(context.Context) error{controller.Start}, nil
}

// kinds returns the kinds of the coordinator. ServiceClusters that were applied in a peer are adopted.
func (l *loops) kinds() []fanout.Kind {
	kinds := account.Kinds()
	for i := range kinds {
		if kinds[i].Mode == fanout.Once {
			kinds[i].AdoptApplied = *l.config.Fanout.AdoptApplied
		}
	}
	return kinds
}
