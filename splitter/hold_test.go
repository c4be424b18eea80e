// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/atoll-dev/atoll/internal/clustertest"
	"github.com/atoll-dev/atoll/internal/logtest"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/splitter"
	syncerv1alpha1 "github.com/atoll-dev/atoll/syncer/v1alpha1"
)

// A held claim gets no new replicas. A held claim without upper bounds keeps its present replicas if
// the demand is enough for all present replicas, and for the held replicas together with the minima
// of the other claims.
func TestDivideHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, shares := demand(t, splitter.Spread, splitter.Fewest, splitter.Fill, splitter.Duplicate), flat(t)
		var present, minima int64
		for i := range shares {
			s := &shares[i]
			s.Hold = rapid.Bool().Draw(t, "hold")
			stays := s.Present
			for _, bound := range []*int64{s.Max, s.Capacity} {
				if bound != nil {
					stays = min(stays, *bound)
				}
			}
			present += stays
			if s.Hold {
				minima += stays
			} else {
				minima += s.Min
			}
		}
		plan := mustDivide(t, d, shares)
		if d.Mode != splitter.Duplicate {
			var placed int64
			for _, a := range plan.Shards {
				placed += a.Replicas
			}
			require.Equal(t, d.Replicas, placed+plan.Unplaced)
		}
		for _, s := range shares {
			if !s.Hold {
				continue
			}
			require.LessOrEqual(t, plan.Replicas(s.Name), s.Present, s.Name)
			if present <= d.Replicas && minima <= d.Replicas && s.Max == nil && s.Capacity == nil {
				require.Equal(t, s.Present, plan.Replicas(s.Name), s.Name)
			}
		}
	})
}

// A cluster that is unschedulable and has more than its share does not prevent the other clusters
// from reaching their shares.
func TestOthersMoveWhileOneHolds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		full := cluster("full", "")
		full.Unschedulable = true
		w := newWorld(t, splitter.Options{}, cluster("full", ""), cluster("a", ""))
		w.create(deployments, deployment("web", 8))
		w.rest()
		w.works("web--full", 4)
		w.works("web--a", 4)
		w.rest()
		w.clusters.Set(full, cluster("a", ""), cluster("b", ""))
		for range 5 {
			w.rest()
			for c, n := range w.shards() {
				w.works("web--"+c, n)
			}
		}
		require.Equal(t, map[string]int64{"full": 4, "a": 2, "b": 2}, w.shards())
	})
}

// Another client creates an object with a shard's name after the Splitter has read its cache and
// before the Splitter writes. The Splitter leaves this object alone, and reports its name.
func TestNobodyElsesObjectBecomesAShard(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, splitter.Options{}, cluster("a", ""), cluster("b", ""))
		w.Inject(regiontest.Fault{Verb: "patch", Name: "web--a", Do: regiontest.Delay(5 * time.Second)})
		parent := w.create(deployments, deployment("web", 4))
		time.Sleep(time.Second)
		foreign := w.create(deployments, deployment("web--a", 2))
		w.rest()
		require.Equal(t, "False NameTaken: other clients' objects have these names: web--a", w.conditionOf(deployments, "web", "Placed"))
		after := w.get(deployments, "web--a")
		require.Equal(t, foreign.GetUID(), after.GetUID())
		require.NotContains(t, after.GetLabels(), "splitter.atoll.dev/parent")
		require.Equal(t, string(parent.GetUID()), w.get(deployments, "web--b").GetLabels()["splitter.atoll.dev/parent"])
	})
}

// A Splitter that starts while a cluster is unreachable waits for the whole grace period before it
// moves the cluster's replicas. When the cluster is ready for the first time, it gets replicas
// without the rejoin period.
func TestASilentClusterThatWasNeverSeenReady(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, splitter.Options{}, cluster("a", ""), cluster("b", ""))
		w.create(deployments, deployment("web", 4))
		w.rest()
		w.works("web--a", 2)
		w.works("web--b", 2)
		w.stop()
		silent := cluster("a", "")
		silent.Ready = metav1.ConditionFalse
		w.clusters = clustertest.NewScript(silent, cluster("b", ""))
		second, err := splitter.New(w.api, w.clusters, splitter.Options{})
		require.NoError(t, err)
		w.start(second)
		time.Sleep(4 * time.Minute)
		require.Equal(t, map[string]int64{"a": 2, "b": 2}, w.shards())
		time.Sleep(2 * time.Minute)
		require.Equal(t, map[string]int64{"b": 4}, w.shards())
		w.works("web--b", 4)
		w.clusters.Set(cluster("a", ""), cluster("b", ""))
		w.rest()
		require.Equal(t, int64(1), w.shards()["a"], "a new cluster is trusted at once")
	})
}

// While no cluster is ready, no replica moves: the cause may be the upstream or this process, and no
// other cluster could run the replicas. When one cluster is ready again, the grace period of each
// unready cluster begins anew.
func TestNoReplicaMovesWhileNoClusterIsReady(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, splitter.Options{}, cluster("a", ""), cluster("b", ""), cluster("c", ""))
		w.create(deployments, deployment("web", 6))
		w.rest()
		for _, shard := range []string{"web--a", "web--b", "web--c"} {
			w.works(shard, 2)
		}
		silent := func(names ...string) {
			list := []splitter.Cluster{cluster("a", ""), cluster("b", ""), cluster("c", "")}
			for i := range list {
				if slices.Contains(names, list[i].Name) {
					list[i].Ready = metav1.ConditionUnknown
				}
			}
			w.clusters.Set(list...)
		}
		all := map[string]int64{"a": 2, "b": 2, "c": 2}
		silent("a")
		time.Sleep(4 * time.Minute)
		silent("a", "b", "c")
		time.Sleep(time.Hour)
		require.Equal(t, all, w.shards())
		silent("a", "c")
		time.Sleep(4 * time.Minute)
		require.Equal(t, all, w.shards(), "the silence of all clusters does not count")
		silent("a")
		time.Sleep(2 * time.Minute)
		w.works("web--b", 5)
		w.works("web--c", 5)
		w.rest()
		require.Equal(t, map[string]int64{"b": 3, "c": 3}, w.shards(), "a was silent for 5 minutes, c for 4")
	})
}

// Four of six clusters become unreachable at once. They lose their replicas one after another. The clusters that return
// before their turn keep their replicas.
func TestReplicasOfManyLostClustersMoveSlowly(t *testing.T) {
	bubble(t, func(t *testing.T) {
		names := []string{"a", "b", "c", "d", "e", "f"}
		list := func(silent ...string) (list []splitter.Cluster) {
			for _, name := range names {
				c := cluster(name, "")
				if slices.Contains(silent, name) {
					c.Ready = metav1.ConditionUnknown
				}
				list = append(list, c)
			}
			return list
		}
		lines := logtest.New()
		w := newWorld(t, splitter.Options{EvictionInterval: 10 * time.Minute, UnhealthyPercent: 60, Logger: lines.Logger()}, list()...)
		w.create(deployments, deployment("web", 12))
		w.rest()
		for _, name := range names {
			w.works("web--"+name, 2)
		}
		w.clusters.Set(list("a", "b", "c", "d")...)
		lines.Await(t, "Many clusters are unready", `"unready"=4 "clusters"=6`)
		time.Sleep(5*time.Minute + time.Second)
		require.Equal(t, map[string]int64{"b": 2, "c": 2, "d": 2, "e": 3, "f": 3}, w.shards())
		w.works("web--e", 3)
		w.works("web--f", 3)
		time.Sleep(9 * time.Minute)
		require.Len(t, w.shards(), 5)
		time.Sleep(time.Minute)
		require.Equal(t, map[string]int64{"c": 2, "d": 2, "e": 4, "f": 4}, w.shards())
		w.works("web--e", 4)
		w.works("web--f", 4)
		w.clusters.Set(list("a", "b")...)
		time.Sleep(time.Hour)
		require.Equal(t, map[string]int64{"c": 3, "d": 3, "e": 3, "f": 3}, w.shards(), "c and d are back, and take part in the balance")
	})
}

// A taint without a time keeps the time of its first observation as long as it stays.
func TestTaintsGetTheTimeOfTheirFirstObservation(t *testing.T) {
	bubble(t, func(t *testing.T) {
		clean, begin := cluster("a", ""), time.Now()
		tainted := clean
		tainted.Taints = []syncerv1alpha1.Taint{{Key: "repair", Effect: corev1.TaintEffectNoExecute}}
		other := tainted
		other.Taints = append(slices.Clone(tainted.Taints), syncerv1alpha1.Taint{Key: "gpu", Effect: corev1.TaintEffectNoSchedule})
		clusters := clustertest.NewScript(tainted)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		minute := 0
		for list := range splitter.States(ctx, clusters, splitter.Periods{}) {
			var times []time.Duration
			for _, taint := range list[0].Taints {
				times = append(times, taint.TimeAdded.Sub(begin))
			}
			require.Equal(t, [][]time.Duration{{0}, {0, time.Minute}, {0}, nil, {4 * time.Minute}}[minute], times)
			if minute++; minute == 5 {
				break
			}
			time.Sleep(time.Minute)
			clusters.Set([][]splitter.Cluster{1: {other}, {tainted}, {clean}, {tainted}}[minute]...)
		}
		require.Nil(t, tainted.Taints[0].TimeAdded, "the list of the Watch is unchanged")
	})
}

func TestStates(t *testing.T) {
	bubble(t, func(t *testing.T) {
		clusters := clustertest.NewScript(cluster("b", ""), cluster("a", ""))
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		var seen []map[string]splitter.State
		done := make(chan struct{})
		go func() {
			defer close(done)
			for list := range splitter.States(ctx, clusters, splitter.Periods{}) {
				m := map[string]splitter.State{}
				for _, c := range list {
					m[c.Name] = c.State
				}
				mu.Lock()
				seen = append(seen, m)
				mu.Unlock()
			}
		}()
		last := func() map[string]splitter.State {
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			return seen[len(seen)-1]
		}
		require.Equal(t, map[string]splitter.State{"a": splitter.Placeable, "b": splitter.Placeable}, last())
		silent, drains := cluster("a", ""), cluster("b", "")
		silent.Ready = metav1.ConditionUnknown
		drains.EvictAfter = time.Now().Add(time.Minute)
		clusters.Set(silent, drains)
		require.Equal(t, map[string]splitter.State{"a": splitter.Holding, "b": splitter.Placeable}, last())
		time.Sleep(time.Minute)
		require.Equal(t, map[string]splitter.State{"a": splitter.Holding, "b": splitter.Draining}, last(), "by time alone")
		time.Sleep(4 * time.Minute)
		require.Equal(t, map[string]splitter.State{"b": splitter.Draining}, last())
		clusters.Set(cluster("a", ""), drains)
		require.Len(t, last(), 1, "one moment of readiness is not enough")
		time.Sleep(time.Minute)
		require.Len(t, last(), 2)
		yields := func() int {
			mu.Lock()
			defer mu.Unlock()
			return len(seen)
		}
		n := yields()
		clusters.Set(cluster("a", ""), drains)
		time.Sleep(time.Hour)
		last()
		require.Equal(t, n, yields(), "nothing has changed")
		cancel()
		<-done
	})
}
