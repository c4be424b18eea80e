// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/atoll-dev/atoll/internal/argument"
	"github.com/atoll-dev/atoll/region"
)

// ErrNotEngaged means that a peer is known and its cluster.Cluster does not run yet: the peer has not answered, or
// Clusters.Start does not run. Start the Clusters, and try again later.
var ErrNotEngaged = errors.New("the peer's cluster does not run yet")

// Options configure Clusters. The zero value works.
type Options struct {
	// Cluster are the options of each peer's cluster.Cluster, such as its scheme and the options of its cache.
	Cluster []cluster.Option
	// SyncTimeout limits how long a new cluster waits until the informers of its indexes have read their objects. After
	// that, the cluster is made anew. Zero means 1 minute.
	SyncTimeout time.Duration
	// Logger is the logger of Clusters and of each peer's cluster. Zero: the one in the context of Start, else that of
	// controller-runtime.
	Logger logr.Logger
}

// Clusters has a cluster.Cluster for each peer of a Directory. It is safe for concurrent use.
type Clusters struct {
	directory region.Directory
	opts      Options

	mu      sync.Mutex
	running map[region.PeerName]cluster.Cluster
	indexes []index
}

// index is an argument of Clusters.IndexField.
type index struct {
	object  client.Object
	field   string
	extract client.IndexerFunc
}

var _ manager.LeaderElectionRunnable = (*Clusters)(nil)

// New returns the Clusters of the peers of d. It does no I/O and starts nothing: call Start, or add the Clusters to a
// manager.
func New(d region.Directory, opts Options) (*Clusters, error) {
	if argument.Missing(d) {
		return nil, errors.New("controllerruntime: the directory is nil: pass a region.Ring, or region.Fixed")
	}
	if opts.SyncTimeout < 0 {
		return nil, fmt.Errorf("controllerruntime: Options.SyncTimeout is %s, want 0 (1 minute) or more", opts.SyncTimeout)
	}
	if opts.SyncTimeout == 0 {
		opts.SyncTimeout = time.Minute
	}
	return &Clusters{directory: d, opts: opts, running: map[region.PeerName]cluster.Cluster{}}, nil
}

// NeedLeaderElection returns false: every replica has caches of all peers.
func (*Clusters) NeedLeaderElection() bool { return false }

// Start runs a cluster.Cluster for each peer, until ctx ends. It blocks, and returns nil when all clusters have ended.
// Only one call of Start or Engage may run at a time.
func (c *Clusters) Start(ctx context.Context) error {
	return c.Engage(ctx, func(context.Context, region.PeerName, cluster.Cluster) error { return nil })
}

// Engage is Start that calls engaged when the cluster of a peer runs. The context of engaged ends when the peer leaves
// the Directory, before another cluster of the same peer is engaged. It does not end when the peer's credentials rotate
// or the peer does not answer for a while. engaged must not block. If it returns an error, the cluster ends and a new
// one is made after a backoff (see region.Engage).
func (c *Clusters) Engage(ctx context.Context, engaged func(context.Context, region.PeerName, cluster.Cluster) error) error {
	logger := c.opts.Logger
	if logger.GetSink() == nil {
		logger = log.FromContext(ctx)
	}
	return region.Engage(log.IntoContext(ctx, logger), c.directory, func(ctx context.Context, conn *region.Conn) error {
		return c.run(ctx, conn, engaged)
	})
}

// run runs the cluster of one peer.
func (c *Clusters) run(ctx context.Context, conn *region.Conn, engaged func(context.Context, region.PeerName, cluster.Cluster) error) error {
	// An informer of a peer that does not answer would block the controllers of all others.
	if _, err := conn.UID(ctx); err != nil {
		return err
	}
	logger := log.FromContext(ctx).WithValues("peer", conn.Peer())
	own := []cluster.Option{func(o *cluster.Options) { o.Logger = logger }}
	cl, err := cluster.New(conn.Config(), append(own, c.opts.Cluster...)...)
	if err != nil {
		return fmt.Errorf("peer %s: %w", conn.Peer(), err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return cl.Start(ctx) })
	group.Go(func() error {
		defer c.leave(conn.Peer())
		if err := c.enter(ctx, conn.Peer(), cl); err != nil {
			return fmt.Errorf("peer %s: %w", conn.Peer(), err)
		}
		if err := engaged(ctx, conn.Peer(), cl); err != nil {
			return fmt.Errorf("peer %s: %w", conn.Peer(), err)
		}
		<-ctx.Done()
		return nil
	})
	return group.Wait()
}

// enter adds the indexes to the new cluster, waits for the informers that they need, and lets Get return the cluster.
func (c *Clusters) enter(ctx context.Context, peer region.PeerName, cl cluster.Cluster) error {
	for n := 0; ; {
		missing := c.enterWith(n, peer, cl)
		if missing == nil {
			return nil
		}
		for _, i := range missing {
			if err := i.add(ctx, cl); err != nil {
				return err
			}
			n++
		}
		if err := c.sync(ctx, cl); err != nil {
			return err
		}
	}
}

// enterWith lets Get return the cluster, which has the first n indexes. If there are more by now, it returns those instead.
func (c *Clusters) enterWith(n int, peer region.PeerName, cl cluster.Cluster) (missing []index) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n < len(c.indexes) {
		return slices.Clone(c.indexes[n:])
	}
	c.running[peer] = cl
	return nil
}

func (c *Clusters) sync(ctx context.Context, cl cluster.Cluster) error {
	ctx, cancel := context.WithTimeout(ctx, c.opts.SyncTimeout)
	defer cancel()
	if !cl.GetCache().WaitForCacheSync(ctx) {
		return fmt.Errorf("the informers of its indexes have not read their objects: %w", context.Cause(ctx))
	}
	return nil
}

func (c *Clusters) leave(peer region.PeerName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.running, peer)
}

// Get returns the cluster.Cluster of a peer, with a typed client and a cache. It stays valid until the peer leaves the
// Directory: credentials that rotate change neither the cluster nor its informers. The error wraps
// region.ErrUnknownPeer or ErrNotEngaged. Get does not block.
//
// The host of GetConfig does not resolve, so streams (exec, attach, port-forward) need Conn.StreamConfig.
func (c *Clusters) Get(peer region.PeerName) (cluster.Cluster, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cl, ok := c.running[peer]; ok {
		return cl, nil
	}
	if _, ok := c.directory.Snapshot().Peer(peer); !ok {
		return nil, fmt.Errorf("peer %q: %w", peer, region.ErrUnknownPeer)
	}
	return nil, fmt.Errorf("peer %q: %w", peer, ErrNotEngaged)
}

// IndexField adds an index to the caches of all peers, present and future. The error names the peers whose cache
// refused it, for example because the peer does not serve the type; the other peers have the index. Add each index once,
// before Start if possible: then no cluster is engaged without it.
func (c *Clusters) IndexField(ctx context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	next := index{obj, field, extract}
	c.mu.Lock()
	c.indexes = append(c.indexes, next)
	running := maps.Clone(c.running)
	c.mu.Unlock()
	var errs []error
	for _, peer := range slices.Sorted(maps.Keys(running)) {
		if err := next.add(ctx, running[peer]); err != nil {
			errs = append(errs, fmt.Errorf("peer %s: %w", peer, err))
		}
	}
	return errors.Join(errs...)
}

// add adds the index to one cluster.
func (i index) add(ctx context.Context, cl cluster.Cluster) error {
	if err := cl.GetFieldIndexer().IndexField(ctx, i.object, i.field, i.extract); err != nil {
		return fmt.Errorf("index field %s of %T: %w", i.field, i.object, err)
	}
	return nil
}
