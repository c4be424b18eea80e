// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package split_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/e2e/planetest"
)

var (
	budgets = schema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}
	nodes   = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
)

// evictions drains nodes of two clusters at the same time, while a budget allows one disruption in all clusters. Both
// drains end, and never more than one replica is unavailable.
func (w *world) evictions() {
	drained := clusterNames[1:]
	for _, cluster := range drained {
		w.addNode(cluster)
	}
	w.create(budgets, `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web}, spec: {minAvailable: 14, selector: {matchLabels: {app: web}}}}`)
	w.eventually(budgets, "web", "is divided", func(_ context.Context, web *unstructured.Unstructured) error {
		if c, n := conditionOf(web, "DisruptionAllowed"), number(web, "status", "expectedPods"); c != "True SufficientPods" || n != 15 {
			return fmt.Errorf("DisruptionAllowed is %q for %d pods: %v", c, n, web.Object["status"])
		}
		return nil
	})
	fewest, _ := w.sample("web: ready pods", w.ready, func() {
		errs, refused := make([]error, len(drained)), make([]int, len(drained))
		var drains sync.WaitGroup
		for i, cluster := range drained {
			drains.Go(func() { refused[i], errs[i] = w.drainNode(cluster) })
		}
		drains.Wait()
		require.NoError(w.t, errors.Join(errs...))
		require.NotContains(w.t, refused, 0, "each cluster has refused evictions")
		w.divided(deployments, "web", map[string]int{"cluster-1": 3, "cluster-2": 5, "cluster-3": 7})
	})
	require.GreaterOrEqual(w.t, fewest, 14)

	w.delete("upstream", budgets, "web")
	w.gone(budgets, "web", clusterNames...)
	for _, cluster := range drained {
		w.cordon(cluster, false)
		require.NoError(w.t, w.clients[cluster].Resource(nodes).Delete(w.t.Context(), "spare", metav1.DeleteOptions{}))
	}
	w.divided(deployments, "web", map[string]int{"cluster-1": 3, "cluster-2": 5, "cluster-3": 7})
}

// ready returns the number of ready pods of web in all clusters, as disruption budgets count them. Of its two reads of
// each cluster it takes the greater number.
func (w *world) ready(ctx context.Context) (int, error) {
	return total(clusterNames, slices.Max[[]int], func(cluster string) (int, error) {
		list, err := w.of(cluster, pods).List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
		if err != nil {
			return 0, err
		}
		n := 0
		for i := range list.Items {
			if pod := &list.Items[i]; pod.GetDeletionTimestamp() == nil && strings.HasPrefix(conditionOf(pod, "Ready"), "True") {
				n++
			}
		}
		return n, nil
	})
}

// addNode adds the node spare to a cluster, and waits until it takes pods.
func (w *world) addNode(cluster string) {
	w.t.Helper()
	client := w.clients[cluster].Resource(nodes)
	_, err := client.Create(w.t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": "spare", "labels": map[string]any{"kubernetes.io/hostname": "spare"}},
	}}, metav1.CreateOptions{})
	require.NoError(w.t, err)
	planetest.Eventually(w.t, long, "the node spare takes pods", func(ctx context.Context) error {
		node, err := client.Get(ctx, "spare", metav1.GetOptions{})
		if err != nil {
			return err
		}
		taints, _, _ := unstructured.NestedSlice(node.Object, "spec", "taints")
		if !strings.HasPrefix(conditionOf(node, "Ready"), "True") || len(taints) > 0 {
			return fmt.Errorf("it has %v and the taints %v", node.Object["status"], taints)
		}
		return nil
	})
}

func (w *world) cordon(cluster string, is bool) {
	w.t.Helper()
	_, err := w.clients[cluster].Resource(nodes).Patch(w.t.Context(), "node-1", types.MergePatchType,
		fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, is), metav1.PatchOptions{})
	require.NoError(w.t, err)
}

// drainNode cordons node-1 of a cluster and evicts its pods of web, as `kubectl drain` does. It returns how many evictions
// the budget refused.
func (w *world) drainNode(cluster string) (refused int, err error) {
	w.cordon(cluster, true)
	ctx, cancel := context.WithTimeout(w.t.Context(), long)
	defer cancel()
	for {
		list, err := w.of(cluster, pods).List(ctx, metav1.ListOptions{LabelSelector: "app=web", FieldSelector: "spec.nodeName=node-1"})
		if err != nil {
			return refused, fmt.Errorf("drain %s: %w", cluster, err)
		}
		if len(list.Items) == 0 {
			return refused, nil
		}
		for _, pod := range list.Items {
			_, err := w.of(cluster, pods).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "policy/v1", "kind": "Eviction", "metadata": map[string]any{"name": pod.GetName(), "namespace": pod.GetNamespace()},
			}}, metav1.CreateOptions{}, "eviction")
			if apierrors.IsTooManyRequests(err) {
				refused++
			} else if err != nil && !apierrors.IsNotFound(err) {
				return refused, fmt.Errorf("evict %s of %s: %w", pod.GetName(), cluster, err)
			}
		}
		select {
		case <-time.After(200 * time.Millisecond): // the budget refuses evictions for some time
		case <-ctx.Done():
			return refused, fmt.Errorf("drain %s: %d pods are left: %w", cluster, len(list.Items), ctx.Err())
		}
	}
}
