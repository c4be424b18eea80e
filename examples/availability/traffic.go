// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/examples/internal/stage"
	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/splitter"
)

// requests is the external metric that the autoscalers read in each cluster. Instead of a metrics server, a custom type
// serves it.
var requests = schema.GroupVersionResource{Group: "external.metrics.k8s.io", Version: "v1beta1", Resource: "requests"}

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// traffic is a balancer in front of the clusters. It sends each reachable cluster requests in proportion to the replicas
// of the cluster's shard upstream.
type traffic struct {
	upstream *loop.Objects // Deployments
	clusters []*stage.Cluster

	mu     sync.Mutex
	total  int   // requests per second
	sent   []int // thousandths of requests per second, by cluster
	recent []division
}

// division has the requests of each cluster from one time on.
type division struct {
	at   time.Time
	sent []int
}

// memory is how long earlier requests may decide the replicas: stabilizationWindowSeconds of the autoscalers, and their
// time to react.
const memory = stabilization + 5*time.Second

func newTraffic(on *stage.Stage, upstream *loop.Objects) *traffic {
	return &traffic{upstream: upstream, clusters: on.Clusters, sent: make([]int, len(on.Clusters))}
}

// set changes the requests per second of all clusters together.
func (t *traffic) set(total int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.total = total
}

// needed returns how many replicas the requests need in all clusters together, and how many are enough: an autoscaler
// accepts a deviation of a tenth.
func (t *traffic) needed() (replicas, enough int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return max(minReplicas, ceil(t.total, perReplica)), max(minReplicas, ceil(10*t.total, 11*perReplica))
}

// wanted returns how many replicas the autoscalers of all clusters may want together. Each autoscaler rounds up, and acts by
// the highest number of requests within memory.
func (t *traffic) wanted() (sum int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.recent) > 1 && time.Since(t.recent[1].at) > memory {
		t.recent = t.recent[1:]
	}
	for i := range t.clusters {
		most := 0
		for _, d := range t.recent {
			most = max(most, ceil(d.sent[i], 1000*perReplica))
		}
		sum += most
	}
	return min(max(minReplicas, sum), maxReplicas)
}

func ceil(n, by int) int { return (n + by - 1) / by }

// run measures and divides the requests until ctx ends.
func (t *traffic) run(ctx context.Context) error {
	for _, c := range t.clusters {
		if err := measure(ctx, c); err != nil {
			return err
		}
	}
	for ctx.Err() == nil {
		t.divide(ctx)
		select {
		case <-time.After(sampling):
		case <-ctx.Done():
		}
	}
	return nil
}

// divide sends each cluster its part of the requests.
func (t *traffic) divide(ctx context.Context) {
	weights, sum := make([]int, len(t.clusters)), 0
	for i, c := range t.clusters {
		if c.Link.IsCut() {
			continue
		}
		obj, ok := t.upstream.Get(types.NamespacedName{Namespace: namespace, Name: splitter.ShardName(shop, c.Name)})
		if ok && obj.GetDeletionTimestamp() == nil {
			weights[i] = number(obj, "spec", "replicas")
			sum += weights[i]
		}
	}
	t.mu.Lock()
	total, before := t.total, t.sent
	t.mu.Unlock()
	if sum == 0 {
		return
	}
	sent := make([]int, len(t.clusters))
	for i, c := range t.clusters {
		sent[i] = 1000 * total * weights[i] / sum
		if sent[i] == before[i] {
			continue
		}
		patch := fmt.Appendf(nil, `{"value":"%dm"}`, sent[i])
		if _, err := c.Conn.Dynamic().Resource(requests).Namespace(namespace).Patch(ctx, requests.Resource, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "balancer"}); err != nil {
			return
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !slices.Equal(t.sent, sent) {
		t.sent, t.recent = sent, append(t.recent, division{time.Now(), sent})
	}
}

// measure makes a cluster serve the metric, with the value zero.
func measure(ctx context.Context, c *stage.Cluster) error {
	preserve := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	crd := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{
			"name":        requests.Resource + "." + requests.Group,
			"annotations": map[string]any{"api-approved.kubernetes.io": "unapproved, it replaces a metrics server in a demonstration"},
		},
		"spec": map[string]any{
			"group": requests.Group, "scope": "Namespaced",
			"names": map[string]any{"plural": requests.Resource, "singular": "request", "kind": "ExternalMetricValue", "listKind": "ExternalMetricValueList"},
			"versions": []any{map[string]any{
				"name": requests.Version, "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": preserve},
			}},
		},
	}}
	_, err := c.Conn.Dynamic().Resource(definitions).Create(ctx, crd, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create the type %s in %s: %w", crd.GetName(), c.Name, err)
	}
	values := c.Conn.Dynamic().Resource(requests).Namespace(namespace)
	return stage.Await(ctx, "the metric in "+c.Name, func(ctx context.Context) (bool, error) {
		_, err := values.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": requests.GroupVersion().String(), "kind": "ExternalMetricValue", "metadata": map[string]any{"name": requests.Resource},
			"metricName": requests.Resource, "timestamp": "2026-01-01T00:00:00Z", "value": "0",
		}}, metav1.CreateOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil // the type is not served yet
		}
		return err == nil || apierrors.IsAlreadyExists(err), nil
	})
}
