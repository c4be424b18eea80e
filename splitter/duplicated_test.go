// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/splitter"
)

// When the replicas of a lost cluster were placed elsewhere, the parent's condition Duplicated
// reports their number until the cluster's syncer has removed them.
func TestReplicasOfALostClusterAreReported(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, splitter.Options{Finalize: true}, cluster("a", ""), cluster("b", ""), cluster("c", ""))
		w.create(deployments, deployment("web", 9))
		w.rest()
		for _, name := range []string{"web--a", "web--b", "web--c"} {
			w.works(name, 3)
		}
		w.rest()
		lost := func(name string) splitter.Cluster {
			c := cluster(name, "")
			c.Ready = metav1.ConditionUnknown
			return c
		}
		w.clusters.Set(lost("a"), lost("b"), cluster("c", ""))
		time.Sleep(4 * time.Minute)
		w.rest()
		require.Empty(t, w.conditionOf(deployments, "web", "Duplicated"), "nothing is placed elsewhere yet")
		time.Sleep(2 * time.Minute)
		w.works("web--c", 9)
		w.rest()
		require.Equal(t, "9/9", w.ready("web"), "replicas that may run twice are not counted")
		require.Equal(t, "True ClusterLost: 6 replicas may run twice, as they were placed elsewhere and are not removed yet: "+
			"a had 3 at its last report, b had 3 at its last report", w.conditionOf(deployments, "web", "Duplicated"))
		w.Reset()
		time.Sleep(time.Hour)
		require.Empty(t, w.writes(), "it is written once")

		// One cluster returns, and its syncer removes its replicas.
		w.clusters.Set(cluster("a", ""), lost("b"), cluster("c", ""))
		w.rest()
		require.Contains(t, w.conditionOf(deployments, "web", "Duplicated"), "6 replicas")
		w.patch(deployments, "web--a", `{"metadata":{"finalizers":null}}`)
		w.rest()
		require.Equal(t, "True ClusterLost: 3 replicas may run twice, as they were placed elsewhere and are not removed yet: "+
			"b had 3 at its last report", w.conditionOf(deployments, "web", "Duplicated"))
		w.patch(deployments, "web--b", `{"metadata":{"finalizers":null}}`)
		w.rest()
		require.Empty(t, w.conditionOf(deployments, "web", "Duplicated"))
	})
}

// A move between reachable clusters is not reported as duplication: the old shard is deleted after
// other replicas are available.
func TestMovesAreNotReportedAsDuplicated(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, splitter.Options{Finalize: true}, cluster("a", ""), cluster("b", ""))
		w.create(deployments, deployment("web", 4, "  strategy: {rollingUpdate: {maxSurge: 100%}}"))
		w.rest()
		w.works("web--a", 2)
		w.works("web--b", 2)
		w.rest()
		drains := cluster("a", "")
		drains.EvictAfter = time.Now()
		w.clusters.Set(drains, cluster("b", ""))
		w.rest()
		w.works("web--b", 4)
		w.rest()
		require.NotNil(t, w.get(deployments, "web--a").GetDeletionTimestamp())
		require.Empty(t, w.conditionOf(deployments, "web", "Duplicated"))
	})
}
