// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
)

// ordinalsWorld is a StatefulSet with unique ordinals: its stored objects, and the pods of all clusters, also of those
// whose shards were removed although the pods are still running.
type ordinalsWorld struct {
	parent *unstructured.Unstructured
	shards map[string]*unstructured.Unstructured
	pods   map[string][2]int64 // by cluster: the first ordinal and the number of pods
}

func (w *ordinalsWorld) have() (list []splitter.Shard) {
	for name, obj := range w.shards {
		list = append(list, splitter.Shard{Cluster: name, Object: obj})
	}
	slices.SortFunc(list, func(a, b splitter.Shard) int { return slices.Compare([]string{a.Cluster}, []string{b.Cluster}) })
	return list
}

// step divides once: it writes the record, then shards in any order until it is killed. Then clusters follow their shards.
func (w *ordinalsWorld) step(t *rapid.T, shares []splitter.Share, d splitter.Demand) {
	kind := splitter.StatefulSets()
	_, shards, err := kind.Cut(w.parent, d, shares, w.have())
	require.NoError(t, err)
	value := splitter.Record(kind, w.parent, append(w.have(), shards...))[v1alpha1.OrdinalsAnnotation]
	if annotations := w.parent.GetAnnotations(); annotations[v1alpha1.OrdinalsAnnotation] != value {
		annotations[v1alpha1.OrdinalsAnnotation] = value
		w.parent.SetAnnotations(annotations)
		return // the event of this write leads to the next step
	}
	cut := map[string]bool{}
	for _, s := range rapid.Permutation(shards).Draw(t, "order") {
		cut[s.Cluster] = true
		if rapid.IntRange(0, 9).Draw(t, "killed") == 0 {
			return
		}
		first, _, _ := unstructured.NestedInt64(s.Object.Object, "spec", "ordinals", "start")
		replicas, _, _ := unstructured.NestedInt64(s.Object.Object, "spec", "replicas")
		if pods := w.pods[s.Cluster]; pods[1] > 0 {
			require.Equal(t, pods[0], first, "the start of %s changes under its pods", s.Cluster)
		}
		status := map[string]any{"replicas": replicas, "availableReplicas": replicas, "readyReplicas": replicas}
		s.Object.Object["status"] = status
		w.shards[s.Cluster], w.pods[s.Cluster] = s.Object, [2]int64{first, replicas}
	}
	for name := range w.shards {
		if !cut[name] {
			delete(w.shards, name)
			delete(w.pods, name)
		}
	}
}

func (w *ordinalsWorld) check(t *rapid.T) {
	for a, x := range w.pods {
		for b, y := range w.pods {
			if a != b && x[1] > 0 && y[1] > 0 {
				require.False(t, x[0] < y[0]+y[1] && y[0] < x[0]+x[1], "%s %v and %s %v", a, x, b, y)
			}
		}
	}
}

// Shares, replicas, drains, kills, lost records, and clusters that are removed while their pods run on are random. No two
// running pods have the same ordinal, and the first ordinal of a cluster does not change while it has pods.
func TestOrdinalsAreUniqueAndStay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &ordinalsWorld{shards: map[string]*unstructured.Unstructured{}, pods: map[string][2]int64{}}
		volumes := rapid.SampledFrom([]string{"", ", " + claims}).Draw(t, "volumes")
		w.parent = parse(t, fmt.Sprintf("{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: x, annotations: {splitter.atoll.dev/ordinals-per-cluster: '5'}}, spec: {replicas: 4, ordinals: {start: %d}%s}}", rapid.IntRange(0, 3).Draw(t, "base"), volumes))
		annotate := func(name, value string) {
			annotations := w.parent.GetAnnotations()
			annotations[name] = value
			w.parent.SetAnnotations(annotations)
		}
		clusters := []string{"a", "b", "c", "d", "e"}
		out := map[string]bool{"d": true, "e": true}
		for range rapid.IntRange(3, 30).Draw(t, "steps") {
			name := rapid.SampledFrom(clusters).Draw(t, "cluster")
			switch rapid.SampledFrom([]string{"scale", "out", "in", "removed", "size", "record", "base", "leave", "step"}).Draw(t, "event") {
			case "scale":
				require.NoError(t, unstructured.SetNestedField(w.parent.Object, rapid.Int64Range(0, 30).Draw(t, "replicas"), "spec", "replicas"))
			case "out":
				out[name] = true
			case "in":
				out[name] = false
			case "removed": // by force, with its pods still running; no new cluster gets the name
				delete(w.shards, name)
				clusters = append(slices.DeleteFunc(clusters, func(c string) bool { return c == name }), name+"x")
			case "size":
				annotate(v1alpha1.OrdinalsPerClusterAnnotation, fmt.Sprint(rapid.IntRange(1, 9).Draw(t, "size")))
			case "record": // a client replaces the StatefulSet; the record of removed clusters is lost
				annotate(v1alpha1.OrdinalsAnnotation, "")
				for name := range w.pods {
					if w.shards[name] == nil {
						delete(w.pods, name)
					}
				}
			case "base":
				require.NoError(t, unstructured.SetNestedField(w.parent.Object, rapid.Int64Range(0, 9).Draw(t, "start"), "spec", "ordinals", "start"))
			case "leave":
				annotate(v1alpha1.VolumesAnnotation, name)
			}
			var shares []splitter.Share
			for _, c := range clusters {
				if !out[c] {
					shares = append(shares, splitter.Share{Name: c})
				} else if w.shards[c] != nil {
					shares = append(shares, splitter.Share{Name: c, Max: new(int64(0))})
				}
			}
			mode := rapid.SampledFrom([]splitter.Mode{splitter.Spread, splitter.Fewest, splitter.Duplicate}).Draw(t, "mode")
			w.step(t, shares, splitter.Demand{UID: "uid", Mode: mode, Moves: rapid.Int64Range(0, 3).Draw(t, "moves")})
			w.check(t)
		}
	})
}

// A cluster that gets its second shard has the ordinals of its first one, and no cluster has more replicas than ordinals.
// Shards that are older than the annotation keep their ordinals, and the condition Placed names their clusters.
func TestOrdinalsOverTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a, b, c := cluster("a", ""), cluster("b", ""), cluster("c", "")
		w := newWorld(t, splitter.Options{Kinds: []splitter.Kind{splitter.StatefulSets()}}, a, b)
		w.create(statefulSets, "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, annotations: {splitter.atoll.dev/ordinals-per-cluster: '10'}}, spec: {replicas: 4, serviceName: db, selector: {matchLabels: {app: db}}, template: {metadata: {labels: {app: db}}}}}")
		w.setRuns()
		ordinals := func() (text string) {
			for _, obj := range w.list(statefulSets) {
				if n, ok, _ := unstructured.NestedInt64(obj.Object, "spec", "ordinals", "start"); ok {
					text += fmt.Sprintf("%s:%d ", obj.GetLabels()["workloads.kcp.io/cluster"], n)
				}
			}
			return text
		}
		record := func() string { return w.get(statefulSets, "db").GetAnnotations()[v1alpha1.OrdinalsAnnotation] }
		require.Equal(t, "a:0 b:10 ", ordinals())
		require.Equal(t, "a=0-9,b=10-19", record())
		require.Equal(t, "a=0-9", w.get(statefulSets, "db--a").GetAnnotations()[v1alpha1.OrdinalsAnnotation])
		w.Reset()
		time.Sleep(time.Hour)
		require.Empty(t, w.writes(), "at rest")

		w.clusters.Set(b, c)
		w.setRuns()
		require.Equal(t, "b:10 c:20 ", ordinals(), "the ordinals of a are not given to c")
		w.clusters.Set(a, b, c)
		w.setRuns()
		require.Equal(t, "a:0 b:10 c:20 ", ordinals())

		w.patch(statefulSets, "db", `{"spec":{"replicas":40}}`)
		w.setRuns()
		require.Equal(t, "a:10 b:10 c:10", w.replicasIn())
		require.Contains(t, w.conditionOf(statefulSets, "db", "Placed"), "False Unplaced: 10 replicas find no place: a Max")
		w.patch(statefulSets, "db", `{"spec":{"replicas":3},"metadata":{"finalizers":null,"annotations":{"splitter.atoll.dev/ordinals":null}}}`)
		w.stop()
		again, err := splitter.New(w.api, w.clusters, splitter.Options{Kinds: []splitter.Kind{splitter.StatefulSets()}})
		require.NoError(t, err)
		w.start(again)
		w.setRuns()
		require.Equal(t, "a:0 b:10 c:20 ", ordinals())
		require.Equal(t, "a=0-9,b=10-19,c=20-29", record())

		w.patch(statefulSets, "db", `{"metadata":{"annotations":{"splitter.atoll.dev/ordinals-per-cluster":null,"splitter.atoll.dev/ordinals":null}}}`)
		w.setRuns()
		require.Equal(t, "a:0 b:10 c:20 ", ordinals(), "pods that run keep their ordinals")

		w.create(statefulSets, "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: old}, spec: {replicas: 3, serviceName: old, selector: {matchLabels: {app: old}}, template: {metadata: {labels: {app: old}}}}}")
		w.setRuns()
		w.patch(statefulSets, "old", `{"metadata":{"annotations":{"splitter.atoll.dev/ordinals-per-cluster":"x"}}}`)
		w.rest()
		w.patch(statefulSets, "old", `{"metadata":{"annotations":{"splitter.atoll.dev/ordinals-per-cluster":"10"}}}`)
		w.setRuns()
		require.Equal(t, "a=0-9,b=0-9,c=0-9", w.get(statefulSets, "old").GetAnnotations()[v1alpha1.OrdinalsAnnotation])
		require.Contains(t, w.conditionOf(statefulSets, "old", "Placed"), "False SameOrdinals: pods in these clusters may have the same ordinals, because they ran before the annotation splitter.atoll.dev/ordinals-per-cluster was set: a, b, c")
		w.clusters.Set(c)
		w.setRuns()
		require.Contains(t, w.conditionOf(statefulSets, "old", "Placed"), "True Placed")
		w.clusters.Set(a, b, c)
		w.setRuns()
		require.Contains(t, ordinals(), "c:0 ")
		require.Contains(t, w.conditionOf(statefulSets, "old", "Placed"), "True Placed")
	})
}

// The StatefulSet has the record of the ordinals before any shard exists, so that a killed Splitter loses none.
func TestOrdinalsAreRecordedFirst(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, splitter.Options{Kinds: []splitter.Kind{splitter.StatefulSets()}}, cluster("a", ""), cluster("b", ""))
		w.create(statefulSets, "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, annotations: {splitter.atoll.dev/ordinals-per-cluster: '10'}}, spec: {replicas: 4, serviceName: db, selector: {matchLabels: {app: db}}, template: {metadata: {labels: {app: db}}}}}")
		w.rest()
		var order []string
		for _, r := range w.Requests() {
			if r.FieldManager == splitter.Manager {
				order = append(order, r.Name)
			}
		}
		require.Len(t, order, 5, "%v", order)
		require.Equal(t, []string{"db", "db"}, order[:2], "the finalizer, then the record: %v", order)
		require.ElementsMatch(t, []string{"db--a", "db--b"}, order[2:4])
	})
}

// The parts of an autoscaler cannot ask for more replicas than their clusters have ordinals. A shard without replicas, from
// which an autoscaler scales up, has its ordinals.
func TestOrdinalsOfAnAutoscaledWorkload(t *testing.T) {
	for least, parts := range map[int]int{0: 1, 2: 2} {
		t.Run(fmt.Sprint(least), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, splitter.Options{Kinds: []splitter.Kind{splitter.StatefulSets()}, Followers: []splitter.Follower{splitter.Autoscalers()}}, cluster("a", ""), cluster("b", ""))
				w.create(statefulSets, fmt.Sprintf("{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, annotations: {splitter.atoll.dev/ordinals-per-cluster: '5'}}, spec: {replicas: %d, serviceName: db, selector: {matchLabels: {app: db}}, template: {metadata: {labels: {app: db}}}}}", least))
				w.create(autoscalers, strings.ReplaceAll(autoscaler("db", least, 40), "Deployment, name: web", "StatefulSet, name: db"))
				w.setRuns()
				var most []int64
				for _, obj := range w.list(autoscalers) {
					if obj.GetLabels()[v1alpha1.ParentLabel] != "" {
						n, _, _ := unstructured.NestedInt64(obj.Object, "spec", "maxReplicas")
						most = append(most, n)
					}
				}
				require.Equal(t, slices.Repeat([]int64{5}, parts), most)
				next := int64(0)
				for _, obj := range w.list(statefulSets) {
					if obj.GetName() != "db" {
						first, _, _ := unstructured.NestedInt64(obj.Object, "spec", "ordinals", "start")
						require.Equal(t, next, first)
						require.NotEmpty(t, obj.GetAnnotations()[v1alpha1.OrdinalsAnnotation])
						next += 5
					}
				}
				require.Equal(t, int64(5*parts), next)
			})
		})
	}
}
