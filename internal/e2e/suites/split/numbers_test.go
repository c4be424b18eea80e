// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package split_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/splitter"
)

// The controllers of real clusters give the pods of a divided StatefulSet and of a divided Indexed Job numbers that are
// unique over all clusters. The API server accepts the folded status of the Job.
func TestNumbers(t *testing.T) {
	w := newWorld(t, false)
	w.create(statefulSets, fmt.Sprintf(`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: ring, annotations: {splitter.atoll.dev/ordinals-per-cluster: "10"}},
		spec: {replicas: 5, serviceName: ring, selector: {matchLabels: {app: ring}}, template: %s}}`, fmt.Sprintf(pod, "ring", "")))
	w.divided(statefulSets, "ring", map[string]int{"cluster-1": 2, "cluster-2": 3})
	require.Equal(t, []string{"cluster-1 0", "cluster-1 1", "cluster-2 10", "cluster-2 11", "cluster-2 12"}, w.ordinals("ring"))
	w.register("cluster-3", 5)
	w.patch(statefulSets, "ring", `{"spec":{"replicas":10}}`)
	w.divided(statefulSets, "ring", map[string]int{"cluster-1": 2, "cluster-2": 3, "cluster-3": 5})
	require.Equal(t, []string{"cluster-1 0", "cluster-1 1", "cluster-2 10", "cluster-2 11", "cluster-2 12",
		"cluster-3 20", "cluster-3 21", "cluster-3 22", "cluster-3 23", "cluster-3 24"}, w.ordinals("ring"))
	_, err := w.clients["upstream"].Resource(syncTargets).Patch(t.Context(), "cluster-1", types.MergePatchType, []byte(`{"spec":{"evictAfter":"2020-01-01T00:00:00Z"}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	w.divided(statefulSets, "ring", map[string]int{"cluster-2": 4, "cluster-3": 6})
	require.Equal(t, []string{"cluster-2 10", "cluster-2 11", "cluster-2 12", "cluster-2 13",
		"cluster-3 20", "cluster-3 21", "cluster-3 22", "cluster-3 23", "cluster-3 24", "cluster-3 25"}, w.ordinals("ring"))

	w.create(jobs, fmt.Sprintf(`{apiVersion: batch/v1, kind: Job, metadata: {name: sum, annotations: {splitter.atoll.dev/divide-indexes: "true"}},
		spec: {completionMode: Indexed, parallelism: 4, completions: 16, backoffLimitPerIndex: 1, template: %s}}`, fmt.Sprintf(pod, "sum", "restartPolicy: Never,")))
	w.eventually(jobs, "sum", "is complete", func(_ context.Context, sum *unstructured.Unstructured) error {
		if c := conditionOf(sum, "Complete"); c != "True CompletionsReached" {
			return fmt.Errorf("Complete is %q: %v", c, sum.Object["status"])
		}
		return nil
	})
	sum, err := w.of("upstream", jobs).Get(t.Context(), "sum", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, 16, number(sum, "status", "succeeded"))
	text, _, _ := unstructured.NestedString(sum.Object, "status", "completedIndexes")
	require.Equal(t, "0-15", text)
	var indexes []int
	for _, c := range []string{"cluster-2", "cluster-3"} {
		job, err := w.of(c, jobs).Get(t.Context(), splitter.ShardName("sum", c), metav1.GetOptions{})
		require.NoError(t, err)
		containers, _, _ := unstructured.NestedSlice(job.Object, "spec", "template", "spec", "containers")
		env, _, _ := unstructured.NestedSlice(containers[0].(map[string]any), "env")
		require.Len(t, env, 1)
		offset, err := strconv.Atoi(env[0].(map[string]any)["value"].(string))
		require.NoError(t, err)
		list, err := w.of(c, pods).List(t.Context(), metav1.ListOptions{LabelSelector: "app=sum"})
		require.NoError(t, err)
		for _, p := range list.Items {
			index, err := strconv.Atoi(p.GetLabels()["batch.kubernetes.io/job-completion-index"])
			require.NoError(t, err)
			indexes = append(indexes, offset+index)
		}
	}
	slices.Sort(indexes)
	require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, slices.Compact(indexes))
}

// ordinals returns the cluster and the ordinal of each pod of a StatefulSet, sorted.
func (w *world) ordinals(app string) (all []string) {
	w.t.Helper()
	for _, c := range clusterNames {
		list, err := w.of(c, pods).List(w.t.Context(), metav1.ListOptions{LabelSelector: "app=" + app})
		require.NoError(w.t, err)
		for _, p := range list.Items {
			all = append(all, c+p.GetName()[strings.LastIndex(p.GetName(), "-"):])
		}
	}
	for i := range all {
		cut := strings.LastIndex(all[i], "-")
		all[i] = all[i][:cut] + " " + all[i][cut+1:]
	}
	slices.Sort(all)
	return all
}
