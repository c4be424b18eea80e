// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/internal/backoff"
	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
)

// peer is the state of one engaged peer.
type peer struct {
	name         region.PeerName
	conn         *region.Conn
	claims       *loop.Objects
	clusters     *loop.Objects
	uid          atomic.Pointer[types.UID] // of the cluster
	answered     atomic.Bool               // the peer was fresh at least once
	claimRecords statementRecords          // of RegionClaims
	gates        statementRecords          // of ServiceClusters
	oldClaims    outdated
	oldClusters  outdated
}

// engage runs the caches of one peer's RegionClaims and ServiceClusters, and reads the UID of its cluster, until ctx
// ends.
func (a *Arbiter) engage(ctx context.Context, conn *region.Conn) error {
	ctx = logr.NewContext(ctx, logging.From(ctx).WithValues("peer", conn.Peer()))
	p := &peer{name: conn.Peer(), conn: conn}
	flows := func() {
		a.touchPeer(p)
		a.touchOpen(p.name)
	}
	// Keep all of managedFields in the caches: they show which clients write the statuses.
	p.claims = loop.NewObjects(conn.Dynamic(), claims, loop.ObjectsOptions{Changed: a.touch, Flows: flows})
	p.clusters = loop.NewObjects(conn.Dynamic(), clusters, loop.ObjectsOptions{Changed: a.touch, Flows: flows})
	a.mu.Lock()
	a.peers[p.name] = p
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.peers[p.name] == p {
			delete(a.peers, p.name)
		}
	}()
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { p.identify(ctx, flows) })
	wg.Go(func() { _ = p.claims.Start(ctx) })
	wg.Go(func() { _ = p.clusters.Start(ctx) })
	<-ctx.Done()
	return nil
}

// identify reads the UID of the peer's cluster, with retries.
func (p *peer) identify(ctx context.Context, found func()) {
	log := logging.From(ctx)
	backoff.Retry(ctx, backoff.Doubling(time.Second, 15*time.Second), func(ctx context.Context) error {
		uid, err := p.conn.UID(ctx)
		if err != nil {
			return err
		}
		p.uid.Store(&uid)
		found()
		return nil
	}, func(err error, delay time.Duration) {
		log.V(1).Info("Peer is not identified yet", "reason", err.Error(), "again", delay.String())
	})
}

// fresh reports whether the cache of claims is synced and the UID of the peer's cluster is known.
func (p *peer) fresh() bool {
	fresh := p.claims.Err() == nil && p.uid.Load() != nil
	if fresh {
		p.answered.Store(true)
	}
	return fresh
}

func (p *peer) claimClient(k region.Key) dynamic.ResourceInterface {
	return p.conn.Dynamic().Resource(claims).Namespace(k.Provider)
}

func (p *peer) clusterClient(k region.Key) dynamic.ResourceInterface {
	return p.conn.Dynamic().Resource(clusters).Namespace(k.Provider)
}

// engaged returns the engaged peers, unordered.
func (a *Arbiter) engaged() []*peer {
	a.mu.Lock()
	defer a.mu.Unlock()
	peers := make([]*peer, 0, len(a.peers))
	for _, p := range a.peers {
		peers = append(peers, p)
	}
	return peers
}

// holderOf returns the peer that a Lease names.
func holderOf(lease *unstructured.Unstructured) region.PeerName {
	name, _, _ := unstructured.NestedString(lease.Object, "spec", "holderIdentity")
	return region.PeerName(name)
}
