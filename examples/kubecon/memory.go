// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/examples/internal/stage"
	"github.com/atoll-dev/atoll/region"
)

// script limits how many replicas may be ready in a cluster: first none, then some, then all.
type script struct {
	mu  sync.Mutex
	act int
}

func newScript() *script { return &script{} }

// play begins the next act. It does nothing on a nil script, which a play with real clusters has.
func (s *script) play() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.act++
}

// some is the number of ready replicas in the second act.
var some = map[string]int64{"cluster-1": 1, "cluster-2": 7}

// ready returns the number of ready replicas that a cluster reports next, at most wanted: in the
// second act the number in the map some, in the last act one more than the present number, which the
// caller passes. It returns false in the first act, in which no status is written.
func (s *script) ready(cluster string, is, wanted int64) (int64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.act {
	case 0:
		return 0, false
	case 1:
		return min(some[cluster], wanted), true
	}
	return min(is+1, wanted), true
}

// tick is the time until another replica is ready.
const tick = 100 * time.Millisecond

// runClusters plays the Deployment controller of each cluster, until ctx ends: it reports the ready
// replicas of the script. The returned function waits for the end of these controllers.
func runClusters(ctx context.Context, m *stage.Memory, s *script) (wait func() error) {
	var group errgroup.Group
	for i, server := range m.Servers[1:] {
		group.Go(func() error {
			api, err := region.APIFor(server.Config())
			if err != nil {
				return err
			}
			c := api.Dynamic().Resource(deployments).Namespace(namespace)
			for ctx.Err() == nil {
				if err := reportReady(ctx, c, m.Files[1+i].Name, s); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
					return err
				}
				select {
				case <-time.After(tick):
				case <-ctx.Done():
				}
			}
			return nil
		})
	}
	return group.Wait
}

// reportReady writes the status of all Deployments of a cluster.
func reportReady(ctx context.Context, c dynamic.ResourceInterface, cluster string, s *script) error {
	list, err := c.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		obj := &list.Items[i]
		is, of := ready(obj)
		n, looks := s.ready(cluster, int64(is), int64(of))
		if !looks || int64(is) == n && complete(obj) {
			continue
		}
		wanted := int64(of)
		progress := map[string]any{"type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated"}
		if n == wanted {
			progress["reason"] = "NewReplicaSetAvailable"
		}
		obj.Object["status"] = map[string]any{
			"observedGeneration": obj.GetGeneration(), "replicas": wanted, "updatedReplicas": wanted,
			"readyReplicas": n, "availableReplicas": n, "unavailableReplicas": wanted - n, "conditions": []any{progress},
		}
		if _, err := c.UpdateStatus(ctx, obj, metav1.UpdateOptions{FieldManager: "controller"}); err != nil {
			return err
		}
	}
	return nil
}
