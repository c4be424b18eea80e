// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/splitter"
)

var budgets = schema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}

var dividesBudgets = splitter.Options{Followers: []splitter.Follower{splitter.DisruptionBudgets()}}

func budget(name, spec string) string {
	return fmt.Sprintf("{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: %s}, spec: {%s}}", name, spec)
}

const selectsWeb = "selector: {matchLabels: {app: web}}, "

// cordoned returns a cluster that has a number of cordoned nodes.
func cordoned(name string, nodes int64) splitter.Cluster {
	c := cluster(name, "")
	c.CordonedNodes = &nodes
	return c
}

// budgets returns the parts of a budget as CLUSTER:MAXUNAVAILABLE.
func (w *world) budgets() string {
	w.t.Helper()
	var parts []string
	for _, b := range w.list(budgets) {
		if c := b.GetLabels()["workloads.kcp.io/cluster"]; c != "" {
			n, ok, _ := unstructured.NestedInt64(b.Object, "spec", "maxUnavailable")
			require.True(w.t, ok)
			require.NotContains(w.t, b.Object["spec"], "minAvailable")
			parts = append(parts, fmt.Sprint(c, ":", n))
		}
	}
	return strings.Join(parts, " ")
}

// observe writes the status of a part of a budget as a syncer does.
func (w *world) observe(name string, expected, healthy int64) {
	w.t.Helper()
	obj := w.get(budgets, name)
	allowed, _, _ := unstructured.NestedInt64(obj.Object, "spec", "maxUnavailable")
	patch, err := json.Marshal(map[string]any{"status": map[string]any{
		"observedGeneration": obj.GetGeneration(), "expectedPods": expected, "currentHealthy": healthy,
		"desiredHealthy": expected - allowed, "disruptionsAllowed": max(0, healthy-expected+allowed),
	}})
	require.NoError(w.t, err)
	_, err = w.of(budgets).Patch(w.t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "syncer"}, "status")
	require.NoError(w.t, err)
}

// observeAll lets all clusters observe their parts: all pods of the Deployment web are healthy.
func (w *world) observeAll() {
	w.t.Helper()
	for range 4 { // new parts, lower parts, higher parts, the status
		for cluster, n := range w.shards() {
			w.works(splitter.ShardName("web", cluster), n)
			if name := splitter.ShardName("web", cluster); w.get(budgets, name) != nil {
				w.observe(name, n, n)
			}
		}
		w.rest()
	}
}

// A budget is divided over the clusters of the workload that it selects, and its status is that of its parts.
func TestDisruptionBudget(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, dividesBudgets, cordoned("a", 0), cordoned("b", 0), cordoned("c", 0))
		w.create(budgets, budget("web", selectsWeb+`minAvailable: "60%", unhealthyPodEvictionPolicy: AlwaysAllow`))
		w.create(budgets, budget("other", `selector: {matchLabels: {app: other}}, maxUnavailable: 1`))
		w.rest()
		require.Empty(t, w.get(budgets, "web").GetFinalizers(), "it selects no workload yet")
		w.create(deployments, deployment("web", 9))
		w.rest()
		w.observeAll()
		require.Equal(t, "a:1 b:1 c:1", w.budgets())
		part := w.get(budgets, "web--a")
		policy, _, _ := unstructured.NestedString(part.Object, "spec", "unhealthyPodEvictionPolicy")
		require.Equal(t, "AlwaysAllow", policy)
		selects, _, _ := unstructured.NestedStringMap(part.Object, "spec", "selector", "matchLabels")
		require.Equal(t, map[string]string{"app": "web"}, selects)

		status := w.get(budgets, "web").Object["status"].(map[string]any)
		delete(status, "conditions")
		require.Equal(t, map[string]any{
			"observedGeneration": int64(1), "expectedPods": int64(9), "currentHealthy": int64(9), "desiredHealthy": int64(6), "disruptionsAllowed": int64(3),
		}, status)
		require.Equal(t, "True SufficientPods: each cluster has a part of the budget", w.conditionOf(budgets, "web", "DisruptionAllowed"))
		require.Empty(t, w.get(budgets, "other").GetFinalizers())
		require.Len(t, w.list(budgets), 5)

		w.Reset()
		time.Sleep(10 * time.Minute)
		w.rest()
		require.Empty(t, w.writes())
		w.stop()
		again, err := splitter.New(w.api, w.clusters, dividesBudgets)
		require.NoError(t, err)
		w.start(again)
		w.rest()
		require.Empty(t, w.writes(), "nothing is written after a restart")

		// The workload ends, and with it the parts. The budget becomes an object like any other.
		require.NoError(t, w.of(deployments).Delete(t.Context(), "web", metav1.DeleteOptions{}))
		w.rest()
		require.Len(t, w.list(budgets), 2)
		require.Empty(t, w.get(budgets, "web").GetFinalizers())
	})
}

// A budget that is too small for all clusters stays in one of them, as long as no node is cordoned. Then it moves to the
// clusters whose nodes are, in turns; it is lowered in one cluster and observed there before it is raised in another.
func TestASmallDisruptionBudgetFollowsDrains(t *testing.T) {
	bubble(t, func(t *testing.T) {
		opts := dividesBudgets
		opts.Turn = 2 * time.Minute
		w := newWorld(t, opts, cordoned("a", 0), cordoned("b", 0), cordoned("c", 0))
		w.create(deployments, deployment("web", 9))
		w.create(budgets, budget("web", selectsWeb+"maxUnavailable: 1"))
		w.rest()
		w.observeAll()
		require.Equal(t, "a:1 b:0 c:0", w.budgets())
		require.Equal(t, "True SufficientPods: 2 of 3 clusters have no part of the budget now: b, c", w.conditionOf(budgets, "web", "DisruptionAllowed"))
		w.Reset()
		time.Sleep(10 * time.Minute)
		require.Empty(t, w.writes())

		w.clusters.Set(cordoned("a", 0), cordoned("b", 0), cordoned("c", 1))
		w.rest()
		require.Equal(t, "a:0 b:0 c:0", w.budgets(), "a has not observed it")
		w.observe("web--a", 3, 2)
		w.rest()
		require.Equal(t, "a:0 b:0 c:0", w.budgets(), "a has an unavailable pod, evicted before")
		w.observe("web--a", 3, 3)
		w.rest()
		require.Equal(t, "a:0 b:0 c:1", w.budgets())

		w.clusters.Set(cordoned("a", 0), cordoned("b", 2), cordoned("c", 1))
		had := map[string]bool{}
		for range 20 {
			time.Sleep(7 * time.Second)
			w.observeAll()
			had[w.budgets()] = true
		}
		delete(had, "a:0 b:0 c:0") // between two turns
		require.Equal(t, map[string]bool{"a:0 b:1 c:0": true, "a:0 b:0 c:1": true}, had)
	})
}

// Replicas that are unavailable or have no place use up the budget of all clusters.
func TestUnavailableReplicasUseUpADisruptionBudget(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, dividesBudgets, cordoned("a", 0), cordoned("b", 0))
		w.create(deployments, deployment("web", 8))
		w.create(budgets, budget("web", selectsWeb+"maxUnavailable: 4"))
		w.rest()
		w.observeAll()
		require.Equal(t, "a:2 b:2", w.budgets())
		w.works("web--a", 1)
		w.rest()
		require.Equal(t, "a:2 b:1", w.budgets(), "three of a are unavailable")
		w.works("web--a", 4)
		w.rest()
		require.Equal(t, "a:2 b:1", w.budgets(), "b has not observed the lower one")
		w.observeAll()
		require.Equal(t, "a:2 b:2", w.budgets())

		w.clusters.Set(holds("a", 4), holds("b", 4))
		w.rest()
		w.patch(deployments, "web", `{"spec":{"replicas":9}}`)
		w.rest()
		w.observeAll()
		require.Contains(t, []string{"a:2 b:1", "a:1 b:2"}, w.budgets(), "one replica has no place: %v", w.shards())
	})
}

// With the mode Duplicate all replicas in all clusters count. Workloads of other namespaces and copies do not.
func TestDisruptionBudgetOfDuplicates(t *testing.T) {
	bubble(t, func(t *testing.T) {
		opts := dividesBudgets
		opts.Place = func(parent *unstructured.Unstructured, clusters []splitter.Cluster) (splitter.Demand, []splitter.Share, error) {
			d, shares, err := splitter.Everywhere(parent, clusters)
			d.Mode = splitter.Duplicate
			return d, shares, err
		}
		w := newWorld(t, opts, cordoned("a", 0), cordoned("b", 0))
		w.create(deployments, deployment("web", 5))
		w.create(budgets, budget("web", selectsWeb+`maxUnavailable: "40%"`))
		w.rest()
		w.observeAll()
		require.Equal(t, "a:2 b:2", w.budgets())
	})
}

// While the workloads cannot be read, for example after a restart, the parts of a budget stay.
func TestFollowersWaitForWorkloads(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, dividesBudgets, cordoned("a", 0), cordoned("b", 0))
		w.create(deployments, deployment("web", 8))
		w.create(budgets, budget("web", selectsWeb+"maxUnavailable: 4"))
		w.rest()
		w.observeAll()
		w.stop()
		w.Inject(regiontest.Fault{Verb: "list", Resource: deployments.GroupResource(), Times: 20, Do: regiontest.Refuse(http.StatusServiceUnavailable)})
		w.Reset()
		again, err := splitter.New(w.api, w.clusters, dividesBudgets)
		require.NoError(t, err)
		w.start(again)
		w.rest()
		require.Equal(t, "a:2 b:2", w.budgets())
		require.Empty(t, w.writes())
		time.Sleep(10 * time.Minute)
		w.patch(budgets, "web", `{"spec":{"maxUnavailable":2}}`)
		w.rest()
		require.Equal(t, "a:1 b:1", w.budgets(), "the workloads are read again")
	})
}
