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
	"pgregory.net/rapid"

	"github.com/atoll-dev/atoll/splitter"
)

var statefulSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}

const claims = "volumeClaimTemplates: [{metadata: {name: data}}]"

// setRuns reports all replicas of the shards of StatefulSets as available.
func (w *world) setRuns() {
	w.t.Helper()
	for range 10 {
		w.rest()
		for _, obj := range w.list(statefulSets) {
			wanted, _, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas")
			if obj.GetLabels()["splitter.atoll.dev/parent"] == "" {
				continue
			}
			patch, err := json.Marshal(map[string]any{"status": map[string]any{"observedGeneration": obj.GetGeneration(), "replicas": wanted, "readyReplicas": wanted, "availableReplicas": wanted}})
			require.NoError(w.t, err)
			_, err = w.of(statefulSets).Patch(w.t.Context(), obj.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "syncer"}, "status")
			if !apierrors.IsNotFound(err) { // the Splitter may have removed the shard since it was listed
				require.NoError(w.t, err)
			}
		}
	}
	w.rest()
}

// replicasIn returns the replicas of the shards of StatefulSets, as CLUSTER:N.
func (w *world) replicasIn() string {
	var text []string
	for _, obj := range w.list(statefulSets) {
		if c := obj.GetLabels()["workloads.kcp.io/cluster"]; c != "" {
			n, _, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas")
			text = append(text, fmt.Sprintf("%s:%d", c, n))
		}
	}
	return strings.Join(text, " ")
}

// The replicas of a StatefulSet with volumes stay in a cluster that drains, and in one that is lost and returns. The
// condition Placed names these clusters. When the annotation names a cluster, the replicas leave it. They also leave a
// cluster that no longer exists.
func TestReplicasStayWithTheirVolumes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b, c := cluster("a", ""), cluster("b", ""), cluster("c", "")
		w := newWorld(t, splitter.Options{Kinds: []splitter.Kind{splitter.StatefulSets()}}, a, b)
		w.create(statefulSets, "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {replicas: 4, serviceName: db, selector: {matchLabels: {app: db}}, template: {metadata: {labels: {app: db}}}, "+claims+"}}")
		w.setRuns()
		require.Equal(t, "a:2 b:2", w.replicasIn())
		w.clusters.Set(a, b, c)
		w.setRuns()
		require.Equal(t, "a:2 b:2", w.replicasIn(), "no replica moves for balance")
		require.Contains(t, w.conditionOf(statefulSets, "db", "Placed"), "True Placed")

		drained := a
		drained.EvictAfter = time.Unix(1, 0)
		w.clusters.Set(drained, b, c)
		w.setRuns()
		require.Equal(t, "a:2 b:2", w.replicasIn())
		require.Contains(t, w.conditionOf(statefulSets, "db", "Placed"), "False VolumesHeld: replicas stay with their volumes in clusters that they should leave: a: copy the volumes")
		w.patch(statefulSets, "db", `{"spec":{"replicas":6}}`)
		w.setRuns()
		require.Equal(t, "a:2 b:2 c:2", w.replicasIn(), "new replicas are placed elsewhere")
		w.Reset()
		time.Sleep(time.Hour)
		require.Empty(t, w.writes())

		lost := b
		lost.Ready = metav1.ConditionUnknown
		w.clusters.Set(drained, lost, c)
		time.Sleep(10 * time.Minute)
		require.Equal(t, "a:2 b:2 c:2", w.replicasIn())
		require.Contains(t, w.conditionOf(statefulSets, "db", "Placed"), "leave: a, b: copy")
		require.Empty(t, w.conditionOf(statefulSets, "db", "Duplicated"))
		w.clusters.Set(drained, b, c)
		w.rest()
		require.Equal(t, "a:2 b:2 c:2", w.replicasIn(), "it has returned, and may not have new replicas yet")
		time.Sleep(5 * time.Minute)
		w.setRuns()
		require.Contains(t, w.conditionOf(statefulSets, "db", "Placed"), "leave: a: copy")

		w.patch(statefulSets, "db", `{"metadata":{"annotations":{"splitter.atoll.dev/leave-volumes":"x, a"}}}`)
		w.setRuns()
		require.Equal(t, "b:3 c:3", w.replicasIn())
		require.Contains(t, w.conditionOf(statefulSets, "db", "Placed"), "True Placed")
		w.clusters.Set(a, c)
		w.setRuns()
		require.NotContains(t, w.replicasIn(), "b:", "the cluster is gone with its volumes")
	})
}

// With random bounds, present replicas and lost clusters: a cluster that may not be left keeps its replicas, unless fewer
// are desired. A StatefulSet without volumes, and one whose volumes may all be left, is divided as if there were no rule.
func TestCutOfAStatefulSetWithVolumes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a", "b", "c", "d"}
		leaves := rapid.SampledFrom([]string{"", "a", "a,b", "*"}).Draw(t, "leaves")
		present := map[string]int64{}
		var total int64
		var have []splitter.Shard
		listed := map[string]bool{}
		var shares []splitter.Share
		lost := map[string]bool{}
		for _, name := range names {
			if n := rapid.Int64Range(0, 4).Draw(t, "present"); n > 0 {
				present[name], total = n, total+n
				lost[name] = rapid.Bool().Draw(t, "lost")
				have = append(have, splitter.Shard{Cluster: name, Lost: lost[name], Object: object(t, "X", fmt.Sprintf("spec: {replicas: %d}, status: {replicas: %d, availableReplicas: %d}", n, n, n))})
			}
			if listed[name] = rapid.Bool().Draw(t, "listed"); listed[name] {
				s := splitter.Share{Name: name}
				if rapid.Bool().Draw(t, "bounded") {
					s.Max = new(rapid.Int64Range(0, 3).Draw(t, "max"))
				}
				shares = append(shares, s)
			}
		}
		demand := total + rapid.Int64Range(0, 3).Draw(t, "more")
		parent := func(spec, leave string) *unstructured.Unstructured {
			return parse(t, fmt.Sprintf("{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: x, generation: 2, annotations: {splitter.atoll.dev/leave-volumes: '%s'}}, spec: {replicas: %d%s}}", leave, demand, spec))
		}
		d := splitter.Demand{UID: "uid", Moves: 1}
		plan, _, err := splitter.StatefulSets().Cut(parent(", "+claims, leaves), d, shares, have)
		require.NoError(t, err)
		for name, n := range present {
			free := leaves == "*" || strings.Contains(leaves, name)
			if !free && (listed[name] || lost[name]) {
				require.GreaterOrEqual(t, plan.Replicas(name), n, "%s: %+v", name, plan)
			}
			if free || !listed[name] && !lost[name] {
				require.NotContains(t, plan.Held, name)
			}
		}
		without, shards, err := splitter.StatefulSets().Cut(parent("", leaves), d, shares, have)
		require.NoError(t, err)
		require.Nil(t, without.Held)
		released, same, err := splitter.StatefulSets().Cut(parent(", "+claims, "*"), d, shares, have)
		require.NoError(t, err)
		require.Equal(t, without, released)
		require.Equal(t, field(shards, "spec.replicas"), field(same, "spec.replicas"))
	})
}
