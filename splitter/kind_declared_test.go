// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package splitter_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
	"github.com/atoll-dev/atoll/splitter/workload"
)

// declared returns the Kind of a declaration in YAML, without its resource.
func declared(t require.TestingT, rest string) splitter.Kind {
	var spec v1alpha1.WorkloadTypeSpec
	require.NoError(t, yaml.UnmarshalStrict([]byte("{resource: {group: example.org, version: v1, resource: xs, kind: X}, "+rest+"}"), &spec))
	kind, err := splitter.Declared(spec)
	require.NoError(t, err)
	return kind
}

func TestCutOfDeclaredKinds(t *testing.T) {
	replicas := "replicas: spec.size, status: {available: status.up}"
	for name, test := range map[string]struct {
		rest, parent string
		shares       []splitter.Share
		have         []splitter.Shard
		path         string
		want         values
	}{
		"replicas":             {replicas, "spec: {size: 5, x: 1}", weights(2, 3), nil, "spec.size", values{"a": int64(2), "b": int64(3)}},
		"the rest of the spec": {replicas, "spec: {size: 5, x: 1}", weights(2, 3), nil, "spec.x", values{"a": int64(1), "b": int64(1)}},
		"every cluster":        {"division: EveryCluster", "spec: {x: 1}", all("a", "b", "c"), nil, "spec.x", values{"a": int64(1), "b": int64(1), "c": int64(1)}},
		"one cluster": {"division: OneCluster", "spec: {x: 1}", all("a", "b", "c"), []splitter.Shard{{Cluster: "b", Object: object(t, "X", "spec: {}")}}, "spec.x",
			values{"b": int64(1)}},
		"a template without its creationTimestamp": {"division: EveryCluster, templates: [spec.pod]", "spec: {pod: {metadata: {creationTimestamp: null, x: z}}}", all("a"), nil,
			"spec.pod.metadata", values{"a": values{"x": "z"}}},
		"by health, an unhealthy shard has no available replicas": {"status: {health: {condition: Ready}}", "spec: {replicas: 4}",
			[]splitter.Share{{Name: "a", Max: new(int64(0))}, {Name: "b"}},
			[]splitter.Shard{{Cluster: "a", Object: object(t, "X", `spec: {replicas: 4}, status: {conditions: [{type: Ready, status: "True"}]}`)},
				{Cluster: "b", Object: object(t, "X", `spec: {replicas: 4}, status: {conditions: [{type: Ready, status: "False"}]}`)}},
			"spec.replicas", values{"a": int64(4), "b": int64(4)}},
		"by health, a replica leaves when others are healthy": {"status: {health: {condition: Ready}}", "spec: {replicas: 4}",
			[]splitter.Share{{Name: "a", Max: new(int64(0))}, {Name: "b"}},
			[]splitter.Shard{{Cluster: "a", Object: object(t, "X", `spec: {replicas: 4}, status: {conditions: [{type: Ready, status: "True"}]}`)},
				{Cluster: "b", Object: object(t, "X", `spec: {replicas: 4}, status: {conditions: [{type: Ready, status: "True"}]}`)}},
			"spec.replicas", values{"b": int64(4)}},
	} {
		t.Run(name, func(t *testing.T) {
			_, shards, err := declared(t, test.rest).Cut(object(t, "X", test.parent), splitter.Demand{}, test.shares, test.have)
			require.NoError(t, err)
			require.Equal(t, test.want, field(shards, test.path))
		})
	}
}

func TestFoldOfDeclaredKinds(t *testing.T) {
	current := func(cluster, status string) splitter.Shard {
		return splitter.Shard{Cluster: cluster, Object: object(t, "X", "spec: {replicas: 2}, status: {"+status+"}"), Current: true}
	}
	every := func(fields string) string { return "division: EveryCluster, status: {" + fields + "}" }
	for name, test := range map[string]struct {
		rest, parent string
		shards       []splitter.Shard
		want         string
	}{
		"a generation as text": {every("observedGeneration: {path: status.seen, type: String}"), "spec: {}", []splitter.Shard{current("a", `seen: "2"`), current("b", `seen: "3"`)}, `{seen: "2"}`},
		"a generation that one has not seen": {every("observedGeneration: {path: status.seen}"), "spec: {}, status: {seen: 1}",
			[]splitter.Shard{current("a", "seen: 2"), current("b", "seen: 1")}, "{seen: 1}"},
		"no generation":   {every(""), "spec: {}", []splitter.Shard{current("a", "observedGeneration: 2")}, "{}"},
		"sums":            {every("fields: [{path: status.sums.a, fold: Sum}, {path: status.sums.b, fold: Sum, always: true}, {path: status.c, fold: Sum}]"), "spec: {}", []splitter.Shard{current("a", "sums: {a: 1}"), current("b", "sums: {a: 2}")}, "{sums: {a: 3, b: 0}}"},
		"the same":        {every("fields: [{path: status.s, fold: Same}]"), "spec: {}", []splitter.Shard{current("a", "s: {x: 1}"), current("b", "s: {x: 1}")}, "{s: {x: 1}}"},
		"not the same":    {every("fields: [{path: status.s, fold: Same}]"), "spec: {}", []splitter.Shard{current("a", "s: x"), current("b", "s: z")}, "{}"},
		"not all have it": {every("fields: [{path: status.s, fold: Same}]"), "spec: {}", []splitter.Shard{current("a", "s: x"), current("b", "")}, "{}"},
		"the worst":       {every("fields: [{path: status.s, fold: Worst, order: [Bad, Soso, Good]}]"), "spec: {}", []splitter.Shard{current("a", "s: Good"), current("b", "s: Soso")}, "{s: Soso}"},
		"an unknown text": {every("fields: [{path: status.s, fold: Worst, order: [Bad, Good]}]"), "spec: {}", []splitter.Shard{current("a", "s: Bad"), current("b", "s: Odd")}, "{s: Odd}"},
		"good and absent": {every("fields: [{path: status.s, fold: Worst, order: [Bad, Good]}]"), "spec: {}", []splitter.Shard{current("a", "s: Good"), current("b", "")}, "{}"},
		"bad and absent":  {every("fields: [{path: status.s, fold: Worst, order: [Bad, Good]}]"), "spec: {}", []splitter.Shard{current("a", "s: Bad"), current("b", "")}, "{s: Bad}"},
		"the latest": {every("fields: [{path: status.at, fold: Latest}]"), "spec: {}", []splitter.Shard{current("a", `at: "2026-01-01T02:00:00+02:00"`), current("b", `at: "2026-01-01T01:00:00Z"`), current("c", "at: never")},
			`{at: "2026-01-01T01:00:00Z"}`},
		"lists": {every("fields: [{path: status.l, fold: Join}]"), "spec: {}", []splitter.Shard{current("a", "l: [1]"), current("b", "l: [2, 3]"), current("c", "l: x")}, "{l: [1, 2, 3]}"},
		"a condition of all": {every("conditions: [{type: Ready}]"), "spec: {}", []splitter.Shard{current("a", `conditions: [{type: Ready, status: "True", reason: R}]`), current("b", `conditions: [{type: Ready, status: "True", reason: S}]`)},
			`{conditions: [{type: Ready, status: "True", reason: R, message: in all 2 clusters}]}`},
		"a condition that one lacks": {every("conditions: [{type: Ready}]"), "spec: {}", []splitter.Shard{current("a", `conditions: [{type: Ready, status: "True"}]`), current("b", "")},
			`{conditions: [{type: Ready, status: Unknown, reason: ClustersPending, message: 1 of 2 clusters have not reported it for the present spec}]}`},
		"a condition that is False in one": {every("conditions: [{type: Ready}]"), "spec: {}", []splitter.Shard{current("a", `conditions: [{type: Ready, status: "False", reason: R, message: why}]`), current("b", "")},
			`{conditions: [{type: Ready, status: "False", reason: R, message: "a: why"}]}`},
		"a condition of any": {every("conditions: [{type: Broken, fold: Any}]"), "spec: {}", []splitter.Shard{current("a", ""), current("b", `conditions: [{type: Broken, status: "True", reason: R, message: why}]`)},
			`{conditions: [{type: Broken, status: "True", reason: R, message: "b: why"}]}`},
		"a condition of none": {every("conditions: [{type: Broken, fold: Any}]"), "spec: {}", []splitter.Shard{current("a", ""), current("b", `conditions: [{type: Broken, status: "False"}]`)},
			`{conditions: [{type: Broken, status: "False", reason: Combined, message: in all 2 clusters}]}`},
		"no such condition": {every("conditions: [{type: Broken, fold: Any}]"), "spec: {}", []splitter.Shard{current("a", "")}, "{}"},
		"healthy clusters": {every("health: {condition: Ready}, add: [Available]"), "spec: {}", []splitter.Shard{current("a", `conditions: [{type: Ready, status: "True"}]`), current("b", "")},
			`{conditions: [{type: Available, status: "False", reason: ClustersUnhealthy, message: "1 of 2 clusters are healthy; not b"}]}`},
		"replicas by health": {"status: {health: {path: status.phase, values: [Up]}, add: [Available]}", "spec: {replicas: 4}", []splitter.Shard{current("a", "phase: Up"), current("b", "phase: Down")},
			`{conditions: [{type: Available, status: "False", reason: ReplicasUnavailable, message: "2 of 4 replicas are available: b 0 of 2"}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			status, err := declared(t, test.rest).Fold(object(t, "X", test.parent), test.shards)
			require.NoError(t, err)
			require.Equal(t, parse(t, "{apiVersion: v1, kind: X, status: "+test.want+"}").Object["status"], any(status))
		})
	}
}

// A ReplicaSet, and a ReplicationController, are divided as StatefulSets are; their controllers remove unready replicas
// first.
func TestReplicaSets(t *testing.T) {
	for _, kind := range []splitter.Kind{splitter.ReplicaSets(), splitter.ReplicationControllers()} {
		_, shards, err := kind.Cut(object(t, "X", "spec: {replicas: 5}"), splitter.Demand{}, weights(2, 3), nil)
		require.NoError(t, err)
		require.Equal(t, values{"a": int64(2), "b": int64(3)}, field(shards, "spec.replicas"))
		status, err := kind.Fold(object(t, "X", "spec: {replicas: 2}"), []splitter.Shard{
			shard(t, "a", `spec: {replicas: 2}, status: {observedGeneration: 2, replicas: 2, fullyLabeledReplicas: 2, availableReplicas: 1, conditions: [{type: ReplicaFailure, status: "True", reason: FailedCreate, message: quota}]}`)})
		require.NoError(t, err)
		require.Equal(t, values{"observedGeneration": int64(2), "replicas": int64(2), "fullyLabeledReplicas": int64(2), "availableReplicas": int64(1), "conditions": []any{
			values{"type": "Available", "status": "False", "reason": "ReplicasUnavailable", "message": "1 of 2 replicas are available: a 1 of 2"},
			values{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "a: quota"}}}, status)
		require.Equal(t, splitter.Conditions{Placed: true, Duplicated: true}, kind.(splitter.Conditioned).Conditions())
	}
}

func TestDeclaredRefuses(t *testing.T) {
	_, err := splitter.Declared(v1alpha1.WorkloadTypeSpec{})
	require.ErrorContains(t, err, "spec.resource.kind: must be set")
	_, err = splitter.Declared(workload.BuiltinType("deployments").Spec())
	require.ErrorContains(t, err, "deployments.apps is built in")
	var scales v1alpha1.WorkloadTypeSpec
	require.NoError(t, yaml.Unmarshal([]byte("{resource: {group: keda.sh, version: v1alpha1, resource: scaledobjects, kind: ScaledObject}, division: None, scaleTarget: {path: spec.x}}"), &scales))
	_, err = splitter.Declared(scales)
	require.ErrorContains(t, err, "scaledobjects.keda.sh: its division is None")
}

// For any declaration and any objects, Cut and Fold do not panic. The replicas of the first shards add up to those of
// the parent, and each sum of the status is the sum over the shards.
func TestAnyDeclaration(t *testing.T) {
	name := rapid.SampledFrom([]string{"replicas", "a", "b", "template", "phase", "conditions"})
	path := func(t *rapid.T, root string) v1alpha1.FieldPath {
		text := root
		for range rapid.IntRange(1, 3).Draw(t, "depth") {
			text += "." + name.Draw(t, "name")
		}
		return v1alpha1.FieldPath(text)
	}
	rapid.Check(t, func(t *rapid.T) {
		spec := v1alpha1.WorkloadTypeSpec{
			Resource: v1alpha1.WorkloadResource{Group: "example.org", Version: "v1", Resource: "xs", Kind: "X"},
			Division: rapid.SampledFrom([]v1alpha1.WorkloadDivision{v1alpha1.DivideReplicas, v1alpha1.DivideEveryCluster, v1alpha1.DivideOneCluster}).Draw(t, "division"),
			Replicas: path(t, "spec"), ScaleDown: rapid.SampledFrom([]v1alpha1.WorkloadScaleDown{"", v1alpha1.ScaleDownUnreadyFirst}).Draw(t, "scaleDown"),
			Status: v1alpha1.WorkloadStatusPaths{
				Available: path(t, "status"), Replicas: path(t, "status"), Health: &v1alpha1.HealthRule{Condition: "Ready"},
				ObservedGeneration: &v1alpha1.ObservedGenerationPath{Path: path(t, "status"), Type: rapid.SampledFrom([]v1alpha1.GenerationType{"", v1alpha1.GenerationString}).Draw(t, "type")},
				Conditions:         []v1alpha1.FoldedCondition{{Type: "Ready"}, {Type: "Broken", Fold: v1alpha1.FoldAny}},
				Add:                []v1alpha1.AddedCondition{v1alpha1.AddAvailable, v1alpha1.AddScheduled},
			},
		}
		for range rapid.IntRange(0, 5).Draw(t, "fields") {
			f := v1alpha1.FoldedField{Path: path(t, "status"), Fold: rapid.SampledFrom([]v1alpha1.FieldFold{
				v1alpha1.FoldSum, v1alpha1.FoldLatest, v1alpha1.FoldSame, v1alpha1.FoldWorst, v1alpha1.FoldJoin}).Draw(t, "fold")}
			if f.Fold == v1alpha1.FoldWorst {
				f.Order = []string{"Bad", "Good"}
			}
			spec.Status.Fields = append(spec.Status.Fields, f)
		}
		kind, err := splitter.Declared(spec)
		if err != nil {
			t.Skip("fields that overlap")
		}
		of, err := workload.Compile(spec)
		require.NoError(t, err)
		parent := anyObject(t, "parent")
		_, _, _ = kind.Cut(parent, splitter.Demand{}, all("a", "b"), []splitter.Shard{{Cluster: "b", Object: anyObject(t, "present")}, {Cluster: "c"}})
		replicas := rapid.Int64Range(0, 20).Draw(t, "replicas")
		if of.Division() == v1alpha1.DivideReplicas {
			whole := &unstructured.Unstructured{Object: values{"apiVersion": "example.org/v1", "kind": "X"}}
			require.NoError(t, unstructured.SetNestedField(whole.Object, replicas, of.Replicas()...))
			_, shards, err := kind.Cut(whole, splitter.Demand{}, all("a", "b", "c"), nil)
			require.NoError(t, err)
			total := int64(0)
			for _, s := range shards {
				n, _, _ := unstructured.NestedInt64(s.Object.Object, of.Replicas()...)
				total += n
			}
			require.Equal(t, replicas, total)
		}
		var shards []splitter.Shard
		for i := range rapid.IntRange(0, 3).Draw(t, "shards") {
			shards = append(shards, splitter.Shard{Cluster: fmt.Sprint(i), Object: anyObject(t, "shard"), Current: rapid.Bool().Draw(t, "current")})
		}
		status, err := kind.Fold(parent, append(shards, splitter.Shard{Cluster: "new"}))
		require.NoError(t, err)
		for _, f := range of.Fields() {
			want := int64(0)
			for _, s := range shards {
				if n, ok, err := unstructured.NestedInt64(s.Object.Object, f.Path...); ok && err == nil {
					want += n
				}
			}
			got, _, _ := unstructured.NestedInt64(values{"status": status}, f.Path...)
			if f.Fold == v1alpha1.FoldSum {
				require.Equal(t, want, got, "%v", f.Path)
			}
		}
	})
}

// anyObject draws an object with a spec and a status of any form, whose fields have the names of TestAnyDeclaration.
func anyObject(t *rapid.T, label string) *unstructured.Unstructured {
	var content func(depth int) *rapid.Generator[any]
	content = func(depth int) *rapid.Generator[any] {
		leaf := rapid.OneOf(rapid.Just[any](nil), rapid.Just[any]("Bad"), rapid.Just[any]("2026-01-01T00:00:00Z"), rapid.Just[any]("7"), rapid.Map(rapid.Int64Range(-3, 9), func(n int64) any { return n }),
			rapid.Just[any]([]any{values{"type": "Ready", "status": "True"}, "x"}))
		if depth == 0 {
			return leaf
		}
		return rapid.OneOf(leaf, rapid.Map(rapid.MapOfN(rapid.SampledFrom([]string{"replicas", "a", "b", "template", "phase", "conditions"}), rapid.Deferred(func() *rapid.Generator[any] { return content(depth - 1) }), 0, 4),
			func(m map[string]any) any { return m }))
	}
	return &unstructured.Unstructured{Object: values{
		"apiVersion": "example.org/v1", "kind": "X", "metadata": values{"name": "x", "generation": rapid.Int64Range(0, 3).Draw(t, label+" generation")},
		"spec": content(3).Draw(t, label+" spec"), "status": content(3).Draw(t, label+" status"),
	}}
}

func ExampleDeclared() {
	kind, err := splitter.Declared(v1alpha1.WorkloadTypeSpec{
		Resource: v1alpha1.WorkloadResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "rollouts", Kind: "Rollout"},
		Status:   v1alpha1.WorkloadStatusPaths{Available: "status.availableReplicas"},
	})
	fmt.Println(kind.Resource() == schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "rollouts"}, err)
	// Output: true <nil>
}
