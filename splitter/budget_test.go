// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/atoll-dev/atoll/internal/clustertest"
	"github.com/atoll-dev/atoll/splitter"
)

// running is the number of available and unavailable replicas in one cluster.
type running struct{ works, broken int64 }

// runs holds the replicas of a workload by cluster, as the clusters' controllers run them.
type runs map[string]running

func (r runs) works() (n int64) {
	for _, c := range r {
		n += c.works
	}
	return n
}

// shards returns the shards of all clusters, with the status that the clusters report.
func (r runs) shards(t require.TestingT) (have []splitter.Shard) {
	for _, c := range slices.Sorted(maps.Keys(r)) {
		have = append(have, shard(t, c, fmt.Sprintf(`spec: {replicas: %d}, status: {observedGeneration: 2, replicas: %d, updatedReplicas: %d, availableReplicas: %d}`,
			r[c].works+r[c].broken, r[c].works+r[c].broken, r[c].works+r[c].broken, r[c].works)))
	}
	return have
}

// follow scales each cluster to the desired replicas in want. New replicas are unavailable at
// first. A scale-down removes unavailable replicas first if brokenFirst is true, otherwise
// available ones.
func (r runs) follow(want map[string]any, brokenFirst bool) {
	for c, is := range r {
		n, _ := want[c].(int64)
		less := max(0, is.works+is.broken-n)
		if brokenFirst {
			of := min(less, is.broken)
			is.broken, is.works = is.broken-of, is.works-(less-of)
		} else {
			of := min(less, is.works)
			is.works, is.broken = is.works-of, is.broken-(less-of)
		}
		r[c] = is
		if n == 0 {
			delete(r, c)
		}
	}
	for c, n := range want {
		is := r[c]
		is.broken += n.(int64) - is.works - is.broken
		r[c] = is
	}
}

// In a random state, Cut returns shards, and each cluster scales to its shard. If at least
// (replicas - maxUnavailable) replicas were available, at least that many are available afterwards.
// If fewer were available, none of them is lost. A StatefulSet that stays in one cluster is an
// exception.
func TestNoWriteTakesMoreThanMayBeUnavailable(t *testing.T) {
	for name, kind := range map[string]splitter.Kind{"Deployments": splitter.Deployments(), "StatefulSets": splitter.StatefulSets()} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				is := runs{}
				d, shares := demand(t, dividing...), flat(t)
				n, unavailable := rapid.Int64Range(0, 20).Draw(t, "replicas"), int64(0)
				if name == "Deployments" {
					unavailable = rapid.Int64Range(0, 5).Draw(t, "unavailable")
				}
				for range rapid.IntRange(1, 30).Draw(t, "steps") {
					switch rapid.IntRange(0, 5).Draw(t, "what") {
					case 0:
						d, shares = demand(t, dividing...), flat(t)
					case 1:
						n = rapid.Int64Range(0, 20).Draw(t, "replicas")
					default:
						for _, c := range slices.Sorted(maps.Keys(is)) {
							all := is[c].works + is[c].broken
							works := rapid.Int64Range(0, all).Draw(t, "works")
							is[c] = running{works, all - works}
						}
					}
					parent := object(t, "X", fmt.Sprintf(`spec: {replicas: %d, strategy: {rollingUpdate: {maxUnavailable: %d, maxSurge: 1}}}, status: {observedGeneration: 2}`, n, unavailable))
					before := is.works()
					_, want, err := kind.Cut(parent, d, shares, is.shards(t))
					require.NoError(t, err)
					was := maps.Clone(is)
					fewer, alone := field(want, "spec.replicas"), false
					for c := range was {
						alone = name == "StatefulSets" && len(was) == 1 && fewer[c] == any(n) // no replica moves: without the Splitter, the cluster's controller would do the same
					}
					is.follow(fewer, name == "Deployments")
					if alone {
						continue
					}
					require.GreaterOrEqual(t, is.works(), min(before, n-min(n, unavailable)), "%v became %v", was, is)
				}
			})
		})
	}
}

// A replica that never becomes available delays moves to its own cluster, but not moves to other
// clusters. If its cluster has more than its share, the unavailable replica is removed first.
func TestAReplicaThatNeverWorksKeepsNobodyElsewhere(t *testing.T) {
	const budget = "  strategy: {rollingUpdate: {maxUnavailable: %d, maxSurge: 1}}"
	for name, test := range map[string]struct {
		unavailable int
		never       map[string]int64 // by cluster, how many replicas can become available there
		want        map[string]int64
	}{
		"one too many":                  {1, map[string]int64{"b": 5}, map[string]int64{"a": 4, "b": 4, "c": 4}},
		"one too many, and none may be": {0, map[string]int64{"b": 5}, map[string]int64{"a": 4, "b": 4, "c": 4}},
		"none of those that came":       {1, map[string]int64{"c": 0}, map[string]int64{"a": 5, "b": 6, "c": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, splitter.Options{}, cluster("a", ""), cluster("b", ""))
				w.create(deployments, deployment("web", 12, fmt.Sprintf(budget, test.unavailable)))
				w.rest()
				report := func() {
					for c, n := range w.shards() {
						if most, ok := test.never[c]; ok {
							n = min(n, most)
						}
						w.works("web--"+c, n)
					}
					w.rest()
				}
				report()
				w.clusters.Set(cluster("a", ""), cluster("b", ""), cluster("c", ""))
				w.rest()
				for range 10 {
					report()
				}
				require.Equal(t, test.want, w.shards())
			})
		})
	}
}

// A rollout uses up maxUnavailable. So a cluster that joins during a rollout gets replicas only
// after the rollout.
func TestNothingMovesForBalanceDuringARollout(t *testing.T) {
	joined := []splitter.Cluster{cluster("a", ""), cluster("b", ""), cluster("c", "")}
	image := func(w *world, of, image string) {
		w.patch(deployments, of, `{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"`+image+`"}]}}}}`)
	}
	for name, begin := range map[string]func(w *world){
		"of all": func(w *world) {
			// A new Splitter observes the new image and the new cluster at once.
			w.stop()
			image(w, "web", "web:2")
			w.clusters = clustertest.NewScript(joined...)
			second, err := splitter.New(w.api, w.clusters, splitter.Options{})
			require.NoError(w.t, err)
			w.start(second)
		},
		"of one that is put right": func(w *world) {
			image(w, "web--a", "theirs")
			w.rest()
			w.clusters.Set(joined...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t, splitter.Options{}, cluster("a", ""), cluster("b", ""))
				w.create(deployments, deployment("web", 12))
				w.rest()
				report := func(updated int64) {
					for c, n := range w.shards() {
						patch := fmt.Sprintf(`{"status":{"observedGeneration":%d,"replicas":%d,"availableReplicas":%d,"updatedReplicas":%d}}`,
							w.get(deployments, "web--"+c).GetGeneration(), n, n, min(updated, n))
						_, err := w.of(deployments).Patch(t.Context(), "web--"+c, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "syncer"}, "status")
						require.NoError(t, err)
					}
					w.rest()
				}
				report(6)
				before := map[string]int64{"a": 6, "b": 6}
				begin(w)
				w.rest()
				require.Equal(t, before, w.shards(), "no cluster has observed the new template")
				report(5)
				require.Equal(t, before, w.shards(), "not all replicas have the new template")
				report(6)
				require.Equal(t, before, w.shards(), "no cluster has observed the strategy after the rollout")
				report(6)
				require.Equal(t, int64(3), w.shards()["c"])
			})
		})
	}
}
