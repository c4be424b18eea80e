// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/atoll-dev/atoll/adapters/controllerruntime"
	"github.com/atoll-dev/atoll/region"
)

// Provider is the multicluster.Provider of a region.Directory: each peer is a cluster, and the peer's name is the
// cluster's name. Use New. It is safe for concurrent use.
type Provider struct{ clusters *controllerruntime.Clusters }

var (
	_ multicluster.Provider         = (*Provider)(nil)
	_ multicluster.ProviderRunnable = (*Provider)(nil)
)

// New returns the Provider of the peers of d. Pass it to mcmanager.New, whose manager starts it. New does no I/O.
func New(d region.Directory, opts controllerruntime.Options) (*Provider, error) {
	clusters, err := controllerruntime.New(d, opts)
	if err != nil {
		return nil, err
	}
	return &Provider{clusters}, nil
}

// Get returns the cluster of a peer. The error wraps multicluster.ErrClusterNotFound, and region.ErrUnknownPeer or
// controllerruntime.ErrNotEngaged. Get does not block.
func (p *Provider) Get(_ context.Context, name multicluster.ClusterName) (cluster.Cluster, error) {
	cl, err := p.clusters.Get(region.PeerName(name))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", multicluster.ErrClusterNotFound, err)
	}
	return cl, nil
}

// IndexField adds an index to the caches of all peers, present and future; see controllerruntime.Clusters.IndexField.
func (p *Provider) IndexField(ctx context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	return p.clusters.IndexField(ctx, obj, field, extract)
}

// Start engages the peers with a multicluster.Aware, until ctx ends. The manager calls it.
func (p *Provider) Start(ctx context.Context, aware multicluster.Aware) error {
	return p.clusters.Engage(ctx, func(ctx context.Context, peer region.PeerName, cl cluster.Cluster) error {
		return aware.Engage(ctx, multicluster.ClusterName(peer), cl)
	})
}
