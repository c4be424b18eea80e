// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
)

var autoscalers = schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}

var dividesAutoscalers = splitter.Options{Followers: []splitter.Follower{splitter.Autoscalers()}}

func autoscaler(name string, least, most int, more ...string) string {
	return fmt.Sprintf("{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: %s}, spec: {minReplicas: %d, maxReplicas: %d, "+
		"scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}%s}}", name, least, most, strings.Join(more, ""))
}

// scaled is a world whose clusters run the Deployment web, with an autoscaler that wants a number of replicas by its load.
type scaled struct {
	*world
	load map[string]int64
	is   map[string]int64 // replicas that run
}

func newScaled(t *testing.T, clusters ...splitter.Cluster) *scaled {
	t.Helper()
	return &scaled{newWorld(t, dividesAutoscalers, clusters...), map[string]int64{}, map[string]int64{}}
}

// run lets all clusters follow their shards and autoscalers for a number of rounds, and calls check after each.
func (w *scaled) run(rounds int, check func()) {
	w.t.Helper()
	for range rounds {
		is := map[string]int64{}
		for _, shard := range w.list(deployments) {
			c := shard.GetLabels()["workloads.kcp.io/cluster"]
			if c == "" || shard.GetDeletionTimestamp() != nil {
				continue
			}
			n, _, _ := unstructured.NestedInt64(shard.Object, "spec", "replicas")
			if part := w.get(autoscalers, splitter.ShardName("web", c)); part != nil && (n > 0 || w.is[c] > 0) {
				n = w.scale(part, c)
			}
			is[c] = n
			w.set(deployments, shard.GetName(), map[string]any{"observedGeneration": shard.GetGeneration(), "replicas": n, "updatedReplicas": n,
				"readyReplicas": n, "availableReplicas": n, "unavailableReplicas": int64(0)})
		}
		w.is = is
		w.rest()
		if check != nil {
			check()
		}
	}
}

// scale lets a cluster's autoscaler act, and returns the replicas that it wants.
func (w *scaled) scale(part *unstructured.Unstructured, cluster string) int64 {
	w.t.Helper()
	target, _, _ := unstructured.NestedString(part.Object, "spec", "scaleTargetRef", "name")
	require.Equal(w.t, splitter.ShardName("web", cluster), target)
	least, _, _ := unstructured.NestedInt64(part.Object, "spec", "minReplicas")
	most, _, _ := unstructured.NestedInt64(part.Object, "spec", "maxReplicas")
	n := min(max(w.load[cluster], least), most)
	limited := map[string]any{"type": "ScalingLimited", "status": "False", "reason": "DesiredWithinRange"}
	if w.load[cluster] > most {
		limited["status"], limited["reason"] = "True", "TooManyReplicas"
	}
	w.set(autoscalers, part.GetName(), map[string]any{"currentReplicas": n, "desiredReplicas": n, "conditions": []any{limited}})
	return n
}

func (w *scaled) set(gvr schema.GroupVersionResource, name string, status map[string]any) {
	w.t.Helper()
	patch, err := json.Marshal(map[string]any{"status": status})
	require.NoError(w.t, err)
	_, err = w.of(gvr).Patch(w.t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "syncer"}, "status")
	if !apierrors.IsNotFound(err) { // the Splitter may have deleted it meanwhile
		require.NoError(w.t, err)
	}
}

// bounds returns the parts of the autoscaler as CLUSTER:MIN-MAX.
func (w *scaled) bounds() string {
	w.t.Helper()
	var parts []string
	for _, p := range w.list(autoscalers) {
		if c := p.GetLabels()["workloads.kcp.io/cluster"]; c != "" {
			least, _, _ := unstructured.NestedInt64(p.Object, "spec", "minReplicas")
			most, _, _ := unstructured.NestedInt64(p.Object, "spec", "maxReplicas")
			parts = append(parts, fmt.Sprintf("%s:%d-%d", c, least, most))
		}
	}
	return strings.Join(parts, " ")
}

func (w *scaled) total() (n int64) {
	for _, is := range w.is {
		n += is
	}
	return n
}

// The parts of an autoscaler add up to it. Each scales its shard by the load of its cluster, and the workload has the sum.
func TestAutoscaler(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newScaled(t, cluster("a", ""), cluster("b", ""), cluster("c", ""))
		w.create(autoscalers, autoscaler("web", 3, 12, `, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}}, `+
			`{type: Object, object: {metric: {name: requests}, describedObject: {kind: Service, name: web}, target: {type: Value, value: 3k}}}]`))
		w.rest()
		require.Empty(t, w.get(autoscalers, "web").GetFinalizers(), "it targets no workload yet")
		w.create(deployments, deployment("web", 1))
		w.rest()
		w.run(4, nil)
		require.Equal(t, "a:1-4 b:1-4 c:1-4", w.bounds())
		require.Equal(t, "3/3", w.ready("web"))
		part := w.get(autoscalers, "web--a")
		metrics, _, _ := unstructured.NestedSlice(part.Object, "spec", "metrics")
		utilization, _, _ := unstructured.NestedInt64(metrics[0].(map[string]any), "resource", "target", "averageUtilization")
		require.EqualValues(t, 60, utilization)
		value, _, _ := unstructured.NestedString(metrics[1].(map[string]any), "object", "target", "value")
		require.Equal(t, "1k", value)

		w.load["a"], w.load["b"] = 3, 2
		w.run(4, nil)
		require.Equal(t, map[string]int64{"a": 3, "b": 2, "c": 1}, w.shards())
		require.Equal(t, "6/6", w.ready("web"))
		status := w.get(autoscalers, "web").Object["status"].(map[string]any)
		require.EqualValues(t, 6, status["currentReplicas"])
		require.EqualValues(t, 6, status["desiredReplicas"])
		require.NotContains(t, status, "observedGeneration", "API servers do not count generations of autoscalers")
		require.Equal(t, "True ValidMetricFound: all clusters", w.conditionOf(autoscalers, "web", "ScalingActive"))

		// The cluster with the load gets the maximum that others do not use. Never are more than 12 replicas allowed.
		w.load["a"] = 20
		w.run(20, func() { require.LessOrEqual(t, w.total(), int64(12)) })
		require.Equal(t, "a:1-9 b:1-2 c:1-1", w.bounds())
		require.Equal(t, map[string]int64{"a": 9, "b": 2, "c": 1}, w.shards())
		w.load["a"], w.load["c"] = 1, 7
		w.run(20, func() { require.LessOrEqual(t, w.total(), int64(12)) })
		require.Equal(t, map[string]int64{"a": 1, "b": 2, "c": 7}, w.shards())
		w.Reset()
		time.Sleep(10 * time.Minute)
		w.rest()
		require.Empty(t, w.writes())
		w.stop()
		again, err := splitter.New(w.api, w.clusters, dividesAutoscalers)
		require.NoError(t, err)
		w.start(again)
		w.rest()
		require.Empty(t, w.writes(), "nothing is written after a restart")

		// Without the autoscaler, the workload keeps its number of replicas.
		require.NoError(t, w.of(autoscalers).Delete(t.Context(), "web", metav1.DeleteOptions{}))
		w.rest()
		w.run(4, nil)
		require.Empty(t, w.list(autoscalers))
		require.Equal(t, "10/10", w.ready("web"))
	})
}

// A cluster is drained, lost, and returns. The replicas that leave it run elsewhere first, also if the load there is low,
// and the workload never has fewer than before. Then the autoscalers remove the replicas that the load does not need.
func TestAutoscaledWorkloadMoves(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newScaled(t, cluster("a", ""), cluster("b", ""), cluster("c", ""))
		w.create(autoscalers, autoscaler("web", 3, 12))
		w.create(deployments, deployment("web", 3, "  strategy: {rollingUpdate: {maxUnavailable: 0, maxSurge: 1}}"))
		w.load = map[string]int64{"a": 1, "b": 4, "c": 1}
		w.rest()
		w.run(10, nil)
		require.Equal(t, map[string]int64{"a": 1, "b": 4, "c": 1}, w.shards())

		leaving := cluster("b", "")
		leaving.EvictAfter = time.Now().Add(-time.Second)
		w.clusters.Set(cluster("a", ""), leaving, cluster("c", ""))
		w.rest()
		for range 30 {
			w.run(1, func() {
				require.GreaterOrEqual(t, w.total(), int64(6))
				require.LessOrEqual(t, w.total(), int64(12+1))
			})
			if w.get(deployments, "web--b") == nil {
				break
			}
		}
		require.Nil(t, w.get(deployments, "web--b"))
		require.Equal(t, map[string]int64{"a": 3, "c": 3}, w.shards())
		w.run(6, nil)
		require.EqualValues(t, 3, w.total(), "their load is low, and the least number is three")
		require.Len(t, w.shards(), 2)
		for _, shard := range w.list(deployments) {
			require.NotContains(t, shard.GetAnnotations(), v1alpha1.AutoscalerMinAnnotation)
		}

		w.clusters.Set(cluster("a", ""), cluster("b", ""), cluster("c", ""))
		w.rest()
		w.run(6, nil)
		require.Equal(t, map[string]int64{"a": 1, "b": 4, "c": 1}, w.shards())
	})
}

// The part of an unreachable cluster keeps its minReplicas until Grace. While all clusters are unreachable, the parts still
// add up to minReplicas of the autoscaler.
func TestUnreachableClustersKeepTheirMinima(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newScaled(t, cluster("a", ""), cluster("b", ""), cluster("c", ""))
		w.create(autoscalers, autoscaler("web", 6, 12))
		w.create(deployments, deployment("web", 6))
		w.rest()
		w.run(6, nil)
		require.Equal(t, "a:2-4 b:2-4 c:2-4", w.bounds())

		var silent []splitter.Cluster
		for _, name := range []string{"a", "b", "c"} {
			c := cluster(name, "")
			c.Ready = metav1.ConditionUnknown
			silent = append(silent, c)
		}
		w.clusters.Set(cluster("a", ""), silent[1], cluster("c", ""))
		time.Sleep(4 * time.Minute)
		w.clusters.Set(silent...)
		time.Sleep(4 * time.Minute)
		require.Equal(t, "a:2-4 b:2-4 c:2-4", w.bounds())
		w.run(6, func() { require.EqualValues(t, 6, w.total()) })
		w.clusters.Set(cluster("a", ""), cluster("b", ""), cluster("c", ""))
		w.run(6, nil)
		require.Equal(t, "a:2-4 b:2-4 c:2-4", w.bounds())
	})
}

// If no cluster may have replicas, the workload keeps its spec.replicas, also above maxReplicas, and all are unplaced. The
// Splitter does not write the same status repeatedly, although API servers leave out currentReplicas if it is zero.
func TestAutoscaledWorkloadWithoutClusters(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newScaled(t, cluster("a", "0"))
		w.create(autoscalers, autoscaler("web", 2, 5))
		w.create(deployments, deployment("web", 9))
		w.rest()
		require.Equal(t, "0/9", w.ready("web"))
		require.Contains(t, w.conditionOf(deployments, "web", "Placed"), "9 replicas find no place")

		w.clusters.Set(cluster("a", ""))
		taken := autoscaler("web--a", 1, 1)
		w.create(autoscalers, strings.Replace(taken, "name: web--a", "name: web--a, labels: {workloads.kcp.io/cluster: elsewhere}", 1))
		w.rest()
		require.NotContains(t, w.get(autoscalers, "web").Object["status"], "currentReplicas")
		w.Reset()
		time.Sleep(10 * time.Minute)
		w.rest()
		for _, write := range w.writes() {
			require.NotContains(t, write, "/web/status", "nothing has changed")
		}
	})
}

// A lost cluster's replicas run elsewhere, whatever the load there is. The lost cluster returns and gets a part again.
func TestAutoscaledWorkloadLosesACluster(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newScaled(t, cluster("a", ""), cluster("b", ""))
		w.create(autoscalers, autoscaler("web", 2, 10))
		w.create(deployments, deployment("web", 2))
		w.load = map[string]int64{"a": 3, "b": 4}
		w.rest()
		w.run(10, nil)
		require.Equal(t, "7/7", w.ready("web"))

		lost := cluster("b", "")
		lost.Ready = metav1.ConditionUnknown
		w.clusters.Set(cluster("a", ""), lost)
		time.Sleep(4 * time.Minute)
		require.Equal(t, map[string]int64{"a": 3, "b": 4}, w.shards(), "it may return")
		time.Sleep(2 * time.Minute)
		w.run(1, nil)
		require.Equal(t, map[string]int64{"a": 7}, w.shards())
		w.run(6, nil)
		require.Equal(t, map[string]int64{"a": 3}, w.shards(), "the load is less now")
		require.Equal(t, "a:2-10", w.bounds())

		w.load["a"], w.load["b"] = 10, 1
		w.run(4, nil)
		w.clusters.Set(cluster("a", ""), cluster("b", ""))
		time.Sleep(2 * time.Minute)
		w.run(4, nil)
		require.Equal(t, "a:2-10", w.bounds(), "the whole maximum is used")
		w.load["a"] = 8
		w.run(4, nil)
		require.Equal(t, "a:1-9 b:1-1", w.bounds())
		w.load["b"] = 4
		w.run(10, func() { require.LessOrEqual(t, w.total(), int64(10)) })
		require.Equal(t, map[string]int64{"a": 8, "b": 2}, w.shards())
	})
}

// With fewer replicas than clusters, as many clusters have a part as there are replicas. Zero pauses the autoscaler.
func TestFewAutoscaledReplicas(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newScaled(t, cluster("a", ""), cluster("b", ""), cluster("c", ""))
		w.create(deployments, deployment("web", 9))
		w.rest()
		w.run(3, nil)
		require.Equal(t, map[string]int64{"a": 3, "b": 3, "c": 3}, w.shards())
		w.create(autoscalers, autoscaler("web", 2, 6))
		w.rest()
		w.load = map[string]int64{"a": 2, "b": 2, "c": 2}
		w.run(30, func() { require.GreaterOrEqual(t, w.total(), int64(4)) })
		require.Len(t, w.shards(), 2)
		require.Equal(t, "4/4", w.ready("web"))
		members := w.bounds()
		require.Equal(t, 2, strings.Count(members, ":1-3"), members)

		w.patch(deployments, "web", `{"spec":{"replicas":0}}`)
		w.rest()
		w.run(3, nil)
		require.Empty(t, w.shards())
		require.Empty(t, w.bounds())
		require.Equal(t, "False ScalingDisabled: the workload has no replicas, or no cluster may have any", w.conditionOf(autoscalers, "web", "ScalingActive"))
		w.patch(deployments, "web", `{"spec":{"replicas":1}}`)
		w.rest()
		w.run(6, nil)
		require.Equal(t, "4/4", w.ready("web"))

		w.patch(autoscalers, "web", `{"spec":{"minReplicas":0}}`)
		w.load = map[string]int64{}
		w.rest()
		w.run(20, nil)
		require.Len(t, w.shards(), 1)
		require.Equal(t, "0/0", w.ready("web"))
		only := strings.TrimSuffix(w.bounds(), ":0-6")
		require.Contains(t, w.shards(), only)
	})
}

// In the mode Duplicate the part of each cluster has the numbers of the autoscaler. Of two autoscalers, only the older one has effect.
func TestWholeAutoscalers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		opts := dividesAutoscalers
		opts.Place = func(parent *unstructured.Unstructured, clusters []splitter.Cluster) (splitter.Demand, []splitter.Share, error) {
			d, shares, err := splitter.Everywhere(parent, clusters)
			d.Mode = splitter.Duplicate
			return d, shares, err
		}
		w := &scaled{newWorld(t, opts, cluster("a", ""), cluster("b", "")), map[string]int64{"a": 4}, map[string]int64{}}
		w.create(autoscalers, autoscaler("web", 2, 6))
		w.create(deployments, deployment("web", 3))
		time.Sleep(time.Second)
		w.create(autoscalers, autoscaler("second", 1, 9))
		w.rest()
		w.run(4, nil)
		require.Equal(t, "a:2-6 b:2-6", w.bounds())
		require.Equal(t, map[string]int64{"a": 3, "b": 3}, w.shards(), "the autoscalers change them in the clusters only")
		require.Empty(t, w.get(autoscalers, "second").GetFinalizers())
		require.NoError(t, w.of(autoscalers).Delete(t.Context(), "web", metav1.DeleteOptions{}))
		w.rest()
		require.Equal(t, "a:1-9 b:1-9", w.bounds())
		w.patch(autoscalers, "second", `{"spec":{"scaleTargetRef":{"name":"other"}}}`)
		w.rest()
		require.Empty(t, w.bounds())
	})
}
