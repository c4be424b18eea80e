// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/splitter"
)

// A shard under deletion still reports available replicas in its status. They do not count: another
// cluster that drains at that time keeps its replicas until others are available.
func TestWhatIsBeingRemovedDoesNotCount(t *testing.T) {
	bubble(t, func(t *testing.T) {
		drained := func(name string) splitter.Cluster {
			c := cluster(name, "")
			c.EvictAfter = time.Unix(1, 0)
			return c
		}
		w := newWorld(t, splitter.Options{}, cluster("a", ""))
		w.create(deployments, deployment("web", 4, "  strategy: {rollingUpdate: {maxUnavailable: 0, maxSurge: 4}}"))
		w.rest()
		w.patch(deployments, "web--a", `{"metadata":{"finalizers":["example.org/syncer"]}}`)
		w.works("web--a", 4)
		w.clusters.Set(drained("a"), cluster("b", ""))
		w.rest()
		w.works("web--b", 4)
		w.rest()
		require.NotNil(t, w.get(deployments, "web--a").GetDeletionTimestamp())

		w.clusters.Set(drained("a"), drained("b"), cluster("c", ""))
		w.rest()
		require.Equal(t, map[string]int64{"a": 4, "b": 4, "c": 4}, w.shards())
		require.Nil(t, w.get(deployments, "web--b").GetDeletionTimestamp())
		w.works("web--c", 4)
		w.rest()
		w.patch(deployments, "web--a", `{"metadata":{"finalizers":null}}`)
		w.rest()
		require.Equal(t, map[string]int64{"c": 4}, w.shards())
	})
}
