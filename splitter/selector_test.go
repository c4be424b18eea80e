// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/atoll-dev/atoll/splitter"
)

// alone watches the Deployments and fails the test if two of them are ever assigned to one cluster.
func (w *world) alone() {
	changes, err := w.of(deployments).Watch(w.t.Context(), metav1.ListOptions{})
	require.NoError(w.t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		in := map[string]string{} // cluster by name of the Deployment
		for e := range changes.ResultChan() {
			obj, ok := e.Object.(*unstructured.Unstructured)
			if !ok {
				continue
			}
			delete(in, obj.GetName())
			at := obj.GetLabels()["workloads.kcp.io/cluster"]
			if at == "" || e.Type == watch.Deleted {
				continue
			}
			for name, other := range in {
				if other == at {
					w.t.Errorf("%s and %s are for cluster %s, and select the same pods", name, obj.GetName(), at)
				}
			}
			in[obj.GetName()] = at
		}
	}()
	w.t.Cleanup(func() {
		changes.Stop()
		<-done
	})
}

// The shards and the parent select the same pods. Two of these objects are therefore never assigned
// to one cluster.
func TestOneShardToACluster(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, splitter.Options{}, cluster("a", ""), cluster("b", ""))
		w.alone()
		w.create(deployments, deployment("web", 6))
		w.rest()
		selector := w.get(deployments, "web").Object["spec"].(map[string]any)["selector"]
		require.Equal(t, selector, w.get(deployments, "web--a").Object["spec"].(map[string]any)["selector"])

		w.patch(deployments, "web--a", `{"metadata":{"finalizers":["example.org/syncer"]}}`)
		require.NoError(t, w.of(deployments).Delete(t.Context(), "web--a", metav1.DeleteOptions{}))
		w.clusters.Set(cluster("a", ""), cluster("b", ""), cluster("c", ""))
		w.rest()
		w.patch(deployments, "web--a", `{"metadata":{"finalizers":null}}`)
		w.rest()
		drained := cluster("b", "")
		drained.EvictAfter = time.Unix(1, 0)
		w.clusters.Set(cluster("a", ""), drained, cluster("c", ""))
		for range 5 {
			for c, n := range w.shards() {
				if w.get(deployments, "web--"+c) != nil { // the Splitter may have deleted the shard after the previous report
					w.works("web--"+c, n)
					synctest.Wait()
				}
			}
			w.rest()
		}
		require.NotContains(t, w.shards(), "b")

		require.NoError(t, w.of(deployments).Delete(t.Context(), "web", metav1.DeleteOptions{}))
		w.rest()
		w.create(deployments, deployment("web", 6))
		w.rest()
		require.NotContains(t, w.get(deployments, "web").GetLabels(), "workloads.kcp.io/cluster")
		require.Len(t, w.shards(), 2)
	})
}
