// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/splitter"
)

// has returns a cluster with the given capacity, as pairs of a resource and its amount.
func has(name string, capacity ...string) splitter.Cluster {
	c := cluster(name, "")
	c.Capacity = corev1.ResourceList{}
	for i := 0; i < len(capacity); i += 2 {
		c.Capacity[corev1.ResourceName(capacity[i])] = resource.MustParse(capacity[i+1])
	}
	return c
}

// sumIn returns the sum of a number in the specs of all shards, by cluster.
func (w *world) sumIn(gvr schema.GroupVersionResource, path ...string) map[string]int64 {
	w.t.Helper()
	m := map[string]int64{}
	for _, obj := range w.list(gvr) {
		if c := obj.GetLabels()["workloads.kcp.io/cluster"]; c != "" {
			n, _, _ := unstructured.NestedInt64(obj.Object, path...)
			m[c] += n
		}
	}
	return m
}

func (w *world) delete(gvr schema.GroupVersionResource, name string) {
	w.t.Helper()
	require.NoError(w.t, w.of(gvr).Delete(w.t.Context(), name, metav1.DeleteOptions{}))
}

// All workloads together get only the room that a cluster has. Those without room get the room that others leave, also
// after a restart.
func TestWorkloadsShareTheRoom(t *testing.T) {
	bubble(t, func(t *testing.T) {
		clusters := []splitter.Cluster{has("a", "cpu", "4"), has("b", "cpu", "3500m")}
		w := newLateWorld(t, splitter.Options{}, clusters...)
		w.create(deployments, deployment("web", 5))
		w.create(deployments, deployment("api", 5))
		w.rest()
		require.Equal(t, map[string]int64{"a": 4, "b": 3}, w.sumIn(deployments, "spec", "replicas"))
		placed := []string{w.conditionOf(deployments, "web", "Placed"), w.conditionOf(deployments, "api", "Placed")}
		require.ElementsMatch(t, []string{"True Placed: all replicas have a place", "False Unplaced: 3 replicas find no place: a Capacity (cpu), b Capacity (cpu)"}, placed)

		w.stop()
		w.Reset()
		again, err := splitter.New(w.api, w.clusters, splitter.Options{})
		require.NoError(t, err)
		w.start(again)
		w.rest()
		require.Empty(t, w.writes(), "after a restart nothing differs")
		w.create(deployments, deployment("late", 9))
		w.rest()
		require.Equal(t, map[string]int64{"a": 4, "b": 3}, w.sumIn(deployments, "spec", "replicas"))

		w.delete(deployments, "web")
		w.rest()
		require.Equal(t, map[string]int64{"a": 4, "b": 3}, w.sumIn(deployments, "spec", "replicas"), "the others have its room")
		w.delete(deployments, "api")
		w.delete(deployments, "late")
		w.rest()
		require.Empty(t, w.list(deployments))
		w.create(deployments, deployment("web", 7))
		w.rest()
		require.Equal(t, map[string]int64{"a": 4, "b": 3}, w.sumIn(deployments, "spec", "replicas"), "the room is free again")
	})
}

// The room of a shard returns when the shard is smaller or gone, and not already when the Splitter decides it: a syncer may
// take long to remove a shard.
func TestRoomReturnsWithTheShard(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, splitter.Options{}, has("a", "cpu", "4"))
		w.create(deployments, deployment("web", 4))
		w.rest()
		w.patch(deployments, "web--a", `{"metadata":{"finalizers":["example.org/syncer"]}}`)
		w.create(deployments, deployment("api", 4))
		w.rest()
		w.delete(deployments, "web")
		w.rest()
		require.Nil(t, w.get(deployments, "api--a"), "web--a still runs")
		w.patch(deployments, "web--a", `{"metadata":{"finalizers":null}}`)
		w.rest()
		require.Equal(t, map[string]int64{"a": 4}, w.sumIn(deployments, "spec", "replicas"))
		require.Equal(t, "True Placed: all replicas have a place", w.conditionOf(deployments, "api", "Placed"))
	})
}

// Present replicas stay in a cluster whose capacity has fallen below their requests. All kinds use the same room; a Job
// that has ended uses none.
func TestRoomOfKinds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sets, tasks, crons := deployments.GroupVersion().WithResource("statefulsets"), schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}, schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "cronjobs"}
		w := newWorld(t, splitter.Options{Kinds: []splitter.Kind{splitter.Deployments(), splitter.StatefulSets(), splitter.Jobs(), splitter.CronJobs()}}, has("a", "cpu", "10", "example.com/gpu", "2"))
		w.create(deployments, deployment("web", 4))
		template := `{metadata: {labels: {app: db}}, spec: {restartPolicy: Never, containers: [{name: db, image: db, resources: {requests: {cpu: 2}}}]}}`
		w.rest()
		w.create(sets, `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {replicas: 5, selector: {matchLabels: {app: db}}, template: `+template+`}}`)
		w.rest()
		require.Equal(t, map[string]int64{"a": 3}, w.sumIn(sets, "spec", "replicas"), "4 cpu are used, 6 are left")
		w.create(tasks, `{apiVersion: batch/v1, kind: Job, metadata: {name: task}, spec: {parallelism: 2, template: `+template+`}}`)
		w.create(crons, `{apiVersion: batch/v1, kind: CronJob, metadata: {name: nightly}, spec: {schedule: "0 0 * * *", jobTemplate: {spec: {parallelism: 2, template: `+template+`}}}}`)
		w.rest()
		require.Empty(t, w.sumIn(tasks, "spec", "parallelism"))
		require.Nil(t, w.get(crons, "nightly--a"))

		w.clusters.Set(has("a", "cpu", "1", "example.com/gpu", "2"))
		w.rest()
		require.Equal(t, map[string]int64{"a": 3}, w.sumIn(sets, "spec", "replicas"), "present replicas stay")
		w.clusters.Set(has("a", "cpu", "10", "example.com/gpu", "2"))
		w.patch(deployments, "web", `{"spec":{"replicas":1}}`)
		w.patch(sets, "db", `{"spec":{"replicas":0}}`)
		w.rest()
		require.Equal(t, map[string]int64{"a": 2}, w.sumIn(tasks, "spec", "parallelism"))
		require.NotNil(t, w.get(crons, "nightly--a"), "9 cpu: 4 for the Job, 4 for the CronJob")
		w.patch(deployments, "web", `{"spec":{"replicas":3}}`)
		w.rest()
		require.Equal(t, map[string]int64{"a": 2}, w.sumIn(deployments, "spec", "replicas"))
		_, err := w.of(tasks).Patch(t.Context(), "task--a", "application/merge-patch+json", []byte(`{"status":{"conditions":[{"type":"Complete","status":"True"}]}}`), metav1.PatchOptions{}, "status")
		require.NoError(t, err)
		w.rest()
		require.Equal(t, map[string]int64{"a": 3}, w.sumIn(deployments, "spec", "replicas"), "the Job has ended")

		w.create(deployments, gpus("learn", 3))
		w.rest()
		require.Equal(t, "False Unplaced: 1 replicas find no place: a Capacity (example.com/gpu)", w.conditionOf(deployments, "learn", "Placed"))
	})
}

func gpus(name string, replicas int) string {
	return fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: %s}, spec: {replicas: %d, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}},
  spec: {containers: [{name: web, image: web, resources: {limits: {example.com/gpu: 1}}}]}}}}`, name, replicas)
}

// After a start, no replicas are placed before the shards of all types are known: they use room. A type that is not
// served has none.
func TestRoomIsKnownBeforeTheFirstDecision(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sets := deployments.GroupVersion().WithResource("statefulsets")
		s := regiontest.NewServer(regiontest.Options{History: 100000})
		t.Cleanup(s.Close)
		s.Inject(regiontest.Fault{Verb: "list", Resource: sets.GroupResource(), Times: 12, Do: regiontest.Refuse(403)})
		widgets, err := splitter.ByPaths(schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "widgets"}, splitter.Paths{})
		require.NoError(t, err)
		w := newWorldOn(t, s, newAPI(t, s), splitter.Options{Kinds: []splitter.Kind{splitter.Deployments(), splitter.StatefulSets(), widgets}}, cluster("a", ""))
		w.create(deployments, deployment("web", 4))
		time.Sleep(3 * time.Second)
		require.Equal(t, map[string]int64{"a": 4}, w.shards(), "without a capacity there is nothing to wait for")
		w.stop()
		w.create(deployments, deployment("api", 4))
		w.clusters.Set(has("a", "cpu", "8"))
		next, err := splitter.New(w.api, w.clusters, splitter.Options{Kinds: []splitter.Kind{splitter.Deployments(), splitter.StatefulSets(), widgets}})
		require.NoError(t, err)
		w.start(next)
		time.Sleep(10 * time.Second)
		require.Nil(t, w.get(deployments, "api--a"))
		_, err = next.Plan(t.Context(), w.get(deployments, "api"))
		require.ErrorContains(t, err, "not known yet")
		time.Sleep(3 * time.Minute)
		w.rest()
		require.NotNil(t, w.get(deployments, "api--a"))
		plan, err := next.Plan(t.Context(), w.get(deployments, "api"))
		require.NoError(t, err)
		require.Zero(t, plan.Unplaced)
		w.create(deployments, deployment("more", 4))
		plan, err = next.Plan(t.Context(), w.get(deployments, "more"))
		require.NoError(t, err)
		require.EqualValues(t, 4, plan.Unplaced)
	})
}

// Many workers decide about many workloads at the same time, and assign no room twice.
func TestWorkersAssignRoomOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, splitter.Options{Workers: 32}, has("a", "cpu", "20"), has("b", "cpu", "15"), has("c", "cpu", "5"))
		for i := range 40 {
			w.create(deployments, deployment(fmt.Sprintf("web-%02d", i), 3))
		}
		w.rest()
		require.Equal(t, map[string]int64{"a": 20, "b": 15, "c": 5}, w.sumIn(deployments, "spec", "replicas"))
		for round := range 3 {
			for i := range 40 {
				w.patch(deployments, fmt.Sprintf("web-%02d", i), fmt.Sprintf(`{"spec":{"replicas":%d}}`, 1+(i+round)%4))
			}
			w.rest()
			for name, n := range w.sumIn(deployments, "spec", "replicas") {
				require.Equal(t, map[string]int64{"a": 20, "b": 15, "c": 5}[name], n, name)
			}
		}
	})
}

// A decision reserves room that its replicas need later: they arrive step by step, within maxUnavailable and maxSurge.
func TestRoomOfMovesIsReserved(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, splitter.Options{}, has("a", "cpu", "4"))
		w.create(deployments, deployment("web", 4))
		w.rest()
		w.works("web--a", 4)
		w.rest()
		leaving := has("a", "cpu", "4")
		leaving.EvictAfter = time.Now().Add(-time.Minute)
		w.clusters.Set(leaving, has("b", "cpu", "5"))
		w.rest()
		require.Equal(t, map[string]int64{"a": 3, "b": 1}, w.shards(), "maxUnavailable and maxSurge are 1")
		w.create(deployments, deployment("api", 4))
		w.rest()
		require.Equal(t, map[string]int64{"a": 3, "b": 2}, w.sumIn(deployments, "spec", "replicas"))
		for range 8 {
			for _, name := range []string{"web--a", "web--b", "api--b"} {
				if obj := w.get(deployments, name); obj != nil {
					n, _, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas")
					w.works(name, n)
				}
			}
			w.rest()
		}
		require.Nil(t, w.get(deployments, "web--a"))
		require.Equal(t, map[string]int64{"b": 5}, w.sumIn(deployments, "spec", "replicas"))
		require.Equal(t, "True Placed: all replicas have a place", w.conditionOf(deployments, "web", "Placed"))
	})
}
