// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/splitter/v1alpha1"
	"github.com/atoll-dev/atoll/splitter/workload"
)

func object(t require.TestingT, manifest string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(manifest), &obj.Object))
	return obj
}

func compile(t require.TestingT, manifest string) *workload.Type {
	compiled, err := workload.Compile(spec(t, manifest))
	require.NoError(t, err)
	return compiled
}

func TestReferencesAndLabels(t *testing.T) {
	of := compile(t, rollouts+`division: EveryCluster
templates: [spec.template, 'spec.parts[*].template']
selector: spec.selector
references:
- {path: 'spec.services[*].name', resource: services}
- {path: 'spec["a.b"].secret', resource: secrets}`)
	obj := object(t, `{spec: {template: {metadata: {labels: {app: x}}}, parts: [{template: {metadata: {labels: {app: w}}}}, {template: 3}, 4],
		services: [{name: s}, {name: 5}, {name: ''}, x], "a.b": {secret: t}, selector: {matchLabels: {app: z}}}}`)
	require.Equal(t, []map[string]string{{"app": "x"}, {"app": "w"}}, of.PodLabels(obj))
	var refs []string
	of.References(obj, func(resource, name string) { refs = append(refs, resource+"/"+name) })
	require.Equal(t, []string{"services/s", "secrets/t"}, refs)
	require.Equal(t, map[string][]string{"spec": {"template", "parts", "services", "a.b", "selector"}}, of.Roots())
	require.Equal(t, []map[string]string{{"app": "z"}}, of.PodLabels(object(t, `{spec: {selector: {matchLabels: {app: z}, matchExpressions: []}}}`)), "a LabelSelector")
	require.Equal(t, []map[string]string{{"app": "z"}}, of.PodLabels(object(t, `{spec: {selector: {app: z}}}`)), "a map of labels")
	require.Empty(t, of.PodLabels(object(t, `{spec: 3}`)))
}

func TestScaleTarget(t *testing.T) {
	of := compile(t, "resource: {group: keda.sh, version: v1alpha1, resource: scaledobjects, kind: ScaledObject}\ndivision: None\nscaleTarget: {path: spec.scaleTargetRef, apiVersion: apps/v1, kind: Deployment}")
	for manifest, want := range map[string]struct {
		kind schema.GroupKind
		name string
		ok   bool
	}{
		`{spec: {scaleTargetRef: {name: x}}}`:                              {schema.GroupKind{Group: "apps", Kind: "Deployment"}, "x", true},
		`{spec: {scaleTargetRef: {apiVersion: a.b/v1, kind: K, name: x}}}`: {schema.GroupKind{Group: "a.b", Kind: "K"}, "x", true},
		`{spec: {scaleTargetRef: {apiVersion: a/b/c, kind: K, name: x}}}`:  {ok: false},
		`{spec: {scaleTargetRef: {}}}`:                                     {ok: false},
		`{spec: {scaleTargetRef: {name: 5}}}`:                              {ok: false},
		`{spec: {scaleTargetRef: [x]}}`:                                    {ok: false},
		`{}`:                                                               {ok: false},
	} {
		kind, name, ok := of.ScaleTarget(object(t, manifest))
		require.Equal(t, want.ok, ok, manifest)
		if ok {
			require.Equal(t, want.kind, kind)
			require.Equal(t, want.name, name)
		}
	}
}

func TestHealthy(t *testing.T) {
	phase := compile(t, rollouts+"status: {health: {path: status.phase, values: [Healthy]}}")
	condition := compile(t, rollouts+"status: {health: {condition: Ready}}")
	for manifest, want := range map[string][2]bool{
		`{status: {phase: Healthy}}`:                               {true, false},
		`{status: {phase: 3, conditions: [3, {type: Ready}]}}`:     {false, false},
		`{status: {conditions: [{type: Ready, status: "True"}]}}`:  {false, true},
		`{status: {conditions: [{type: Ready, status: "False"}]}}`: {false, false},
		`{}`: {false, false},
	} {
		for i, of := range []*workload.Type{phase, condition} {
			healthy, known := of.Healthy(object(t, manifest))
			require.True(t, known)
			require.Equal(t, want[i], healthy, manifest)
		}
	}
	_, known := workload.BuiltinType("deployments").Healthy(object(t, "{}"))
	require.False(t, known)
}

// A hostile object costs a bounded number of visits, even with nested lists.
func TestVisitsAreBounded(t *testing.T) {
	of := compile(t, rollouts+"division: EveryCluster\nreferences: [{path: 'spec.a[*][*][*].name', resource: secrets}]")
	row := make([]any, 100)
	for i := range row {
		row[i] = map[string]any{"name": "x"}
	}
	rows := make([]any, 100)
	for i := range rows {
		rows[i] = row
	}
	all := make([]any, 100)
	for i := range all {
		all[i] = rows
	}
	n := 0
	of.References(&unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"a": all}}}, func(string, string) { n++ })
	require.Positive(t, n)
	require.Less(t, n, workload.MaxVisits)
}

// FuzzDecode: no file makes Decode, Compile or a Type panic, and a declaration that compiles also does after its defaults.
func FuzzDecode(f *testing.F) {
	f.Add([]byte("apiVersion: splitter.atoll.dev/v1alpha1\nkind: WorkloadType\nspec:\n  "+rollouts+"  status: {available: status.a}"), []byte(`{"spec":{"replicas":1}}`))
	f.Add([]byte("apiVersion: splitter.atoll.dev/v1alpha1\nkind: WorkloadType\nspec: {templates: ['a[*][\"b\"]']}"), []byte(`{"spec":[]}`))
	f.Fuzz(func(t *testing.T, file, content []byte) {
		all, err := workload.Decode(file)
		if err != nil {
			return
		}
		obj := &unstructured.Unstructured{}
		if yaml.Unmarshal(content, &obj.Object) != nil {
			return
		}
		for _, one := range all {
			of, err := workload.Compile(one.Spec)
			if err != nil {
				continue
			}
			again, err := workload.Compile(of.Spec())
			require.NoError(t, err)
			require.Equal(t, of, again)
			of.PodLabels(obj)
			of.References(obj, func(string, string) {})
			of.ScaleTarget(obj)
			of.Healthy(obj)
			require.NotNil(t, of.Roots())
		}
	})
}

func ExampleCompile() {
	_, err := workload.Compile(v1alpha1.WorkloadTypeSpec{Resource: v1alpha1.WorkloadResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "rollouts", Kind: "Rollout"}})
	_, _ = os.Stdout.WriteString(err.Error())
	// Output: spec.status: has neither available nor health; accepted: one of them, as a replica moves only if another one is available
}
