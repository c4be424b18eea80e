// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/internal/clustertest"
	"github.com/atoll-dev/atoll/splitter"
)

const noMarks = `{"metadata":{"annotations":{"splitter.atoll.dev/parent-name":null,"splitter.atoll.dev/cluster":null}}}`

// The Splitter restores its annotations on a shard after another client has removed them. A shard
// without these annotations is deleted with its parent.
func TestMarksArePutRight(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, splitter.Options{}, cluster("a", ""), cluster("b", ""))
		w.create(deployments, deployment("web", 4))
		w.rest()
		uid := w.get(deployments, "web--a").GetUID()
		w.patch(deployments, "web--a", noMarks)
		w.rest()
		require.Equal(t, "web", w.get(deployments, "web--a").GetAnnotations()["splitter.atoll.dev/parent-name"])
		require.Equal(t, uid, w.get(deployments, "web--a").GetUID())
		require.Contains(t, w.conditionOf(deployments, "web", "Placed"), "True")

		w.stop()
		w.patch(deployments, "web--a", noMarks)
		require.NoError(t, w.of(deployments).Delete(t.Context(), "web", metav1.DeleteOptions{}))
		w.clusters = clustertest.NewScript(w.clusters.List()...)
		second, err := splitter.New(w.api, w.clusters, splitter.Options{})
		require.NoError(t, err)
		w.start(second)
		w.rest()
		require.Empty(t, w.list(deployments))
	})
}

// Another client copies a shard with its labels under another name. The copy does not delay the
// deletion of the parent, and is not deleted.
func TestACopyOfAShardIsNoShard(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, splitter.Options{}, cluster("a", ""), cluster("b", ""))
		w.create(deployments, deployment("web", 4))
		w.rest()
		theirs := w.get(deployments, "web--a")
		theirs.SetName("mine")
		theirs.SetUID("")
		theirs.SetResourceVersion("")
		theirs.SetManagedFields(nil)
		_, err := w.of(deployments).Create(t.Context(), theirs, metav1.CreateOptions{FieldManager: "user"})
		require.NoError(t, err)
		w.rest()
		require.NoError(t, w.of(deployments).Delete(t.Context(), "web", metav1.DeleteOptions{}))
		w.rest()
		var left []string
		for _, obj := range w.list(deployments) {
			left = append(left, obj.GetName())
		}
		require.Equal(t, []string{"mine"}, left)
		w.Reset()
		time.Sleep(time.Hour)
		require.Empty(t, w.writes())
	})
}
