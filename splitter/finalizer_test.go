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

const (
	syncersOfA = "syncer.atoll.dev/a"
	syncersOfB = "syncer.atoll.dev/b"
)

// With Options.Finalize, the Splitter creates each shard with the finalizer of its cluster's
// syncer. Later writes keep the finalizer, also those of a Splitter without Finalize.
func TestShardsAreMadeWithAFinalizer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, splitter.Options{Finalize: true}, cluster("a", ""), cluster("b", ""))
		w.create(deployments, deployment("web", 4))
		w.rest()
		require.Equal(t, []string{syncersOfA}, w.get(deployments, "web--a").GetFinalizers())
		require.Equal(t, []string{syncersOfB}, w.get(deployments, "web--b").GetFinalizers())
		require.Equal(t, []string{finalizer}, w.get(deployments, "web").GetFinalizers())
		w.patch(deployments, "web", `{"spec":{"replicas":8}}`)
		w.rest()
		require.Equal(t, map[string]int64{"a": 4, "b": 4}, w.shards())
		require.Equal(t, []string{syncersOfA}, w.get(deployments, "web--a").GetFinalizers(), "a change leaves it there")

		// A Splitter without Finalize does not remove the syncer's finalizer from existing
		// shards, and writes nothing.
		w.stop()
		w.Reset()
		s, err := splitter.New(w.api, w.clusters, splitter.Options{})
		require.NoError(t, err)
		w.start(s)
		w.rest()
		require.Empty(t, w.writes())
		w.patch(deployments, "web", `{"spec":{"replicas":10}}`)
		w.rest()
		require.Equal(t, map[string]int64{"a": 5, "b": 5}, w.shards())
		require.Equal(t, []string{syncersOfA}, w.get(deployments, "web--a").GetFinalizers())
	})
}

// A finalizer that a syncer has removed does not come back, even from a Splitter with a stale
// cache.
func TestAFinalizerDoesNotComeBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newLateWorld(t, splitter.Options{Finalize: true}, cluster("a", ""), cluster("b", ""))
		w.rest()
		w.create(deployments, deployment("web", 4))
		w.rest()
		// Another client's finalizer keeps both shards. Then the shard of cluster b is deleted.
		w.patch(deployments, "web--a", `{"metadata":{"finalizers":["example.org/theirs","`+syncersOfA+`"]}}`)
		w.patch(deployments, "web--b", `{"metadata":{"finalizers":["example.org/theirs","`+syncersOfB+`"]}}`)
		w.rest()
		require.NoError(t, w.of(deployments).Delete(t.Context(), "web--b", metav1.DeleteOptions{}))
		w.patch(deployments, "web", `{"spec":{"replicas":8}}`)
		time.Sleep(250 * time.Millisecond) // the Splitter is about to observe the parent, but not yet the writes below
		for _, name := range []string{"web--a", "web--b"} {
			w.patch(deployments, name, `{"metadata":{"finalizers":["example.org/theirs"]}}`)
		}
		for range 200 {
			time.Sleep(50 * time.Millisecond)
			for _, name := range []string{"web--a", "web--b"} {
				require.Equal(t, []string{"example.org/theirs"}, w.get(deployments, name).GetFinalizers())
			}
		}
		require.Equal(t, int64(4), w.shards()["a"], "the shard is synced as before")
		w.patch(deployments, "web--b", `{"metadata":{"finalizers":null}}`)
		w.rest()
		require.Equal(t, []string{syncersOfB}, w.get(deployments, "web--b").GetFinalizers(), "a new shard")
	})
}

// A deleted shard whose cluster has no syncer keeps the syncer's finalizer until the cluster is no
// longer listed. Then the Splitter removes the finalizer.
func TestAShardOfNoClusterGoes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, splitter.Options{Finalize: true}, cluster("a", ""), cluster("b", ""))
		w.create(deployments, deployment("web", 4))
		w.rest()
		require.NoError(t, w.of(deployments).Delete(t.Context(), "web--b", metav1.DeleteOptions{}))
		w.rest()
		require.NotNil(t, w.get(deployments, "web--b").GetDeletionTimestamp())
		w.clusters.Set(cluster("a", ""))
		w.rest()
		require.Nil(t, w.get(deployments, "web--b"))

		require.NoError(t, w.of(deployments).Delete(t.Context(), "web", metav1.DeleteOptions{}))
		w.rest()
		require.NotNil(t, w.get(deployments, "web--a").GetDeletionTimestamp())
		require.NotNil(t, w.get(deployments, "web"))
		w.clusters.Set()
		w.rest()
		require.Empty(t, w.list(deployments))
	})
}
