// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/placement"
)

// thrash is a world in which random events happen.
type thrash struct {
	*world
	rand      *rand.Rand
	available map[types.UID]int64    // available replicas of each shard
	reported  map[types.UID][3]int64 // the last report: available and desired replicas, and the generation
	list      []splitter.Cluster
	stop      func()
}

// seeds returns the number of runs of each kind: ATOLL_THRASH, or two.
func seeds(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv("ATOLL_THRASH"))
	if err != nil {
		return 2
	}
	return n
}

// Clusters drain, become unreachable and return, policies and workloads are edited, shards are deleted
// by hand, writes fail and the controller restarts. At each moment the annotations and the labels of a
// ConfigMap name the same clusters. In the runs in which no cluster becomes unreachable and no shard
// is deleted, all replicas of the workload stay available. In the end each object is placed as the
// policy requires, and the Controller writes nothing.
func TestThrash(t *testing.T) {
	for seed := range seeds(t) {
		for name, lossy := range map[string]bool{"moves": false, "losses": true} {
			t.Run(fmt.Sprint(name, seed), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					x := &thrash{world: newWorld(t), rand: rand.New(rand.NewPCG(uint64(seed), 1)), available: map[types.UID]int64{}, reported: map[types.UID][3]int64{}}
					x.run(lossy)
				})
			})
		}
	}
}

func (x *thrash) run(lossy bool) {
	t := x.t
	x.consistent(configMaps)
	x.policy("p", "{dependents: true, maxClusters: 2, spreadBy: ["+zone+"]}")
	x.configMap("settings", "")
	x.configMap("next", "")
	web := deployment("web", 6, ", volumes: [{name: v, configMap: {name: settings}}]")
	x.create(deployments, strings.Replace(web, "maxSurge: 100%", "maxSurge: 1", 1))
	for i := range 5 {
		x.list = append(x.list, cluster(fmt.Sprint("c", i), zone+"="+strconv.Itoa(i%2)))
	}
	x.stop = x.startPlacement(placement.Options{Linger: 10 * time.Second}, x.list...)
	x.split(x.list...)
	for range 10 {
		x.tick()
	}
	for range 40 {
		x.happens(lossy)
		for range 1 + x.rand.IntN(15) {
			works := x.tick()
			if !lossy {
				require.GreaterOrEqual(t, works, int64(6), "of %v", x.shards())
			}
		}
	}
	for i := range x.list {
		x.list[i] = cluster(x.list[i].Name, zone+"="+strconv.Itoa(i%2))
	}
	x.set(x.list...)
	x.patch(policies, "p", `{"spec":{"maxClusters":2,"mode":"Divide"}}`)
	for range 300 {
		x.tick()
	}
	parent := x.get(deployments, "web")
	placed := split(parent.GetAnnotations()["splitter.atoll.dev/placement"])
	require.Len(t, placed, 2)
	require.NotContains(t, parent.GetAnnotations(), "splitter.atoll.dev/leaving")
	var shards []string
	var total int64
	for c, n := range x.shards() {
		shards = append(shards, c)
		total += n
	}
	slices.Sort(shards)
	require.Equal(t, placed, shards, "no shard is left over")
	require.Equal(t, int64(6), total)
	volumes, _, _ := unstructured.NestedSlice(parent.Object, "spec", "template", "spec", "volumes")
	refers, _, _ := unstructured.NestedString(volumes[0].(map[string]any), "configMap", "name")
	for _, name := range []string{"settings", "next"} {
		if name == refers {
			require.Equal(t, list(placed), x.targets(configMaps, name))
		} else {
			require.Equal(t, "NONE", x.targets(configMaps, name))
		}
	}
	x.Reset()
	time.Sleep(time.Hour)
	require.Empty(t, x.writes(), "at rest")
}

// tick lets one second pass. In each cluster one more of the desired replicas becomes available, and
// surplus replicas are removed. It returns the number of available replicas.
func (x *thrash) tick() (works int64) {
	synctest.Wait()
	here := map[types.UID]bool{}
	shards := x.shardObjects()
	for _, shard := range shards {
		uid := shard.GetUID()
		here[uid] = true
		x.available[uid] = min(replicasOf(shard), x.available[uid]+1)
		works += x.available[uid]
	}
	for _, shard := range shards {
		uid, name := shard.GetUID(), shard.GetName()
		still := x.get(deployments, name)
		if still == nil || still.GetUID() != uid {
			continue
		}
		if now := [3]int64{x.available[uid], replicasOf(shard), still.GetGeneration()}; x.reported[uid] != now {
			x.works(name, x.available[uid]) // the status in this report may lead to the deletion of other shards
			x.reported[uid] = now
			synctest.Wait()
		}
	}
	maps.DeleteFunc(x.available, func(uid types.UID, _ int64) bool { return !here[uid] })
	maps.DeleteFunc(x.reported, func(uid types.UID, _ [3]int64) bool { return !here[uid] })
	time.Sleep(time.Second)
	synctest.Wait()
	return works
}

func (x *thrash) happens(lossy bool) {
	i := x.rand.IntN(len(x.list))
	plain := cluster(x.list[i].Name, zone+"="+strconv.Itoa(i%2))
	switch n := x.rand.IntN(10); {
	case n == 0:
		x.patch(policies, "p", fmt.Sprintf(`{"spec":{"maxClusters":%d}}`, x.rand.IntN(4)))
	case n == 1:
		refers := []string{"settings", "next"}[x.rand.IntN(2)]
		x.patch(deployments, "web", `{"spec":{"template":{"spec":{"volumes":[{"name":"v","configMap":{"name":"`+refers+`"}}]}}}}`)
	case n == 2:
		x.stop()
		x.clusters = slices.Delete(x.clusters, 0, len(x.clusters)-1) // the last script is the Splitter's
		x.stop = x.startPlacement(placement.Options{Linger: 10 * time.Second}, x.list...)
		x.clusters[0], x.clusters[1] = x.clusters[1], x.clusters[0]
	case n == 3:
		x.Inject(regiontest.Fault{Verb: "patch", Resource: configMaps.GroupResource(), Times: 1 + x.rand.IntN(3), Do: regiontest.Refuse(503)})
	case n == 4 && lossy:
		if shards := x.shardObjects(); len(shards) > 0 {
			_ = x.of(deployments).Delete(x.t.Context(), shards[0].GetName(), metav1.DeleteOptions{})
		}
	case n == 5 && lossy:
		x.list[i] = silent(plain)
	case n < 7:
		x.list[i] = draining(plain)
	default:
		x.list[i] = plain
	}
	x.set(x.list...)
}
