// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/atoll-dev/atoll/splitter"
)

func indexedJob(t require.TestingT, parallelism, completions int64, more string) *unstructured.Unstructured {
	return parse(t, fmt.Sprintf("{apiVersion: batch/v1, kind: Job, metadata: {name: x, annotations: {splitter.atoll.dev/divide-indexes: 'true'}}, "+
		"spec: {completionMode: Indexed, parallelism: %d, completions: %d, template: {spec: {restartPolicy: Never, initContainers: [{name: i, image: i}], containers: [{name: x, image: x, env: [{name: A, value: b}]}]}}%s}}", parallelism, completions, more))
}

// indexesOf returns the first index and the number of indexes of a shard, read as a pod and the controller of Jobs do.
func indexesOf(t require.TestingT, job *unstructured.Unstructured) (first, n int64) {
	n, _, _ = unstructured.NestedInt64(job.Object, "spec", "completions")
	for _, field := range []string{"initContainers", "containers"} {
		list, _, _ := unstructured.NestedSlice(job.Object, "spec", "template", "spec", field)
		require.NotEmpty(t, list)
		for _, item := range list {
			found := 0
			env, _ := item.(map[string]any)["env"].([]any)
			for _, v := range env {
				if variable := v.(map[string]any); variable["name"] == splitter.IndexOffsetVariable {
					found++
					var err error
					first, err = strconv.ParseInt(variable["value"].(string), 10, 64)
					require.NoError(t, err)
				}
			}
			require.Equal(t, 1, found, "each container has the variable once")
		}
	}
	return first, n
}

// jobWorld is a Job with divided indexes, the shards that are stored, and the indexes that were completed.
type jobWorld struct {
	parent         *unstructured.Unstructured
	shards         map[string]*unstructured.Unstructured
	ending, lost   map[string]bool
	completed, ran map[int64]bool
}

func (w *jobWorld) have() (list []splitter.Shard) {
	for _, name := range slices.Sorted(maps.Keys(w.shards)) {
		obj := w.shards[name].DeepCopy()
		if w.ending[name] {
			obj.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
		}
		list = append(list, splitter.Shard{Cluster: name, Object: obj, Lost: w.lost[name]})
	}
	return list
}

// Clusters drain, are lost, return and join, and pods of removed shards take time to stop. No index is in two shards, except
// in a lost cluster. The first index and the number of indexes of a shard never change. The Job is complete only when each
// index has completed, and its status has exactly the completed indexes.
func TestIndexesAreDivided(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.Int64Range(1, 30).Draw(t, "completions")
		w := &jobWorld{parent: indexedJob(t, rapid.Int64Range(1, 12).Draw(t, "parallelism"), total, ""), shards: map[string]*unstructured.Unstructured{},
			ending: map[string]bool{}, lost: map[string]bool{}, completed: map[int64]bool{}, ran: map[int64]bool{}}
		kind := splitter.Jobs()
		names := []string{"a", "b", "c", "d", "e"}
		out := map[string]bool{"d": true, "e": true}
		for range 40 {
			name := rapid.SampledFrom(names).Draw(t, "cluster")
			switch event := rapid.SampledFrom([]string{"out", "in", "lost", "returns", "stopped", "works", "works", "works"}).Draw(t, "event"); {
			case event == "out":
				out[name] = true
			case event == "in" && !w.lost[name]:
				out[name] = false
			case event == "lost":
				w.lost[name], out[name] = true, true
			case event == "returns" && w.lost[name]: // the syncer removes the shard before anything new starts
				w.lost[name] = false
				if w.ending[name] {
					delete(w.shards, name)
					delete(w.ending, name)
				}
			case event == "stopped" && w.ending[name] && !w.lost[name]:
				delete(w.shards, name)
				delete(w.ending, name)
			case event == "works" && w.shards[name] != nil && !w.lost[name]:
				w.work(t, name)
			}
			var shares []splitter.Share
			for _, c := range names {
				if !out[c] {
					shares = append(shares, splitter.Share{Name: c})
				} else if rapid.Bool().Draw(t, "draining") {
					shares = append(shares, splitter.Share{Name: c, Max: new(int64(0))})
				}
			}
			plan, shards, err := kind.Cut(w.parent, splitter.Demand{UID: "uid"}, shares, w.have())
			require.NoError(t, err)
			w.apply(t, shards)
			covered := w.disjoint(t)
			if len(w.ending) == 0 && plan.Unplaced == 0 {
				require.Equal(t, total, covered, "all indexes are placed")
			}
			w.fold(t, shards)
		}
	})
}

// work completes some indexes of a shard.
func (w *jobWorld) work(t *rapid.T, name string) {
	first, n := indexesOf(t, w.shards[name])
	if n == 0 {
		return
	}
	done := rapid.Int64Range(0, n).Draw(t, "done") // all indexes below done are completed
	text := ""
	switch done {
	case 0:
	case 1:
		text = "0"
	default:
		text = fmt.Sprintf("0-%d", done-1)
	}
	status := map[string]any{"succeeded": done}
	if text != "" {
		status["completedIndexes"] = text
	}
	if done == n {
		status["conditions"] = []any{map[string]any{"type": "Complete", "status": "True"}}
	}
	before, _, _ := unstructured.NestedInt64(w.shards[name].Object, "status", "succeeded")
	if done >= before {
		w.shards[name].Object["status"] = status
		for i := range done {
			w.ran[first+i] = true
		}
	}
}

func (w *jobWorld) apply(t *rapid.T, shards []splitter.Shard) {
	cut := map[string]bool{}
	for _, s := range shards {
		cut[s.Cluster] = true
		if w.ending[s.Cluster] {
			continue // the name is taken until the pods have stopped
		}
		first, n := indexesOf(t, s.Object)
		require.Positive(t, n)
		if old := w.shards[s.Cluster]; old != nil {
			was, count := indexesOf(t, old)
			require.Equal(t, []int64{was, count}, []int64{first, n}, "the pod template and the completions cannot be changed")
			s.Object.Object["status"] = old.Object["status"]
		}
		w.shards[s.Cluster] = s.Object
	}
	for name := range w.shards {
		if !cut[name] {
			w.ending[name] = true
		}
	}
}

// disjoint checks that no index is in two shards, apart from those of lost clusters, and returns how many indexes are in the
// shards that stay.
func (w *jobWorld) disjoint(t *rapid.T) (covered int64) {
	owner := map[int64]string{}
	for name, obj := range w.shards {
		if w.lost[name] && w.ending[name] {
			continue
		}
		first, n := indexesOf(t, obj)
		for i := first; i < first+n; i++ {
			require.Empty(t, owner[i], "index %d is in %s and %s", i, owner[i], name)
			owner[i] = name
		}
		if !w.ending[name] {
			covered += n
		}
	}
	return covered
}

// fold computes the status of the Job and compares it with the indexes that were completed.
func (w *jobWorld) fold(t *rapid.T, shards []splitter.Shard) {
	var parts []splitter.Shard
	for _, s := range shards {
		if !w.ending[s.Cluster] {
			parts = append(parts, splitter.Shard{Cluster: s.Cluster, Object: w.shards[s.Cluster]})
		}
	}
	status, err := splitter.Jobs().Fold(w.parent, parts)
	require.NoError(t, err)
	text, _ := status["completedIndexes"].(string)
	completed := splitter.Indexes(text)
	for _, i := range completed {
		require.True(t, w.ran[i], "index %d never ran", i)
	}
	if n, _ := status["succeeded"].(int64); n > 0 {
		require.Len(t, completed, int(n))
	}
	total, _, _ := unstructured.NestedInt64(w.parent.Object, "spec", "completions")
	parent := &unstructured.Unstructured{Object: map[string]any{"status": status}}
	if conditionIs(parent, "Complete") {
		require.Len(t, completed, int(total), "%v", status)
	}
	if !conditionIs(parent, "Complete") {
		w.parent.Object["status"] = status
	}
}

func conditionIs(obj *unstructured.Unstructured, of string) bool {
	list, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	return slices.ContainsFunc(list, func(v any) bool { c := v.(map[string]any); return c["type"] == of && c["status"] == "True" })
}

// A list of indexes is read and written in the form of the controller of Jobs.
func TestIndexLists(t *testing.T) {
	require.Equal(t, []int64{1, 3, 4, 5, 9}, splitter.Indexes("1,3-5,9,x,7-2,-3"))
	require.Equal(t, "1,3-5,9", splitter.IndexText([]int64{9, 5, 3, 4, 1, 1}))
	rapid.Check(t, func(t *rapid.T) {
		some := rapid.SliceOfDistinct(rapid.Int64Range(0, 40), rapid.ID[int64])
		a, b := some.Draw(t, "a"), some.Draw(t, "b")
		slices.Sort(a)
		require.Len(t, splitter.Indexes(splitter.IndexText(a)), len(a))
		require.Subset(t, splitter.Indexes(splitter.IndexText(a)), a)
		left := slices.DeleteFunc(slices.Clone(a), func(i int64) bool { return slices.Contains(b, i) })
		require.Equal(t, splitter.IndexText(left), splitter.IndexesWithout(a, b))
	})
}

// The completed and failed indexes of the shards become those of the Job. An index that was completed in a lost cluster
// stays completed, and does not count as failed when it fails elsewhere.
func TestFoldOfIndexes(t *testing.T) {
	part := func(cluster string, offset, completions int, status string) splitter.Shard {
		return splitter.Shard{Cluster: cluster, Object: parse(t, fmt.Sprintf("{apiVersion: batch/v1, kind: Job, spec: {completions: %d, template: {spec: {containers: [{name: x, env: [{name: ATOLL_COMPLETION_INDEX_OFFSET, value: '%d'}]}]}}}, status: %s}", completions, offset, status))}
	}
	job := indexedJob(t, 4, 10, ", backoffLimitPerIndex: 1")
	shards := []splitter.Shard{part("a", 0, 4, "{completedIndexes: '0,2', failedIndexes: '3', succeeded: 2}"), part("b", 4, 6, "{completedIndexes: '0-2,77', failedIndexes: '4,5', succeeded: 3}")}
	status, err := splitter.Jobs().Fold(job, shards)
	require.NoError(t, err)
	require.Equal(t, []any{"0,2,4-6", "3,8,9", int64(5)}, []any{status["completedIndexes"], status["failedIndexes"], status["succeeded"]})
	require.Equal(t, "True Divided: a 0-3, b 4-9", conditionText(status, "IndexesDivided"))
	job.Object["status"] = map[string]any{"completedIndexes": "3,7", "succeeded": int64(2)}
	status, err = splitter.Jobs().Fold(job, shards)
	require.NoError(t, err)
	require.Equal(t, []any{"0,2-7", "8,9", int64(7)}, []any{status["completedIndexes"], status["failedIndexes"], status["succeeded"]})
	job.Object["spec"].(map[string]any)["completions"] = int64(6)
	status, err = splitter.Jobs().Fold(job, shards)
	require.NoError(t, err)
	require.Contains(t, conditionText(status, "IndexesDivided"), "False CompletionsLowered")

	done := "{conditions: [{type: Complete, status: 'True'}]}"
	lowered, have := indexedJob(t, 4, 6, ""), []splitter.Shard{part("a", 0, 5, done), part("b", 7, 3, done)}
	status, err = splitter.Jobs().Fold(lowered, have)
	require.NoError(t, err)
	require.Empty(t, conditionText(status, "Complete"), "index 5 is in no cluster")
	_, cut, err := splitter.Jobs().Cut(lowered, splitter.Demand{}, all("a", "b", "c"), have)
	require.NoError(t, err)
	require.Equal(t, values{"a": int64(5), "b": int64(3), "c": int64(1)}, field(cut, "spec.completions"))
}

func conditionText(status map[string]any, of string) string {
	list, _ := status["conditions"].([]any)
	for _, v := range list {
		if c := v.(map[string]any); c["type"] == of {
			return fmt.Sprintf("%v %v: %v", c["status"], c["reason"], c["message"])
		}
	}
	return ""
}

// A Job whose indexes cannot be divided is in one cluster, and the condition IndexesDivided has the reason. A Job that does
// not ask for a division is in one cluster, too, and does not have the condition.
func TestIndexesThatAreNotDivided(t *testing.T) {
	undivided := func(job *unstructured.Unstructured, have []splitter.Shard, want string) {
		t.Helper()
		_, shards, err := splitter.Jobs().Cut(job, splitter.Demand{}, all("a", "b"), have)
		require.NoError(t, err)
		require.Len(t, shards, 1)
		require.Equal(t, field([]splitter.Shard{{Object: job}}, "spec.completions")[""], field(shards, "spec.completions")[shards[0].Cluster])
		require.Equal(t, job.Object["spec"].(map[string]any)["template"], shards[0].Object.Object["spec"].(map[string]any)["template"])
		status, err := splitter.Jobs().Fold(job, shards)
		require.NoError(t, err)
		require.Contains(t, conditionText(status, "IndexesDivided"), want)
		if want == "" {
			require.Empty(t, conditionText(status, "IndexesDivided"))
		}
	}
	undivided(indexedJob(t, 2, 4, ", successPolicy: {rules: [{succeededIndexes: '0'}]}"), nil, "False SuccessPolicy: one cluster has all indexes: spec.successPolicy applies")
	undivided(indexedJob(t, 2, 4, ", backoffLimitPerIndex: 1, maxFailedIndexes: 2"), nil, "False MaxFailedIndexes")
	taken := indexedJob(t, 2, 4, "")
	containers, _, _ := unstructured.NestedSlice(taken.Object, "spec", "template", "spec", "containers")
	containers[0].(map[string]any)["env"] = []any{map[string]any{"name": splitter.IndexOffsetVariable, "value": "7"}}
	require.NoError(t, unstructured.SetNestedSlice(taken.Object, containers, "spec", "template", "spec", "containers"))
	undivided(taken, nil, "False VariableTaken")
	undivided(taken, []splitter.Shard{{Cluster: "b", Object: taken}}, "False VariableTaken")
	silent := indexedJob(t, 2, 4, "")
	silent.SetAnnotations(nil)
	undivided(silent, nil, "")
	undivided(indexedJob(t, 2, 4, ""), []splitter.Shard{{Cluster: "b", Object: silent}}, "False AlreadyStarted")
}

// The Splitter divides the indexes of a Job over clusters, and completes the Job when all indexes have completed.
func TestIndexedJob(t *testing.T) {
	bubble(t, func(t *testing.T) {
		gvr := schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
		w := newWorld(t, splitter.Options{Kinds: []splitter.Kind{splitter.Jobs()}}, cluster("a", "2"), cluster("b", ""))
		_, err := w.of(gvr).Create(t.Context(), indexedJob(t, 3, 6, ""), metav1.CreateOptions{FieldManager: "user"})
		require.NoError(t, err)
		w.rest()
		reports := map[string]string{"x--a": `"completedIndexes":"0-3","succeeded":4`, "x--b": `"completedIndexes":"0,1","succeeded":2`}
		for name, report := range reports {
			_, err := w.of(gvr).Patch(t.Context(), name, types.MergePatchType, []byte(`{"status":{`+report+`,"conditions":[{"type":"Complete","status":"True"}]}}`), metav1.PatchOptions{FieldManager: "syncer"}, "status")
			require.NoError(t, err)
			w.rest()
		}
		first, n := indexesOf(t, w.get(gvr, "x--b"))
		require.Equal(t, []int64{4, 2}, []int64{first, n})
		status, _, _ := unstructured.NestedMap(w.get(gvr, "x").Object, "status")
		require.Equal(t, "0-5", status["completedIndexes"])
		require.True(t, conditionIs(w.get(gvr, "x"), "Complete"))
		w.Reset()
		w.rest()
		require.Empty(t, w.writes())
	})
}
