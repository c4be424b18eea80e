// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package servicecluster

import (
	"context"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/v1alpha1"
)

var (
	clusters = v1alpha1.GroupVersion.WithResource("serviceclusters")
	secrets  = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
)

// peer is the state of one engaged peer.
type peer struct {
	name     region.PeerName
	conn     *region.Conn
	clusters *loop.Objects
	queue    *loop.Queue // of this peer alone, so that no other peer delays it
	slots    *slots
	history  *history
}

// engage runs the cache and the workers of one peer until ctx ends.
func (c *Controller) engage(ctx context.Context, conn *region.Conn) error {
	ctx = logr.NewContext(ctx, logging.From(ctx).WithValues("peer", conn.Peer()))
	queue := loop.NewQueue(loop.QueueOptions{Workers: c.opts.Workers})
	p := &peer{
		name: conn.Peer(), conn: conn, queue: queue, slots: newSlots(c.opts.PerAccount, queue.Add),
		history: &history{kept: map[string]remembered{}, wrote: map[string]repetition{}},
	}
	p.clusters = loop.NewObjects(conn.Dynamic(), clusters, loop.ObjectsOptions{
		Strip: loop.KeepManager(FieldManager), Changed: c.touch, Flows: c.touchAll,
	})
	c.mu.Lock()
	c.peers[p.name] = p
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.peers[p.name] == p {
			delete(c.peers, p.name)
		}
	}()
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { _ = p.clusters.Start(ctx) })
	return queue.Start(ctx, func(ctx context.Context, key string) (again, error) { return c.work(ctx, p, key) })
}

// get returns the cached ServiceCluster of the name.
func (p *peer) get(key types.NamespacedName) (*v1alpha1.ServiceCluster, bool) {
	obj, ok := p.clusters.Get(key)
	if !ok {
		return nil, false
	}
	return decode(obj)
}

// decode returns false for an object that does not convert, which no API server with the CRD stores.
func decode(obj *unstructured.Unstructured) (*v1alpha1.ServiceCluster, bool) {
	var c v1alpha1.ServiceCluster
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &c); err != nil {
		return nil, false
	}
	return &c, true
}
