// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package split_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/splitter"
)

var (
	autoscalers = schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}
	// requests is an external metric. Instead of a metrics server, a custom type of each cluster has its value.
	requests = schema.GroupVersionResource{Group: "external.metrics.k8s.io", Version: "v1beta1", Resource: "requests"}
)

// autoscaler divides an autoscaler over three clusters. Each scales by its own load. A drained cluster's replicas run
// elsewhere before they are removed, although the load there is low. All clusters together keep the maximum.
func (w *world) autoscaler() {
	for _, cluster := range clusterNames {
		w.measure(cluster)
		w.load(cluster, 0)
	}
	w.create(autoscalers, `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: app}, spec: {minReplicas: 3, maxReplicas: 12,
		behavior: {scaleDown: {stabilizationWindowSeconds: 0}}, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: app},
		metrics: [{type: External, external: {metric: {name: requests}, target: {type: AverageValue, averageValue: "10"}}}]}}`)
	w.create(deployments, strings.ReplaceAll(deployment("app", 1), "{maxUnavailable: 2, maxSurge: 2}", "{maxUnavailable: 0, maxSurge: 1}"))
	w.divided(deployments, "app", map[string]int{"cluster-1": 1, "cluster-2": 1, "cluster-3": 1})

	w.load("cluster-2", 50)
	w.divided(deployments, "app", map[string]int{"cluster-1": 1, "cluster-2": 5, "cluster-3": 1})
	w.eventually(autoscalers, "app", "has the sum of all clusters", func(_ context.Context, app *unstructured.Unstructured) error {
		if current, desired := number(app, "status", "currentReplicas"), number(app, "status", "desiredReplicas"); current != 7 || desired != 7 {
			return fmt.Errorf("%d of %d replicas", current, desired)
		}
		return nil
	})

	most := w.most("app", func() {
		fewest := w.least("app", clusterNames, func() {
			w.patchTarget("cluster-2", `{"spec":{"evictAfter":"2020-01-01T00:00:00Z"}}`)
			w.gone(deployments, splitter.ShardName("app", "cluster-2"), "cluster-2")
		})
		require.GreaterOrEqual(w.t, fewest, 7)
	})
	require.LessOrEqual(w.t, most, 12+1)
	w.eventually(deployments, "app", "has as many replicas as its load needs", func(_ context.Context, app *unstructured.Unstructured) error {
		if n := number(app, "status", "availableReplicas"); n != 3 {
			return fmt.Errorf("%d replicas", n)
		}
		return nil
	})

	w.patchTarget("cluster-2", `{"spec":{"evictAfter":null}}`)
	most = w.most("app", func() {
		w.divided(deployments, "app", map[string]int{"cluster-1": 1, "cluster-2": 5, "cluster-3": 1})
		w.load("cluster-3", 500)
		w.divided(deployments, "app", map[string]int{"cluster-1": 1, "cluster-2": 5, "cluster-3": 6})
	})
	require.LessOrEqual(w.t, most, 12)

	w.delete("upstream", autoscalers, "app")
	w.gone(autoscalers, "app", clusterNames...)
	w.divided(deployments, "app", map[string]int{"cluster-1": 3, "cluster-2": 4, "cluster-3": 5}) // by weight
	w.delete("upstream", deployments, "app")
	w.gone(deployments, "app", clusterNames...)
}

// measure makes a cluster serve the external metric requests.
func (w *world) measure(cluster string) {
	w.t.Helper()
	crd := &unstructured.Unstructured{}
	require.NoError(w.t, yaml.Unmarshal([]byte(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition,
		metadata: {name: requests.external.metrics.k8s.io, annotations: {api-approved.kubernetes.io: "unapproved, it replaces a metrics server in a test"}},
		spec: {group: external.metrics.k8s.io, scope: Namespaced, names: {plural: requests, kind: ExternalMetricValue, listKind: ExternalMetricValueList},
		versions: [{name: v1beta1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`), &crd.Object))
	_, err := w.clients[cluster].Resource(definitions).Create(w.t.Context(), crd, metav1.CreateOptions{})
	require.NoError(w.t, err)
	planetest.Eventually(w.t, long, "the metric is served", func(ctx context.Context) error {
		_, err := w.of(cluster, requests).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "external.metrics.k8s.io/v1beta1", "kind": "ExternalMetricValue", "metadata": map[string]any{"name": "requests"},
			"metricName": "requests", "timestamp": "2026-01-01T00:00:00Z", "value": "0",
		}}, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
}

// load sets the requests per second of a cluster. A replica serves ten.
func (w *world) load(cluster string, n int) {
	w.t.Helper()
	_, err := w.of(cluster, requests).Patch(w.t.Context(), "requests", types.MergePatchType, fmt.Appendf(nil, `{"value":"%d"}`, n), metav1.PatchOptions{})
	require.NoError(w.t, err)
}
