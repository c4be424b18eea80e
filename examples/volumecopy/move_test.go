// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/internal/clustertest"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
)

const set = `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {replicas: 2, serviceName: db, selector: {matchLabels: {app: db}},
	template: {metadata: {labels: {app: db}}, spec: {containers: [{name: db, image: db}]}},
	volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}}`

// world is an upstream with a Splitter over the clusters eu and us.
type world struct {
	t    *testing.T
	move move
}

// inWorld runs f with a StatefulSet whose two replicas are in eu, which drains.
func inWorld(t *testing.T, f func(*testing.T, *world)) {
	manifests, err := os.ReadFile("jobs.yaml")
	require.NoError(t, err)
	steps, err := readJobs(manifests)
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		s := regiontest.NewServer(regiontest.Options{History: 100000})
		t.Cleanup(s.Close)
		t.Cleanup(func() { time.Sleep(time.Second) }) // a stopped watch reads its last event within a second
		api, err := region.APIFor(s.Config())
		require.NoError(t, err)
		w := &world{t, move{Up: api.Dynamic(), Namespace: "default", Set: "db", From: "eu", To: "us", Jobs: steps, Every: time.Second, Out: io.Discard}}
		eu, us := splitter.Cluster{Name: "eu", Ready: metav1.ConditionTrue}, splitter.Cluster{Name: "us", Ready: metav1.ConditionTrue}
		clusters := clustertest.NewScript(eu)
		split, err := splitter.New(api, clusters, splitter.Options{Kinds: []splitter.Kind{splitter.StatefulSets()}})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- split.Start(ctx) }()
		t.Cleanup(func() {
			cancel()
			require.NoError(t, <-done)
		})
		obj := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal([]byte(set), &obj.Object))
		_, err = w.move.of(statefulSets).Create(ctx, obj, metav1.CreateOptions{FieldManager: "user"})
		require.NoError(t, err)
		w.rest()
		eu.EvictAfter = time.Unix(1, 0)
		clusters.Set(eu, us)
		w.rest()
		require.Equal(t, map[string]int64{"eu": 2}, w.replicas())
		f(t, w)
	})
}

// rest lets the replicas of all shards become available, as the controllers of the clusters do.
func (w *world) rest() {
	w.t.Helper()
	for range 20 {
		time.Sleep(time.Second)
		synctest.Wait()
		list, err := w.move.of(statefulSets).List(w.t.Context(), metav1.ListOptions{LabelSelector: v1alpha1.ParentLabel})
		require.NoError(w.t, err)
		for _, shard := range list.Items {
			n, _, _ := unstructured.NestedInt64(shard.Object, "spec", "replicas")
			w.patch(func() error {
				_, err := w.move.of(statefulSets).Patch(w.t.Context(), shard.GetName(), types.MergePatchType,
					fmt.Appendf(nil, `{"status":{"observedGeneration":%d,"replicas":%d,"readyReplicas":%[2]d,"availableReplicas":%[2]d}}`, shard.GetGeneration(), n), metav1.PatchOptions{FieldManager: "syncer"}, "status")
				return err
			})
		}
	}
}

// patch runs a write that may find no object, since the Splitter deletes shards meanwhile.
func (w *world) patch(write func() error) {
	if err := write(); err != nil {
		require.ErrorContains(w.t, err, "not found")
	}
}

func (w *world) replicas() map[string]int64 {
	list, err := w.move.of(statefulSets).List(w.t.Context(), metav1.ListOptions{LabelSelector: v1alpha1.ParentLabel})
	require.NoError(w.t, err)
	have := map[string]int64{}
	for _, shard := range list.Items {
		have[shard.GetAnnotations()[v1alpha1.ClusterAnnotation]], _, _ = unstructured.NestedInt64(shard.Object, "spec", "replicas")
	}
	return have
}

// finish ends the next running Job with the given condition, as a cluster and its syncer do. It returns the name and the
// cluster of the Job.
func (w *world) finish(condition string) (name, cluster string) {
	w.t.Helper()
	w.rest()
	list, err := w.move.of(jobs).List(w.t.Context(), metav1.ListOptions{})
	require.NoError(w.t, err)
	open := slices.DeleteFunc(list.Items, func(job unstructured.Unstructured) bool {
		_, ended, _ := unstructured.NestedSlice(job.Object, "status", "conditions")
		return ended
	})
	require.Len(w.t, open, 1, "one Job at a time")
	_, err = w.move.of(jobs).Patch(w.t.Context(), open[0].GetName(), types.MergePatchType,
		[]byte(`{"status":{"conditions":[{"type":"`+condition+`","status":"True","message":"no space"}]}}`), metav1.PatchOptions{FieldManager: "syncer"}, "status")
	require.NoError(w.t, err)
	return open[0].GetName(), open[0].GetLabels()["workloads.kcp.io/cluster"]
}

// Each volume is pushed, then pulled. No replica moves and the annotation is not set before all Jobs have succeeded. Then the
// replicas move, to claims with the names that they ask for.
func TestReplicasMoveAfterTheCopies(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		done := make(chan error, 1)
		go func() { done <- w.move.run(t.Context()) }()
		for _, want := range []string{"push-data-db--us-0 eu", "pull-data-db--us-0 us", "push-data-db--us-1 eu", "pull-data-db--us-1 us"} {
			w.rest()
			require.Equal(t, map[string]int64{"eu": 2}, w.replicas())
			parent, err := w.move.of(statefulSets).Get(t.Context(), "db", metav1.GetOptions{})
			require.NoError(t, err)
			require.NotContains(t, parent.GetAnnotations(), v1alpha1.VolumesAnnotation)
			name, cluster := w.finish("Complete")
			require.Equal(t, want, name+" "+cluster)
		}
		w.rest()
		require.NoError(t, <-done)
		require.Equal(t, map[string]int64{"us": 2}, w.replicas())
		for i, name := range []string{"data-db--us-0", "data-db--us-1"} {
			claim, err := w.move.of(claims).Get(t.Context(), name, metav1.GetOptions{})
			require.NoError(t, err)
			require.Equal(t, "us", claim.GetLabels()["workloads.kcp.io/cluster"])
			push, err := w.move.of(jobs).Get(t.Context(), "push-"+name, metav1.GetOptions{})
			require.NoError(t, err)
			volumes, _, _ := unstructured.NestedSlice(push.Object, "spec", "template", "spec", "volumes")
			require.Equal(t, map[string]any{"claimName": fmt.Sprintf("data-db--eu-%d", i)}, volumes[0].(map[string]any)["persistentVolumeClaim"])
		}
		require.ErrorContains(t, w.move.run(t.Context()), "no replica waits for its volumes")
	})
}

// A failed copy ends the program, and no replica moves. When the Job is deleted, the program can be run again.
func TestAFailedCopyMovesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		done := make(chan error, 1)
		go func() { done <- w.move.run(t.Context()) }()
		_, _ = w.finish("Complete")
		name, _ := w.finish("Failed")
		w.rest()
		require.ErrorContains(t, <-done, "the Job pull-data-db--us-0 in us failed: no space")
		require.Equal(t, map[string]int64{"eu": 2}, w.replicas())
		require.NoError(t, w.move.of(jobs).Delete(t.Context(), name, metav1.DeleteOptions{}))
		go func() { done <- w.move.run(t.Context()) }()
		for range 3 {
			_, _ = w.finish("Complete")
		}
		w.rest()
		require.NoError(t, <-done)
		require.Equal(t, map[string]int64{"us": 2}, w.replicas())
	})
}

// The command in README.md is parsed, and wrong arguments are rejected.
func TestArguments(t *testing.T) {
	require.ErrorContains(t, run(t.Context(), nil, io.Discard), "are required")
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	for line := range strings.Lines(string(page)) {
		if args, ok := strings.CutPrefix(strings.TrimSpace(line), "go run ./examples/volumecopy "); ok {
			dir := t.TempDir()
			args = strings.NewReplacer("upstream.kubeconfig", filepath.Join(dir, "none"), "examples/volumecopy/jobs.yaml", "jobs.yaml").Replace(args)
			require.ErrorContains(t, run(t.Context(), strings.Fields(args), io.Discard), "none: no such file")
			return
		}
	}
	require.Fail(t, "README.md has no command")
}
