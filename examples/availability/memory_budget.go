// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/examples/internal/stage"
)

// allow plays the controller of PodDisruptionBudgets, for the one budget of the story: it reports how many pods may be
// evicted.
func allow(ctx context.Context, c *stage.Cluster) error {
	list, err := in(c.Conn.Dynamic(), budgets).List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) == 0 {
		return err
	}
	all, err := in(c.Conn.Dynamic(), deployments).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	expected := 0
	for i := range all.Items {
		expected += number(&all.Items[i], "spec", "replicas")
	}
	running, err := in(c.Conn.Dynamic(), pods).List(ctx, metav1.ListOptions{LabelSelector: "app=" + shop})
	if err != nil {
		return err
	}
	healthy := 0
	for i := range running.Items {
		if isTrue(&running.Items[i], "Ready") {
			healthy++
		}
	}
	for i := range list.Items {
		budget := &list.Items[i]
		desired := max(0, expected-number(budget, "spec", "maxUnavailable"))
		if err := report(ctx, c, budget, map[string]any{
			"observedGeneration": budget.GetGeneration(), "expectedPods": int64(expected), "currentHealthy": int64(healthy),
			"desiredHealthy": int64(desired), "disruptionsAllowed": int64(max(0, healthy-desired)),
		}); err != nil {
			return err
		}
	}
	return nil
}

// evictFromMemory evicts a pod of a cluster in memory, as an API server does: it takes one of the allowed disruptions, and
// deletes the pod.
func evictFromMemory(ctx context.Context, c *stage.Cluster, pod *unstructured.Unstructured) error {
	list, err := in(c.Conn.Dynamic(), budgets).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		budget := &list.Items[i]
		allowed := number(budget, "status", "disruptionsAllowed")
		if allowed < 1 || int64(number(budget, "status", "observedGeneration")) < budget.GetGeneration() {
			return apierrors.NewTooManyRequests(fmt.Sprintf("the budget %s allows no disruption", budget.GetName()), 1)
		}
		status, _, _ := unstructured.NestedMap(budget.Object, "status")
		status["disruptionsAllowed"] = int64(allowed - 1)
		if err := report(ctx, c, budget, status); apierrors.IsConflict(err) {
			return apierrors.NewTooManyRequests("the budget has changed", 1)
		} else if err != nil {
			return err
		}
	}
	return deletePod(ctx, c, pod.GetName(), pod.GetUID())
}
