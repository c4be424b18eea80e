// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/examples/internal/stage"
)

// tick is the period of the controllers of a cluster in memory.
const tick = 100 * time.Millisecond

// simulate plays the controllers, the scheduler and the nodes of each cluster until ctx ends, as far as this story needs
// them. The returned function waits until all have ended.
func simulate(ctx context.Context, clusters []*stage.Cluster) (wait func() error) {
	var group errgroup.Group
	for _, c := range clusters {
		group.Go(func() error {
			if err := addNodes(ctx, c); err != nil {
				return fmt.Errorf("%s: %w", c.Name, err)
			}
			autoscalers := &scaler{}
			for ctx.Err() == nil {
				for _, work := range []func(context.Context, *stage.Cluster) error{autoscalers.scale, roll, allow} {
					err := work(ctx, c)
					if err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
						return fmt.Errorf("%s: %w", c.Name, err)
					}
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

// addNodes adds two ready nodes to a cluster.
func addNodes(ctx context.Context, c *stage.Cluster) error {
	for _, name := range []string{"node-1", "node-2"} {
		node := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": name},
			"status": map[string]any{
				"allocatable": map[string]any{"cpu": "16", "memory": "64Gi", "pods": "110"},
				"conditions":  []any{map[string]any{"type": "Ready", "status": "True"}},
			},
		}}
		if _, err := in(c.Conn.Dynamic(), nodes).Create(ctx, node, metav1.CreateOptions{}); err != nil {
			return err
		}
		if err := report(ctx, c, node, node.Object["status"]); err != nil {
			return err
		}
	}
	return nil
}

// resourceOf maps each kind whose status the controllers report to its resource.
var resourceOf = map[string]schema.GroupVersionResource{
	"Node": nodes, "Pod": pods, "Deployment": deployments, "HorizontalPodAutoscaler": autoscalers, "PodDisruptionBudget": budgets,
}

// report writes the status of an object in a cluster, if it differs. If obj has a resourceVersion and the object has changed
// since, the write fails with a Conflict.
func report(ctx context.Context, c *stage.Cluster, obj *unstructured.Unstructured, status any) error {
	before, err := json.Marshal(obj.Object["status"])
	if err != nil {
		return err
	}
	after, err := json.Marshal(status)
	if err != nil || obj.GetResourceVersion() != "" && string(before) == string(after) {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": obj.GetResourceVersion()}, "status": status})
	if err != nil {
		return err
	}
	_, err = in(c.Conn.Dynamic(), resourceOf[obj.GetKind()]).Patch(ctx, obj.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "controller"}, "status")
	return err
}
