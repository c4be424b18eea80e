// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/clustertest"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/splitter"
)

const finalizer = "splitter.atoll.dev/shards"

// bubble runs a test in virtual time.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, test)
}

func TestTheDemo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, splitter.Options{}, cluster("cluster-1", "2"), cluster("cluster-2", "3"))
		w.create(deployments, deployment("my-deployment", 15))
		w.rest()
		require.Len(t, w.list(deployments), 3)
		require.Equal(t, map[string]int64{"cluster-1": 6, "cluster-2": 9}, w.shards())
		require.Equal(t, "0/15", w.ready("my-deployment"))
		require.Zero(t, observed(w.get(deployments, "my-deployment")))

		w.works("my-deployment--cluster-1", 1)
		w.works("my-deployment--cluster-2", 7)
		w.rest()
		require.Equal(t, "8/15", w.ready("my-deployment"))
		require.Equal(t, int64(1), observed(w.get(deployments, "my-deployment")))
		require.Equal(t, "False MinimumReplicasUnavailable: 8 of 15 replicas are available: cluster-1 1 of 6, cluster-2 7 of 9",
			w.conditionOf(deployments, "my-deployment", "Available"))
		require.Contains(t, w.conditionOf(deployments, "my-deployment", "Progressing"), "True ReplicaSetUpdated")

		w.works("my-deployment--cluster-1", 6)
		w.works("my-deployment--cluster-2", 9)
		w.rest()
		require.Equal(t, "15/15", w.ready("my-deployment"))
		require.Equal(t, "True MinimumReplicasAvailable: 15 of 15 replicas are available", w.conditionOf(deployments, "my-deployment", "Available"))
		require.Contains(t, w.conditionOf(deployments, "my-deployment", "Progressing"), "True NewReplicaSetAvailable")
		require.Contains(t, w.conditionOf(deployments, "my-deployment", "Placed"), "True Placed")

		w.Reset()
		time.Sleep(time.Hour)
		require.Empty(t, w.writes(), "at rest")
	})
}

func observed(obj *unstructured.Unstructured) int64 {
	n, _, _ := unstructured.NestedInt64(obj.Object, "status", "observedGeneration")
	return n
}

func TestShardsAreLikeTheirParent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, splitter.Options{}, cluster("a", ""), cluster("b", ""))
		parent := w.create(deployments, deployment("web", 4))
		w.rest()
		shard := w.get(deployments, "web--a")
		require.Equal(t, map[string]string{"app": "web", "workloads.kcp.io/cluster": "a", "splitter.atoll.dev/parent": string(parent.GetUID())}, shard.GetLabels())
		annotations := shard.GetAnnotations()
		require.Len(t, annotations["splitter.atoll.dev/template"], 16)
		delete(annotations, "splitter.atoll.dev/template")
		require.Equal(t, map[string]string{"note": "kept", "splitter.atoll.dev/parent-name": "web", "splitter.atoll.dev/cluster": "a"}, annotations)
		require.Empty(t, shard.GetOwnerReferences())
		require.Empty(t, shard.GetFinalizers())
		require.Equal(t, []string{finalizer}, w.get(deployments, "web").GetFinalizers())

		// The Splitter copies changes of the parent to the shards. It undoes changes that other
		// clients make to fields that it owns.
		w.patch(deployments, "web", `{"metadata":{"annotations":{"note":null}},"spec":{"replicas":8,"template":{"spec":{"containers":[{"name":"web","image":"web:2"}]}}}}`)
		w.patch(deployments, "web--b", `{"metadata":{"labels":{"workloads.kcp.io/cluster":"z","theirs":"stays"}},"spec":{"replicas":1,"paused":true}}`)
		require.NoError(t, w.of(deployments).Delete(t.Context(), "web--a", metav1.DeleteOptions{}))
		w.rest()
		for _, name := range []string{"web--a", "web--b"} {
			shard := w.get(deployments, name)
			require.NotContains(t, shard.GetAnnotations(), "note")
			containers, _, _ := unstructured.NestedSlice(shard.Object, "spec", "template", "spec", "containers")
			require.Equal(t, "web:2", containers[0].(map[string]any)["image"])
		}
		require.Equal(t, map[string]int64{"a": 4, "b": 4}, w.shards())
		require.Equal(t, "stays", w.get(deployments, "web--b").GetLabels()["theirs"])
		w.Reset()
		time.Sleep(time.Hour)
		require.Empty(t, w.writes())
	})
}

func TestWhatIsNotOursIsLeftAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, splitter.Options{}, cluster("a", ""), cluster("b", ""))
		foreign := w.create(deployments, deployment("web--a", 3))
		given := w.create(deployments, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: given, labels: {workloads.kcp.io/cluster: a}}, spec: {replicas: 2,
			selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {containers: [{name: x, image: x}]}}}}`)
		w.create(deployments, deployment("web", 4))
		w.rest()
		require.Equal(t, "False NameTaken: other clients' objects have these names: web--a", w.conditionOf(deployments, "web", "Placed"))
		require.NotNil(t, w.get(deployments, "web--b"))
		require.Equal(t, given.GetResourceVersion(), w.get(deployments, "given").GetResourceVersion(), "one that has a cluster is not divided")
		require.Equal(t, foreign.Object["spec"], w.get(deployments, "web--a").Object["spec"])
		require.NotContains(t, w.get(deployments, "web--a").GetLabels(), "splitter.atoll.dev/parent")

		// The other client's object web--a is itself a parent. When it is deleted, the Splitter
		// creates a shard with its name.
		require.NoError(t, w.of(deployments).Delete(t.Context(), "web--a", metav1.DeleteOptions{}))
		w.rest()
		require.Equal(t, "web", w.get(deployments, "web--a").GetAnnotations()["splitter.atoll.dev/parent-name"])
	})
}

func TestShardsGoWithTheirParent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, splitter.Options{}, cluster("a", ""), cluster("b", ""))
		w.create(deployments, deployment("web", 4))
		w.create(deployments, deployment("other", 4))
		w.rest()
		// A syncer's finalizer keeps a shard until the syncer has deleted the shard's object in its
		// cluster.
		w.patch(deployments, "web--a", `{"metadata":{"finalizers":["example.org/syncer"]}}`)
		require.NoError(t, w.of(deployments).Delete(t.Context(), "web", metav1.DeleteOptions{}))
		w.rest()
		require.NotNil(t, w.get(deployments, "web"))
		require.Nil(t, w.get(deployments, "web--b"))
		w.patch(deployments, "web--a", `{"metadata":{"finalizers":null}}`)
		w.rest()
		require.Nil(t, w.get(deployments, "web"))
		require.Nil(t, w.get(deployments, "web--a"))
		require.Len(t, w.list(deployments), 3, "the other and its shards")

		// Another client removes the finalizer, and a new parent with the same name is created at
		// once.
		w.patch(deployments, "other", `{"metadata":{"finalizers":null}}`)
		require.NoError(t, w.of(deployments).Delete(t.Context(), "other", metav1.DeleteOptions{}))
		// The Splitter may have added the finalizer again after the first patch.
		_, err := w.of(deployments).Patch(t.Context(), "other", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{FieldManager: "user"})
		if !apierrors.IsNotFound(err) {
			require.NoError(t, err)
		}
		parent := w.create(deployments, deployment("other", 2))
		w.rest()
		require.Equal(t, map[string]int64{"a": 1, "b": 1}, w.shards())
		require.Equal(t, string(parent.GetUID()), w.get(deployments, "other--a").GetLabels()["splitter.atoll.dev/parent"])
	})
}

func TestMovesDoNotDip(t *testing.T) {
	draining := cluster("a", "")
	draining.EvictAfter = time.Unix(1, 0)
	for name, next := range map[string][]splitter.Cluster{
		"one joins":  {cluster("a", ""), cluster("b", ""), cluster("c", "")},
		"one drains": {draining, cluster("b", "")},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, splitter.Options{}, cluster("a", ""), cluster("b", ""))
				w.create(deployments, deployment("web", 12, "  strategy: {rollingUpdate: {maxUnavailable: 1, maxSurge: 1}}"))
				w.rest()
				available := map[string]int64{}
				report := func() {
					for c := range w.shards() {
						if w.get(deployments, "web--"+c) != nil { // the Splitter may have deleted the shard after the previous report
							w.works("web--"+c, available[c])
							synctest.Wait()
						}
					}
				}
				// Each second one replica becomes available in some cluster; surplus replicas are
				// removed at once.
				step := func() (sum int64) {
					grown := false
					shards := w.shards()
					for c, n := range available {
						available[c] = min(n, shards[c])
					}
					for _, c := range []string{"c", "b", "a"} {
						if available[c] < shards[c] && !grown {
							available[c]++
							grown = true
						}
						sum += available[c]
					}
					report()
					time.Sleep(time.Second)
					synctest.Wait()
					return sum
				}
				for range 40 {
					step()
				}
				require.Equal(t, "12/12", w.ready("web"))
				w.clusters.Set(next...)
				for range 120 {
					require.GreaterOrEqual(t, step(), int64(11), "%v of %v", available, w.shards())
				}
				require.Equal(t, "12/12", w.ready("web"))
				want := map[string]int64{"a": 4, "b": 4, "c": 4}
				if name == "one drains" {
					want = map[string]int64{"b": 12}
				}
				require.Equal(t, want, w.shards())
			})
		})
	}
}

func TestNothingMovesBeforeItWorksElsewhere(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, splitter.Options{}, cluster("a", ""))
		w.create(deployments, deployment("web", 4, "  strategy: {rollingUpdate: {maxUnavailable: 0, maxSurge: 4}}"))
		w.rest()
		w.works("web--a", 4)
		drained := cluster("a", "")
		drained.EvictAfter = time.Unix(1, 0)
		w.clusters.Set(drained)
		w.rest()
		require.Equal(t, map[string]int64{"a": 4}, w.shards(), "no other cluster may have replicas")
		require.Equal(t, "False Unplaced: 4 replicas find no place: a Max", w.conditionOf(deployments, "web", "Placed"))
		w.clusters.Set(drained, cluster("b", ""))
		w.rest()
		require.Equal(t, map[string]int64{"a": 4, "b": 4}, w.shards())
		w.works("web--b", 3)
		w.rest()
		require.Equal(t, map[string]int64{"a": 1, "b": 4}, w.shards())
		w.works("web--b", 4)
		w.rest()
		require.Equal(t, map[string]int64{"b": 4}, w.shards())
	})
}

func TestASilentClusterKeepsWhatItHasForAWhile(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, splitter.Options{}, cluster("a", ""), cluster("b", ""))
		w.create(deployments, deployment("web", 10))
		w.rest()
		w.works("web--a", 5)
		w.works("web--b", 5)
		w.rest()
		silent := cluster("a", "")
		silent.Ready = metav1.ConditionUnknown
		w.clusters.Set(silent, cluster("b", ""))
		w.rest()
		require.Equal(t, "10/10", w.ready("web"), "the last known status, not zero")
		require.Contains(t, w.conditionOf(deployments, "web", "Available"), "True MinimumReplicasAvailable: 10 of 10 replicas are available: a is unreachable")
		w.patch(deployments, "web", `{"spec":{"replicas":12}}`)
		w.rest()
		require.Equal(t, map[string]int64{"a": 5, "b": 7}, w.shards(), "it gets nothing more")

		// The cluster is reachable again before Grace ends. The shards still have all replicas.
		w.clusters.Set(cluster("a", ""), cluster("b", ""))
		w.works("web--b", 7)
		w.rest()
		require.Equal(t, int64(12), w.shards()["a"]+w.shards()["b"])

		// The cluster stays unreachable for longer than Grace.
		w.clusters.Set(silent, cluster("b", ""))
		time.Sleep(5 * time.Minute)
		w.rest()
		require.Equal(t, map[string]int64{"b": 12}, w.shards())
		// The cluster gets replicas again after it was ready for a minute, not at once.
		w.clusters.Set(cluster("a", ""), cluster("b", ""))
		w.works("web--b", 12)
		w.rest()
		require.Equal(t, map[string]int64{"b": 12}, w.shards())
		time.Sleep(time.Minute)
		w.rest()
		require.Equal(t, int64(3), w.shards()["a"], "a quarter moves at once")
	})
}

// A Splitter that starts when all parents are divided writes nothing, even if its first lists fail.
func TestARestartWritesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var mu sync.Mutex
		var events []splitter.DividedEvent
		w := newWorld(t, splitter.Options{Observer: &splitter.Observer{Divided: func(_ context.Context, e splitter.DividedEvent) {
			mu.Lock()
			defer mu.Unlock()
			events = append(events, e)
		}}}, cluster("a", ""), cluster("b", ""))
		w.create(deployments, deployment("web", 5))
		w.rest()
		mu.Lock()
		require.Len(t, events, 1)
		require.Equal(t, []string{"web--a", "web--b"}, events[0].Written)
		require.Equal(t, "default/web", events[0].Parent.String())
		mu.Unlock()
		w.stop()
		w.Reset()
		// An object that cannot be listed for some time does not count as absent.
		w.Inject(regiontest.Fault{Verb: "list", Times: 5, Do: regiontest.Refuse(503)})
		second, err := splitter.New(w.api, clustertest.NewScript(w.clusters.List()...), splitter.Options{})
		require.NoError(t, err)
		w.start(second)
		time.Sleep(time.Hour)
		require.Empty(t, w.writes())
	})
}

// The options Label, Grace and Rejoin take effect, also with only one worker.
func TestOptions(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, splitter.Options{Label: "example.org/cluster", Workers: 1, Grace: 10 * time.Second, Rejoin: 15 * time.Second}, cluster("a", ""), cluster("b", ""))
		w.create(deployments, deployment("web", 2))
		w.rest()
		require.Equal(t, "a", w.get(deployments, "web--a").GetLabels()["example.org/cluster"])
		require.NotContains(t, w.get(deployments, "web--a").GetLabels(), "workloads.kcp.io/cluster")
		silent := cluster("a", "")
		silent.Ready = metav1.ConditionFalse
		w.clusters.Set(silent, cluster("b", ""))
		time.Sleep(9 * time.Second)
		synctest.Wait()
		require.NotNil(t, w.get(deployments, "web--a"))
		w.rest()
		require.Nil(t, w.get(deployments, "web--a"))
		w.works("web--b", 2)
		w.clusters.Set(cluster("a", ""), cluster("b", ""))
		time.Sleep(14 * time.Second)
		synctest.Wait()
		require.Nil(t, w.get(deployments, "web--a"))
		w.rest()
		require.NotNil(t, w.get(deployments, "web--a"))
	})
}
