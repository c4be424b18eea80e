// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/splitter"
)

func parse(t require.TestingT, manifest string) *unstructured.Unstructured {
	data, err := yaml.YAMLToJSON([]byte(manifest))
	require.NoError(t, err)
	obj := &unstructured.Unstructured{}
	require.NoError(t, obj.UnmarshalJSON(data))
	return obj
}

func object(t require.TestingT, kind, rest string) *unstructured.Unstructured {
	return parse(t, "{apiVersion: example.org/v1, kind: "+kind+", metadata: {name: x, generation: 2}, "+rest+"}")
}

// field returns the field at path of each shard that has it, by cluster.
func field(shards []splitter.Shard, path string) map[string]any {
	got := map[string]any{}
	for _, s := range shards {
		v, ok, _ := unstructured.NestedFieldNoCopy(s.Object.Object, strings.Split(path, ".")...)
		if ok {
			got[s.Cluster] = v
		}
	}
	return got
}

func all(names ...string) (shares []splitter.Share) {
	for _, n := range names {
		shares = append(shares, splitter.Share{Name: n})
	}
	return shares
}

type values = map[string]any

func TestCut(t *testing.T) {
	there := func(cluster, manifest string) splitter.Shard {
		return splitter.Shard{Cluster: cluster, Object: object(t, "X", manifest)}
	}
	for name, test := range map[string]struct {
		kind   splitter.Kind
		parent string
		shares []splitter.Share
		have   []splitter.Shard
		path   string
		want   values
	}{
		"a Deployment without replicas has one": {splitter.Deployments(), `spec: {paused: true}`, all("a"), nil, "spec.replicas", values{"a": int64(1)}},
		"the rest of the spec":                  {splitter.Deployments(), `spec: {replicas: 2, paused: true}`, all("a", "b"), nil, "spec.paused", values{"a": true, "b": true}},
		"a new shard has the parent's strategy": {splitter.Deployments(), `spec: {replicas: 10, strategy: {rollingUpdate: {maxUnavailable: 3, maxSurge: 25%}}}`,
			weights(2, 3), nil, "spec.strategy.rollingUpdate.maxUnavailable", values{"a": int64(3), "b": int64(3)}},
		"a StatefulSet": {splitter.StatefulSets(), `spec: {replicas: 5}`, weights(2, 3), nil, "spec.replicas", values{"a": int64(2), "b": int64(3)}},
		"a DaemonSet":   {splitter.DaemonSets(), `spec: {x: 1}`, all("a", "b", "c"), nil, "spec.x", values{"a": int64(1), "b": int64(1), "c": int64(1)}},
		"a DaemonSet stays in a cluster that holds": {splitter.DaemonSets(), `spec: {x: 1}`, weights(0, 0, 1), []splitter.Shard{there("b", "spec: {}")}, "spec.x",
			values{"b": int64(1), "c": int64(1)}},
		"a CronJob stays where it is": {splitter.CronJobs(), `spec: {x: 1}`, all("a", "b", "c"), []splitter.Shard{there("b", "spec: {}")}, "spec.x", values{"b": int64(1)}},
		"a CronJob fails over": {splitter.CronJobs(), `spec: {x: 1}`, []splitter.Share{{Name: "a"}, {Name: "b", Max: new(int64(0))}}, []splitter.Shard{there("b", "spec: {}")}, "spec.x",
			values{"a": int64(1)}},
		"a CronJob stays where there is no room": {splitter.CronJobs(), `spec: {x: 1}`, []splitter.Share{{Name: "a"}, {Name: "b", Capacity: new(int64(0))}},
			[]splitter.Shard{there("b", "spec: {}")}, "spec.x", values{"b": int64(1)}},
		"what is there has room": {splitter.StatefulSets(), `spec: {replicas: 9}`, []splitter.Share{{Name: "a"}, {Name: "z", Group: true, Members: []splitter.Share{{Name: "b", Capacity: new(int64(2))}}}},
			[]splitter.Shard{there("a", "spec: {replicas: 4}"), there("b", "spec: {replicas: 4}, status: {availableReplicas: 1}")}, "spec.replicas",
			values{"a": int64(5), "b": int64(4)}},
		"what is there has room in its group": {splitter.StatefulSets(), `spec: {replicas: 9}`, []splitter.Share{{Name: "a"}, {Name: "z", Group: true, Capacity: new(int64(2)), Members: []splitter.Share{{Name: "b"}}}},
			[]splitter.Shard{there("a", "spec: {replicas: 4}"), there("b", "spec: {replicas: 4}, status: {availableReplicas: 1}")}, "spec.replicas",
			values{"a": int64(5), "b": int64(4)}},
		"a StatefulSet in one cluster becomes smaller though some do not work": {splitter.StatefulSets(), `spec: {replicas: 2}`, all("a"),
			[]splitter.Shard{there("a", "spec: {replicas: 3}, status: {replicas: 3, availableReplicas: 2}")}, "spec.replicas", values{"a": int64(2)}},
		"what a cluster has yet to remove may be what works": {splitter.StatefulSets(), `spec: {replicas: 5}`, []splitter.Share{{Name: "a", Max: new(int64(0))}, {Name: "b"}},
			[]splitter.Shard{there("a", "spec: {replicas: 4}, status: {replicas: 5, availableReplicas: 2}"), there("b", "spec: {replicas: 5}, status: {replicas: 5, availableReplicas: 4}")},
			"spec.replicas", values{"a": int64(4), "b": int64(5)}},
		"what is ready is not removed first": {splitter.Deployments(), `spec: {replicas: 5, strategy: {rollingUpdate: {maxUnavailable: 0, maxSurge: 1}}}`, []splitter.Share{{Name: "a", Max: new(int64(0))}, {Name: "b"}},
			[]splitter.Shard{there("a", "spec: {replicas: 5}, status: {replicas: 5, readyReplicas: 5, availableReplicas: 3}"), there("b", "spec: {replicas: 5}, status: {replicas: 5, readyReplicas: 2, availableReplicas: 2}")},
			"spec.replicas", values{"a": int64(5), "b": int64(5)}},
		"what has no room": {splitter.StatefulSets(), `spec: {replicas: 9}`, []splitter.Share{{Name: "a"}, {Name: "b", Capacity: new(int64(2))}}, nil, "spec.replicas",
			values{"a": int64(7), "b": int64(2)}},
		"a Job's completions stay where there is no room": {splitter.Jobs(), `spec: {parallelism: 0, completions: 20}`, []splitter.Share{{Name: "a"}, {Name: "b", Capacity: new(int64(0))}},
			[]splitter.Shard{there("b", "spec: {parallelism: 0, completions: 12}"), there("a", "spec: {parallelism: 0, completions: 8}")}, "spec.completions",
			values{"a": int64(8), "b": int64(12)}},
		"a Job's parallelism": {splitter.Jobs(), `spec: {parallelism: 5, completions: 20}`, weights(2, 3), nil, "spec.parallelism", values{"a": int64(2), "b": int64(3)}},
		"a Job's completions follow it": {splitter.Jobs(), `spec: {parallelism: 5, completions: 20}`, weights(2, 3), nil, "spec.completions",
			values{"a": int64(8), "b": int64(12)}},
		"a Job's completions stay": {splitter.Jobs(), `spec: {parallelism: 6, completions: 20}`, all("a", "b", "c"),
			[]splitter.Shard{there("b", "spec: {parallelism: 3, completions: 12}"), there("a", "spec: {parallelism: 2, completions: 8}")}, "spec.completions",
			values{"a": int64(8), "b": int64(12)}},
		"a Job's completions of a lost cluster are done again": {splitter.Jobs(), `spec: {parallelism: 5, completions: 20}`, all("a", "c"),
			[]splitter.Shard{there("b", "spec: {parallelism: 3, completions: 12}"), there("a", "spec: {parallelism: 2, completions: 8}")}, "spec.completions",
			values{"a": int64(8), "c": int64(12)}},
		"a Job that has ended stays as it is": {splitter.Jobs(), `spec: {parallelism: 5, completions: 20}, status: {conditions: [{type: Complete, status: "True"}]}`, all("a", "c"),
			[]splitter.Shard{there("b", "spec: {parallelism: 3, completions: 12}"), there("a", "spec: {parallelism: 2, completions: 8}")}, "spec.completions",
			values{"a": int64(8), "b": int64(12)}},
		"a Job that has ended is not begun again": {splitter.Jobs(), `spec: {parallelism: 5, completions: 20}, status: {conditions: [{type: Failed, status: "True"}]}`, all("a", "c"),
			nil, "spec.completions", values{}},
		"a Job that works off a queue": {splitter.Jobs(), `spec: {parallelism: 4}`, all("a", "b"), nil, "spec.completions", values{}},
		"a Job with indices is not cut": {splitter.Jobs(), `spec: {parallelism: 4, completions: 9, completionMode: Indexed}`, weights(1, 2), nil, "spec.completions",
			values{"b": int64(9)}},
		"a Job's generated selector does not pass": {splitter.Jobs(), `spec: {parallelism: 4, selector: {matchLabels: {controller-uid: u}}}`, all("a"), nil, "spec.selector", values{}},
		"a Job's generated labels do not pass": {splitter.Jobs(), `spec: {template: {metadata: {labels: {app: x, controller-uid: u, batch.kubernetes.io/job-name: x}}}}`, all("a"), nil,
			"spec.template.metadata.labels", values{"a": values{"app": "x"}}},
		"an empty time does not pass": {splitter.Deployments(), `spec: {template: {metadata: {creationTimestamp: null, name: x}}}`, all("a"), nil, "spec.template.metadata", values{"a": values{"name": "x"}}},
		"no cluster":                  {splitter.Deployments(), `spec: {replicas: 3}`, nil, nil, "spec.replicas", values{}},
	} {
		t.Run(name, func(t *testing.T) {
			parent := object(t, "X", test.parent)
			before := parent.DeepCopy()
			_, shards, err := test.kind.Cut(parent, splitter.Demand{}, test.shares, test.have)
			require.NoError(t, err)
			require.Equal(t, test.want, field(shards, test.path))
			require.Equal(t, before, parent, "not modified")
		})
	}
}

// shard returns a shard with generation 2 and the given spec and status. The shard is current, unless
// edit changes that.
func shard(t require.TestingT, cluster, rest string, edit ...func(*splitter.Shard)) splitter.Shard {
	s := splitter.Shard{Cluster: cluster, Object: object(t, "X", rest), Current: true}
	for _, e := range edit {
		e(&s)
	}
	return s
}

// waiting returns shards, some of which have pods without a node according to the annotations of
// syncers.
func waiting(t require.TestingT) []splitter.Shard {
	said := func(cluster, text string) splitter.Shard {
		s := shard(t, cluster, "spec: {}")
		s.Object.SetAnnotations(map[string]string{"unscheduled.syncer.atoll.dev/" + cluster: text, "unscheduled.syncer.atoll.dev/another": `{"pods":7}`})
		return s
	}
	return []splitter.Shard{said("a", `{"pods":3,"message":"0/5 nodes are available"}`), said("b", `{"pods":1,"message":""}`), said("c", `{"pods":0}`), {Cluster: "d"}, said("e", "many")}
}

func TestFold(t *testing.T) {
	old := func(s *splitter.Shard) { s.Current = false }
	silent := func(s *splitter.Shard) { s.Silent = true }
	seen := "observedGeneration: 2, "
	missing := func(message string) string {
		return ", conditions: [{type: Available, status: 'False', reason: ReplicasUnavailable, message: " + message + "}]}"
	}
	unscheduled := `{type: Scheduled, status: "False", reason: Unschedulable, message: "a: 3 pods find no node (0/5 nodes are available); b: 1 pod finds no node"}`
	for name, test := range map[string]struct {
		kind   splitter.Kind
		parent string
		shards []splitter.Shard
		want   string // the status, as YAML
	}{
		"a Job that has ended has ended": {splitter.Jobs(), `spec: {completions: 20}, status: {active: 0, ready: 0, succeeded: 20, startTime: "2026-01-01T00:00:00Z", completionTime: "2026-01-01T00:01:00Z",
			conditions: [{type: Complete, status: "True", reason: R, message: M, lastProbeTime: null, lastTransitionTime: "2026-01-01T00:01:00Z"}]}`, []splitter.Shard{
			shard(t, "a", `spec: {completions: 8}, status: {succeeded: 8, conditions: [{type: Complete, status: "True"}]}`)},
			`{succeeded: 20, startTime: "2026-01-01T00:00:00Z", completionTime: "2026-01-01T00:01:00Z", conditions: [{type: Complete, status: "True", reason: R, message: M}]}`},
		"what a Job has done is not undone": {splitter.Jobs(), `spec: {completions: 20}, status: {succeeded: 15, failed: 1, startTime: "2026-01-01T00:00:00Z"}`, []splitter.Shard{
			shard(t, "a", `spec: {completions: 8}, status: {active: 2, succeeded: 6, startTime: "2026-01-01T00:02:00Z"}`), shard(t, "c", "spec: {completions: 12}")},
			`{active: 2, succeeded: 15, failed: 1, startTime: "2026-01-01T00:00:00Z"}`},
		"a Job that is suspended begins anew": {splitter.Jobs(), `spec: {suspend: true}, status: {startTime: "2026-01-01T00:00:00Z"}`, []splitter.Shard{
			shard(t, "a", `status: {failed: 1}`)}, `{failed: 1}`},
		"counters add up": {splitter.StatefulSets(), "spec: {replicas: 5}", []splitter.Shard{
			shard(t, "a", "status: {"+seen+"replicas: 2, readyReplicas: 2, availableReplicas: 1}"), shard(t, "b", "status: {"+seen+"replicas: 3, readyReplicas: 1}")},
			"{observedGeneration: 2, replicas: 5, readyReplicas: 3, availableReplicas: 1" + missing("'1 of 5 replicas are available: b 0 of 1'")},
		"one that has not seen its spec": {splitter.StatefulSets(), "spec: {replicas: 5}, status: {observedGeneration: 1}", []splitter.Shard{
			shard(t, "a", "status: {"+seen+"replicas: 2}"), shard(t, "b", "status: {observedGeneration: 1, replicas: 3}")},
			"{observedGeneration: 1, replicas: 5, availableReplicas: 0" + missing("'0 of 5 replicas are available: a 0 of 1, b 0 of 1'")},
		"one that is yet to be written": {splitter.StatefulSets(), "spec: {replicas: 5}, status: {observedGeneration: 1}", []splitter.Shard{
			shard(t, "a", "status: {"+seen+"replicas: 2}", old)}, "{observedGeneration: 1, replicas: 2, availableReplicas: 0" + missing("'0 of 5 replicas are available: a 0 of 1'")},
		"one that is not there yet": {splitter.StatefulSets(), "spec: {replicas: 5}", []splitter.Shard{
			shard(t, "a", "status: {"+seen+"replicas: 2}"), {Cluster: "b"}}, "{replicas: 2, availableReplicas: 0" + missing("'0 of 5 replicas are available: a 0 of 1, b 0 of 1'")},
		"a silent cluster counts as it last was": {splitter.StatefulSets(), "spec: {replicas: 5}", []splitter.Shard{
			shard(t, "a", "status: {"+seen+"replicas: 2, readyReplicas: 2}", silent)}, "{observedGeneration: 2, replicas: 2, readyReplicas: 2, availableReplicas: 0" + missing("'0 of 5 replicas are available: a is unreachable, 0 of 1 at its last report'")},
		"a StatefulSet of which all work": {splitter.StatefulSets(), "spec: {replicas: 1}", []splitter.Shard{shard(t, "a", "status: {"+seen+"replicas: 1, availableReplicas: 1}")},
			`{observedGeneration: 2, replicas: 1, availableReplicas: 1, conditions: [{type: Available, status: "True", reason: AllReplicasAvailable, message: 1 of 1 replicas are available}]}`},
		"a StatefulSet that finds no nodes": {splitter.StatefulSets(), "spec: {replicas: 0}", waiting(t), `{replicas: 0, availableReplicas: 0, conditions: [
			{type: Available, status: "True", reason: AllReplicasAvailable, message: "0 of 0 replicas are available: a 0 of 1, b 0 of 1, c 0 of 1, d 0 of 1, e 0 of 1"}, ` + unscheduled + `]}`},
		"a Deployment that finds no nodes": {splitter.Deployments(), "spec: {replicas: 4}", waiting(t), `{conditions: [
			{type: Available, status: "False", reason: MinimumReplicasUnavailable, message: "0 of 4 replicas are available: a 0 of 1, b 0 of 1, c 0 of 1, d 0 of 1, e 0 of 1"},
			{type: Progressing, status: "True", reason: ReplicaSetUpdated, message: clusters are rolling it out}, ` + unscheduled + `]}`},
		"a DaemonSet that finds no nodes": {splitter.DaemonSets(), "spec: {}", waiting(t),
			`{currentNumberScheduled: 0, numberMisscheduled: 0, desiredNumberScheduled: 0, numberReady: 0, conditions: [` + unscheduled + `]}`},
		"a Job that finds no nodes": {splitter.Jobs(), "spec: {}", waiting(t), `{conditions: [` + unscheduled + `]}`},
		"a Job that finds no nodes and fails": {splitter.Jobs(), "spec: {}", append(waiting(t), shard(t, "z", `status: {conditions: [{type: Failed, status: "True", message: why}]}`)),
			`{conditions: [{type: FailureTarget, status: "True", reason: ClusterFailed, message: "z: why"}, ` + unscheduled + `]}`},
		"DaemonSets": {splitter.DaemonSets(), "spec: {}", []splitter.Shard{
			shard(t, "a", "status: {"+seen+"numberReady: 2, desiredNumberScheduled: 3, currentNumberScheduled: 3}"), shard(t, "b", "status: {"+seen+"numberReady: 1, numberAvailable: 1}")},
			"{observedGeneration: 2, numberReady: 3, desiredNumberScheduled: 3, currentNumberScheduled: 3, numberMisscheduled: 0, numberAvailable: 1}"},
		"CronJobs": {splitter.CronJobs(), "spec: {}", []splitter.Shard{
			shard(t, "a", `status: {lastScheduleTime: "2026-01-01T00:00:00Z", active: [{name: x}]}`), shard(t, "b", `status: {lastScheduleTime: "2026-01-02T00:00:00Z"}`)},
			`{lastScheduleTime: "2026-01-02T00:00:00Z", active: [{name: x}]}`},
		"a Job at work": {splitter.Jobs(), "spec: {completions: 5}", []splitter.Shard{
			shard(t, "a", `spec: {completions: 2}, status: {succeeded: 2, startTime: "2026-01-02T00:00:00Z", conditions: [{type: Complete, status: "True"}]}`),
			shard(t, "b", `spec: {completions: 3}, status: {succeeded: 1, active: 2, startTime: "2026-01-01T00:00:00Z"}`)},
			`{succeeded: 3, active: 2, startTime: "2026-01-01T00:00:00Z"}`},
		"a Job of which a part has no place is not complete": {splitter.Jobs(), "spec: {completions: 5}", []splitter.Shard{
			shard(t, "a", `spec: {completions: 2}, status: {succeeded: 2, conditions: [{type: Complete, status: "True"}]}`)}, `{succeeded: 2}`},
		"a Job that is done": {splitter.Jobs(), "spec: {completions: 2}", []splitter.Shard{
			shard(t, "a", `spec: {completions: 1}, status: {succeeded: 1, startTime: "2026-01-02T00:00:00Z", completionTime: "2026-01-03T00:00:00Z", conditions: [{type: Complete, status: "True"}]}`),
			shard(t, "b", `spec: {completions: 1}, status: {succeeded: 1, completionTime: "2026-01-04T00:00:00Z", conditions: [{type: Complete, status: "True"}]}`)},
			`{succeeded: 2, startTime: "2026-01-02T00:00:00Z", completionTime: "2026-01-04T00:00:00Z", conditions: [
				{type: SuccessCriteriaMet, status: "True", reason: CompletionsReached, message: all clusters are done},
				{type: Complete, status: "True", reason: CompletionsReached, message: all clusters are done}]}`},
		"a Job that fails in one cluster is not over while another works": {splitter.Jobs(), "spec: {completions: 2}", []splitter.Shard{
			shard(t, "a", `spec: {completions: 1}, status: {failed: 1, conditions: [{type: Failed, status: "True", message: why}]}`), shard(t, "b", `spec: {completions: 1}, status: {active: 1}`)},
			`{failed: 1, active: 1, conditions: [{type: FailureTarget, status: "True", reason: ClusterFailed, message: "a: why"}]}`},
		"a Job without shards is not complete": {splitter.Jobs(), "spec: {}", nil, "{}"},
		"a Deployment": {splitter.Deployments(), "spec: {replicas: 4}", []splitter.Shard{
			shard(t, "a", `spec: {replicas: 2}, status: {`+seen+`replicas: 2, availableReplicas: 2, conditions: [{type: Progressing, status: "True", reason: NewReplicaSetAvailable}]}`),
			shard(t, "b", `spec: {replicas: 2}, status: {`+seen+`replicas: 2, availableReplicas: 1, conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded, message: stuck},
				{type: ReplicaFailure, status: "True", message: quota}]}`, silent)},
			`{observedGeneration: 2, replicas: 4, availableReplicas: 3, conditions: [
				{type: Available, status: "True", reason: MinimumReplicasAvailable, message: "3 of 4 replicas are available: b is unreachable, 1 of 2 at its last report"},
				{type: Progressing, status: "False", reason: ProgressDeadlineExceeded, message: "b: stuck"},
				{type: ReplicaFailure, status: "True", reason: FailedCreate, message: "b: quota"}]}`},
		"a Deployment without clusters": {splitter.Deployments(), "spec: {replicas: 4}", nil,
			`{observedGeneration: 2, conditions: [{type: Available, status: "False", reason: MinimumReplicasUnavailable, message: "0 of 4 replicas are available"},
				{type: Progressing, status: "False", reason: NoClusters, message: no cluster has any replicas of it}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			status, err := test.kind.Fold(object(t, "X", test.parent), test.shards)
			require.NoError(t, err)
			want := parse(t, "{apiVersion: v1, kind: X, status: "+test.want+"}").Object["status"]
			require.Equal(t, want, any(status))
		})
	}
}

// The status of a parent with 300 shards stays below 16 KiB, although each shard has long messages in
// its conditions.
func TestFoldOfHundredsOfClusters(t *testing.T) {
	shards := make([]splitter.Shard, 300)
	why := strings.Repeat("x", 4096)
	for i := range shards {
		shards[i] = shard(t, fmt.Sprintf("%03d-%s", i, strings.Repeat("c", 59)), `spec: {replicas: 2, completions: 1}, status: {observedGeneration: 2, availableReplicas: 1, conditions: [
			{type: Progressing, status: "False", reason: ProgressDeadlineExceeded, message: `+why+`}, {type: ReplicaFailure, status: "True", message: `+why+`}, {type: Failed, status: "True", message: `+why+`}]}`)
		shards[i].Object.SetAnnotations(map[string]string{"unscheduled.syncer.atoll.dev/" + shards[i].Cluster: `{"pods":3,"message":"` + why[:256] + `"}`})
	}
	for _, kind := range []splitter.Kind{splitter.Deployments(), splitter.StatefulSets(), splitter.DaemonSets(), splitter.Jobs(), splitter.CronJobs()} {
		status, err := kind.Fold(object(t, "X", "spec: {replicas: 600, completions: 300}"), shards)
		require.NoError(t, err)
		data, err := json.Marshal(status)
		require.NoError(t, err)
		require.Less(t, len(data), 16<<10, kind.Resource())
		if kind.Resource().Resource == "deployments" {
			require.Contains(t, string(data), "300 of 600 replicas are available: 000-")
			require.Contains(t, string(data), " 1 of 2 and 290 more")
		}
	}
}

// The completions of a Job's first shards add up to the completions of the Job. When clusters join or
// leave, the shards that stay keep their completions.
func TestCutJobsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		completions := rapid.Int64Range(1, 50).Draw(t, "completions")
		parent := &unstructured.Unstructured{Object: values{"apiVersion": "batch/v1", "kind": "Job", "spec": values{
			"parallelism": rapid.Int64Range(1, 20).Draw(t, "parallelism"), "completions": completions}}}
		sum := func(shards []splitter.Shard) (n int64) {
			for _, v := range field(shards, "spec.completions") {
				n += v.(int64)
			}
			return n
		}
		names := []string{"a", "b", "c", "d"}
		_, first, err := splitter.Jobs().Cut(parent, splitter.Demand{}, all(names[:rapid.IntRange(1, 4).Draw(t, "clusters")]...), nil)
		require.NoError(t, err)
		require.Equal(t, completions, sum(first))
		left := rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, 4, rapid.ID[string]).Draw(t, "left")
		_, second, err := splitter.Jobs().Cut(parent, splitter.Demand{}, all(left...), first)
		require.NoError(t, err)
		before, after := field(first, "spec.completions"), field(second, "spec.completions")
		for _, name := range left {
			if was, ok := before[name]; ok {
				require.Equal(t, was, after[name], "%s has them, and they cannot be changed", name)
			}
		}
		_, third, err := splitter.Jobs().Cut(parent, splitter.Demand{}, all(left...), second)
		require.NoError(t, err)
		require.Equal(t, after, field(third, "spec.completions"), "stays")
	})
}

func TestByPaths(t *testing.T) {
	rollouts := schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "rollouts"}
	kind, err := splitter.ByPaths(rollouts, splitter.Paths{Replicas: "spec.workers.count", Available: "status.workers.up", Counters: []string{"status.seen"}})
	require.NoError(t, err)
	require.Equal(t, rollouts, kind.Resource())
	_, shards, err := kind.Cut(object(t, "X", "spec: {workers: {count: 5, size: l}}"), splitter.Demand{}, weights(2, 3), nil)
	require.NoError(t, err)
	require.Equal(t, values{"a": values{"count": int64(2), "size": "l"}, "b": values{"count": int64(3), "size": "l"}}, field(shards, "spec.workers"))
	status, err := kind.Fold(object(t, "X", "spec: {}"), []splitter.Shard{shard(t, "a", "status: {seen: 2, workers: {up: 1}}"), shard(t, "b", "status: {seen: 3.0, workers: {up: 2}}")})
	require.NoError(t, err)
	require.Equal(t, values{"seen": int64(5), "workers": values{"up": int64(3)}}, status)

	for _, wrong := range []splitter.Paths{{Replicas: "spec"}, {Replicas: "status.replicas"}, {Replicas: "spec..x"}, {Available: "spec.x"}, {Counters: []string{"status"}}} {
		_, err := splitter.ByPaths(rollouts, wrong)
		require.ErrorContains(t, err, "Paths", "%v", wrong)
	}
	_, err = splitter.ByPaths(schema.GroupVersionResource{}, splitter.Paths{})
	require.ErrorContains(t, err, "must be set")
	_, _, err = kind.Cut(object(t, "X", "spec: {workers: 5}"), splitter.Demand{}, weights(2, 3), nil)
	require.ErrorContains(t, err, "spec.workers.count")
}

func TestShardName(t *testing.T) {
	require.Equal(t, "my-deployment--cluster-1", splitter.ShardName("my-deployment", "cluster-1"))
	require.NotEqual(t, splitter.ShardName("a", "b--c"), splitter.ShardName("a--b", "c"))
	require.NotEqual(t, splitter.ShardName("a", "b.c"), splitter.ShardName("a", "b-c"))
	name := rapid.StringMatching(`[a-z]([-a-z0-9]{0,60}[a-z0-9])?`)
	seen := map[string][2]string{}
	rapid.Check(t, func(t *rapid.T) {
		pair := [2]string{name.Draw(t, "parent"), name.Draw(t, "cluster")}
		got := splitter.ShardName(pair[0], pair[1])
		require.LessOrEqual(t, len(got), 52)
		require.Regexp(t, `^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`, got)
		before, ok := seen[got]
		require.True(t, !ok || before == pair, "%v and %v", before, pair)
		seen[got] = pair
	})
}

// A custom type may accept a negative number of replicas that another client writes into a shard:
// the parent is still divided.
func TestCutOfAShardBelowZero(t *testing.T) {
	rollouts := schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "rollouts"}
	kind, err := splitter.ByPaths(rollouts, splitter.Paths{})
	require.NoError(t, err)
	_, shards, err := kind.Cut(object(t, "X", "spec: {replicas: 5}"), splitter.Demand{}, weights(2, 3), []splitter.Shard{shard(t, "a", "spec: {replicas: -3}")})
	require.NoError(t, err)
	require.Equal(t, map[string]any{"a": int64(2), "b": int64(3)}, field(shards, "spec.replicas"))
}
