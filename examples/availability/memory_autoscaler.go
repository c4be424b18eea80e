// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/examples/internal/stage"
)

// scaler plays the controller of HorizontalPodAutoscalers: each one sets the replicas of its Deployment by the requests of
// the cluster. As with Kubernetes, a deviation of up to a tenth changes nothing, and the Deployment shrinks to the highest
// number that was recommended in stabilizationWindowSeconds.
type scaler struct {
	recent []recommendation
}

// recommendation is the number of replicas that the requests needed at a time.
type recommendation struct {
	at       time.Time
	replicas int
}

// stabilize returns the highest recommendation of the window.
func (s *scaler) stabilize(replicas int) int {
	now := time.Now()
	s.recent = slices.DeleteFunc(s.recent, func(r recommendation) bool { return now.Sub(r.at) > stabilization })
	s.recent = append(s.recent, recommendation{now, replicas})
	for _, r := range s.recent {
		replicas = max(replicas, r.replicas)
	}
	return replicas
}

func (s *scaler) scale(ctx context.Context, c *stage.Cluster) error {
	list, err := in(c.Conn.Dynamic(), autoscalers).List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) == 0 {
		return err
	}
	metric, err := in(c.Conn.Dynamic(), requests).Get(ctx, requests.Resource, metav1.GetOptions{})
	if err != nil {
		return err
	}
	load, err := resource.ParseQuantity(fmt.Sprint(metric.Object["value"]))
	if err != nil {
		return fmt.Errorf("the metric %s: %w", requests.Resource, err)
	}
	for i := range list.Items {
		if err := s.scaleOne(ctx, c, &list.Items[i], int(load.MilliValue())); err != nil {
			return err
		}
	}
	return nil
}

func (s *scaler) scaleOne(ctx context.Context, c *stage.Cluster, autoscaler *unstructured.Unstructured, load int) error {
	target, _, _ := unstructured.NestedString(autoscaler.Object, "spec", "scaleTargetRef", "name")
	obj, err := in(c.Conn.Dynamic(), deployments).Get(ctx, target, metav1.GetOptions{})
	if err != nil {
		return err
	}
	present := number(obj, "spec", "replicas")
	if present == 0 {
		return nil // an autoscaler is paused while its target has zero replicas
	}
	desired := present
	if served := 1000 * perReplica * number(obj, "status", "replicas"); 10*load < 9*served || 10*load > 11*served {
		desired = ceil(load, 1000*perReplica)
	}
	// As with Kubernetes, the window delays only the removal of replicas.
	if stable := s.stabilize(desired); desired < present {
		desired = min(stable, present)
	}
	least, most := max(1, number(autoscaler, "spec", "minReplicas")), number(autoscaler, "spec", "maxReplicas")
	limited := map[string]any{"type": "ScalingLimited", "status": "False", "reason": "DesiredWithinRange"}
	switch {
	case desired > most:
		limited["status"], limited["reason"] = "True", "TooManyReplicas"
	case desired < least:
		limited["status"], limited["reason"] = "True", "TooFewReplicas"
	}
	desired = min(max(desired, least), most)
	if desired != present {
		patch := fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q},"spec":{"replicas":%d}}`, obj.GetResourceVersion(), desired)
		if _, err := in(c.Conn.Dynamic(), deployments).Patch(ctx, target, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "autoscaler"}); err != nil {
			return err
		}
	}
	return report(ctx, c, autoscaler, map[string]any{
		"currentReplicas": int64(number(obj, "status", "replicas")), "desiredReplicas": int64(desired),
		"conditions": []any{limited, map[string]any{"type": "ScalingActive", "status": "True", "reason": "ValidMetricFound"}},
	})
}
