// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter_test

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/internal/clustertest"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/splitter"
)

// meanwhile delays the next request with the given verb for the named object, and calls do, which
// must cause such a request. While this request is delayed, meanwhile calls change.
func (w *world) meanwhile(verb, name string, change, do func()) {
	w.t.Helper()
	w.Inject(regiontest.Fault{Verb: verb, Resource: deployments.GroupResource(), Name: name, Do: regiontest.Delay(20 * time.Second)})
	do()
	time.Sleep(10 * time.Second)
	synctest.Wait()
	change()
	w.rest()
}

// deletions returns the status codes of the delete requests for an object.
func (w *world) deletions(name string) (codes []int) {
	for _, r := range w.Requests() {
		if r.Verb == "delete" && r.Name == name && r.Code != 0 {
			codes = append(codes, r.Code)
		}
	}
	return codes
}

// While the Splitter's deletion of a shard is delayed, another object takes the shard's place. The
// Splitter does not delete that object.
func TestAShardThatWasReplacedStays(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, splitter.Options{}, cluster("a", ""), cluster("b", ""))
		w.create(deployments, deployment("web", 4, "  strategy: {rollingUpdate: {maxSurge: 100%}}"))
		w.rest()
		w.works("web--a", 2)
		w.works("web--b", 2)
		w.clusters.Set(cluster("a", ""))
		w.rest()
		w.meanwhile("delete", "web--b", func() {
			require.NoError(t, w.of(deployments).Delete(t.Context(), "web--b", metav1.DeleteOptions{}))
			w.create(deployments, deployment("web--b", 3))
			require.Len(t, w.deletions("web--b"), 1, "the splitter's deletion is delayed")
		}, func() { w.works("web--a", 4) })
		require.NotNil(t, w.get(deployments, "web--b"), "it is another object")
		require.NotContains(t, w.get(deployments, "web--b").GetLabels(), "splitter.atoll.dev/parent")
		require.Equal(t, []int{http.StatusConflict, http.StatusOK}, w.deletions("web--b"), "the delayed deletion")
	})
}

// The Splitter removes neither finalizers of other clients nor those of a new parent of the same
// name.
func TestFinalizersOfOthersStay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, splitter.Options{}, cluster("a", ""))
		for _, name := range []string{"web", "next"} {
			w.create(deployments, deployment(name, 4))
		}
		w.rest()
		for _, name := range []string{"web", "next"} {
			w.patch(deployments, name, `{"metadata":{"finalizers":["`+finalizer+`","example.org/theirs"]}}`)
		}
		w.rest()
		require.NoError(t, w.of(deployments).Delete(t.Context(), "web", metav1.DeleteOptions{}))
		w.rest()
		require.Equal(t, []string{"example.org/theirs"}, w.get(deployments, "web").GetFinalizers())

		w.meanwhile("patch", "next", func() {
			w.patch(deployments, "next", `{"metadata":{"finalizers":null}}`)
			w.create(deployments, deployment("next", 4))
		}, func() { require.NoError(t, w.of(deployments).Delete(t.Context(), "next", metav1.DeleteOptions{})) })
		require.Equal(t, []string{finalizer}, w.get(deployments, "next").GetFinalizers())
	})
}

// A 404 for a type that is not served does not prove that the parent is gone: the parent's shards
// stay.
func TestShardsWhoseParentIsNotServedStay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, splitter.Options{}, cluster("a", ""))
		w.rest()
		w.Inject(regiontest.Fault{Verb: "get", Resource: deployments.GroupResource(), Name: "gone", Times: 3, Do: regiontest.Refuse(http.StatusNotFound)})
		w.create(deployments, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: gone--a, labels: {workloads.kcp.io/cluster: a, splitter.atoll.dev/parent: its-uid},
			annotations: {splitter.atoll.dev/parent-name: gone, splitter.atoll.dev/cluster: a}}, spec: {replicas: 2,
			selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {containers: [{name: x, image: x}]}}}}`)
		time.Sleep(time.Second)
		require.NotNil(t, w.get(deployments, "gone--a"))
		w.rest()
		require.Nil(t, w.get(deployments, "gone--a"), "its parent does not exist")
	})
}

// While the cache is stale, the Splitter writes nothing, even if a cluster leaves.
func TestAStaleCacheWritesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, splitter.Options{}, cluster("a", ""), cluster("b", ""))
		w.create(deployments, deployment("web", 4, "  strategy: {rollingUpdate: {maxSurge: 100%}}"))
		w.rest()
		for _, verb := range []string{"list", "watch"} {
			w.Inject(regiontest.Fault{Verb: verb, Resource: deployments.GroupResource(), Times: -1, Do: regiontest.Refuse(http.StatusServiceUnavailable)})
		}
		w.Partition(true)
		w.Partition(false)
		w.rest()
		before := len(w.writes())
		w.clusters.Set(cluster("a", ""))
		w.rest()
		require.Len(t, w.writes(), before)
		w.Reset()
		time.Sleep(time.Minute)
		require.Equal(t, int64(4), w.shards()["a"])
	})
}

// unknown is a Clusters whose list is not available until the channel known is closed.
type unknown struct {
	*clustertest.Script
	known chan struct{}
}

func (u unknown) Watch(ctx context.Context) iter.Seq[[]splitter.Cluster] {
	select {
	case <-u.known:
	case <-ctx.Done():
	}
	return u.Script.Watch(ctx)
}

// A Splitter that does not know the clusters yet removes no replicas from them.
func TestClustersThatAreNotKnownTakeNothingAway(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, splitter.Options{}, cluster("a", ""), cluster("b", ""))
		w.create(deployments, deployment("web", 4))
		w.rest()
		w.stop()
		w.Reset()
		clusters := unknown{w.clusters, make(chan struct{})}
		s, err := splitter.New(w.api, clusters, splitter.Options{})
		require.NoError(t, err)
		w.start(s)
		w.rest()
		w.patch(deployments, "web", `{"spec":{"replicas":8}}`)
		w.rest()
		require.Equal(t, map[string]int64{"a": 2, "b": 2}, w.shards())
		close(clusters.known)
		w.rest()
		require.Equal(t, map[string]int64{"a": 4, "b": 4}, w.shards())
	})
}

// A parent is deleted after all its shards, also after shards from which another client has removed
// the annotations.
func TestAParentWaitsForShardsWithoutMarks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, splitter.Options{}, cluster("a", ""))
		w.create(deployments, deployment("web", 4))
		w.rest()
		w.patch(deployments, "web--a", `{"metadata":{"finalizers":["example.org/syncer"]}}`)
		require.NoError(t, w.of(deployments).Delete(t.Context(), "web", metav1.DeleteOptions{}))
		w.patch(deployments, "web--a", `{"metadata":{"annotations":null}}`)
		w.rest()
		require.NotNil(t, w.get(deployments, "web"), "its shard still exists")
		w.patch(deployments, "web--a", `{"metadata":{"finalizers":null}}`)
		w.rest()
		require.Nil(t, w.get(deployments, "web"))
		require.Nil(t, w.get(deployments, "web--a"))
	})
}

// If a shard has changed since the replicas were divided, the Splitter stops and divides again: the
// replicas that the old plan takes from another shard may be the only available ones.
func TestAConflictEndsThePass(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, splitter.Options{}, cluster("a", ""), cluster("b", ""))
		w.create(deployments, deployment("web", 4))
		w.rest()
		w.works("web--a", 2)
		w.works("web--b", 2)
		w.rest()
		w.Reset()
		w.Inject(regiontest.Fault{Verb: "patch", Resource: deployments.GroupResource(), Name: "web--a", Do: regiontest.Refuse(http.StatusConflict)})
		w.patch(deployments, "web", `{"spec":{"minReadySeconds":5}}`)
		w.rest()
		var written []string
		for _, r := range w.Requests() {
			if r.Verb == "patch" && (r.Name == "web--a" || r.Name == "web--b") {
				written = append(written, fmt.Sprintf("%s %d", r.Name, r.Code))
			}
		}
		require.Equal(t, []string{"web--a 409", "web--a 200", "web--b 200"}, written)
	})
}
