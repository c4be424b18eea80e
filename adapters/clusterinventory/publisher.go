// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterinventory

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/atoll-dev/atoll/internal/argument"
	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
)

// FieldManager is the field manager of a Publisher's writes.
const FieldManager = "atoll-cluster-inventory"

// PublisherOptions configure a Publisher. Namespace and Manager are required.
type PublisherOptions struct {
	// Namespace is the namespace of the ClusterProfiles. It must exist.
	Namespace string
	// Manager is the name of the cluster manager in the profiles, a label value. Each ring that is published in the
	// namespace needs its own: a Publisher deletes the profiles of its Manager whose peers it does not have.
	Manager string
	// Shard selects the profiles of this replica, by the names of peers, if several replicas publish one ring. Nil means
	// all. Replicas without a Shard would overwrite each other's conditions while they differ about the health of a peer.
	Shard region.Shard

	// Logger receives log lines. Zero: the logger of Start's context, else slog.Default. To log nothing, use
	// logr.FromSlogHandler(slog.DiscardHandler).
	Logger logr.Logger
}

// Publisher publishes the peers of a Directory as ClusterProfiles: one for each peer, with the name of the peer. Use
// NewPublisher.
type Publisher struct {
	hub       region.API
	directory region.Directory
	opts      PublisherOptions
	profiles  *loop.Objects
	queue     *loop.Queue
	started   atomic.Bool

	mu       sync.Mutex
	snapshot *region.Snapshot // nil: none was published yet
	facts    map[region.PeerName]facts
	foreign  map[string]bool // profiles of other managers that are logged
}

// NewPublisher returns a Publisher of the peers of d to hub. It does no I/O and starts nothing; see Start. The error
// names the argument or option.
func NewPublisher(hub region.API, d region.Directory, opts PublisherOptions) (*Publisher, error) {
	switch {
	case argument.Missing(hub):
		return nil, errors.New("clusterinventory: hub is nil; make one with region.APIFor")
	case argument.Missing(d):
		return nil, errors.New("clusterinventory: the directory is nil: pass the region.Ring of the peers")
	case opts.Namespace == "":
		return nil, errors.New("clusterinventory: PublisherOptions.Namespace is empty: give the namespace of the ClusterProfiles")
	case opts.Manager == "":
		return nil, errors.New("clusterinventory: PublisherOptions.Manager is empty: give the cluster manager a name")
	}
	if msgs := validation.IsValidLabelValue(opts.Manager); len(msgs) > 0 {
		return nil, fmt.Errorf("clusterinventory: PublisherOptions.Manager: %s", strings.Join(msgs, "; "))
	}
	p := &Publisher{
		hub: hub, directory: d, opts: opts, queue: loop.NewQueue(loop.QueueOptions{}),
		facts: map[region.PeerName]facts{}, foreign: map[string]bool{},
	}
	p.profiles = loop.NewObjects(hub.Dynamic(), resource(), loop.ObjectsOptions{
		Namespace: opts.Namespace, Strip: loop.KeepManager(FieldManager),
		Changed: func(key types.NamespacedName) { p.queue.Add(key.Name) },
		Flows:   p.enqueue,
	})
	return p, nil
}

// Start publishes until ctx ends, waits for its goroutines, then returns nil. It blocks. An unreachable hub or peer does
// not end it: Start retries. Nothing is written before the Directory has its first Snapshot, and nothing while the
// profiles are as they must be. Call it once.
func (p *Publisher) Start(ctx context.Context) error {
	if p.hub == nil {
		return errors.New("clusterinventory: the Publisher was not made by NewPublisher")
	}
	if p.started.Swap(true) {
		return errors.New("clusterinventory: Start was called twice")
	}
	ctx, cancel := context.WithCancel(logging.Into(ctx, p.opts.Logger, "clusterinventory"))
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { _ = p.profiles.Start(ctx) })
	wg.Go(func() { _ = p.queue.Start(ctx, p.work) })
	wg.Go(func() { loop.Resharded(ctx, p.opts.Shard, p.enqueue) })
	wg.Go(func() {
		for snapshot := range p.directory.Watch(ctx) {
			p.mu.Lock()
			p.snapshot = snapshot
			p.mu.Unlock()
			p.enqueue()
		}
	})
	return region.Engage(ctx, p.directory, p.observe)
}

// enqueue queues the names of all peers and profiles.
func (p *Publisher) enqueue() {
	p.mu.Lock()
	snapshot := p.snapshot
	p.mu.Unlock()
	if snapshot == nil {
		return // nothing is decided before
	}
	for peer := range snapshot.Peers() {
		p.queue.Add(string(peer.Name))
	}
	for _, key := range p.profiles.Keys() {
		p.queue.Add(key.Name)
	}
}
