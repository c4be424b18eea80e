// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/splitter/v1alpha1"
	"github.com/atoll-dev/atoll/splitter/workload"
)

func spec(t require.TestingT, manifest string) (s v1alpha1.WorkloadTypeSpec) {
	require.NoError(t, yaml.UnmarshalStrict([]byte(manifest), &s))
	return s
}

const rollouts = "resource: {group: argoproj.io, version: v1alpha1, resource: rollouts, kind: Rollout}\n"

// Each fault names the field of the declaration and what would be accepted.
func TestFaults(t *testing.T) {
	available := "status: {available: status.availableReplicas}\n"
	for name, tt := range map[string]struct{ manifest, want string }{
		"version":              {"resource: {group: a.b, resource: x, kind: X}\n" + available, "spec.resource.version: must be set"},
		"subresource":          {"resource: {group: a.b, version: v1, resource: x/status, kind: X}\n" + available, "spec.resource.resource: is \"x/status\""},
		"division":             {rollouts + "division: Half\n", `spec.division: is "Half"; accepted: Replicas, EveryCluster, OneCluster, None`},
		"nothing":              {rollouts + "division: None\n", "is None, and there is neither scaleTarget nor podSelector, so the declaration declares nothing"},
		"no availability":      {rollouts, "spec.status: has neither available nor health"},
		"replicas of status":   {rollouts + "replicas: status.replicas\n" + available, `spec.replicas: is "status.replicas"; accepted: a field below one outside of metadata and status`},
		"replicas of a list":   {rollouts + "replicas: spec.parts[*].replicas\n" + available, "accepted: a path without [*]"},
		"a whole spec":         {rollouts + "replicas: spec\n" + available, `spec.replicas: is "spec"`},
		"an empty name":        {rollouts + "replicas: spec..x\n" + available, `spec.replicas: is "spec..x"; accepted: at most 16 names`},
		"a long path":          {rollouts + "selector: a" + strings.Repeat(".a", 16) + "\n" + available, "spec.selector"},
		"template in itself":   {rollouts + "replicas: spec.template.spec.x\ntemplates: [spec.template]\n" + available, "spec.templates[0]: is \"spec.template\", which overlaps replicas"},
		"too many templates":   {rollouts + "templates: [" + strings.Repeat("spec.a, ", 9) + "]\n" + available, "spec.templates: has 9 items; accepted: at most 8"},
		"group of a reference": {rollouts + "references: [{path: spec.x, resource: checks, group: a.b}]\n" + available, "spec.references[0]: sets only one of group and version"},
		"custom subresource":   {rollouts + "references: [{path: spec.x, resource: checks/status, group: a.b, version: v1}]\n" + available, "spec.references[0].resource: is \"checks/status\""},
		"pods of a workload":   {rollouts + "podSelector: spec.selector\n" + available, "spec.podSelector: is set; accepted: only with the division None"},
		"pods of each":         {rollouts + "division: None\npodSelector: 'spec.x[*]'\n", "spec.podSelector: is \"spec.x[*]\"; accepted: a path without [*]"},
		"reference":            {rollouts + "references: [{path: spec.x, resource: nodes}]\n" + available, "spec.references[0].resource: is \"nodes\""},
		"counter of the spec":  {rollouts + "status: {available: spec.x}\n", `spec.status.available: is "spec.x"; accepted: a path below status`},
		"fold":                 {rollouts + "status: {available: status.a, fields: [{path: status.b, fold: Mean}]}\n", "spec.status.fields[0].fold"},
		"order":                {rollouts + "status: {available: status.a, fields: [{path: status.b, fold: Worst}]}\n", "spec.status.fields[0].order: is required"},
		"always":               {rollouts + "status: {available: status.a, fields: [{path: status.b, fold: Same, always: true}]}\n", "spec.status.fields[0].always"},
		"one field twice":      {rollouts + "status: {available: status.a, fields: [{path: status.b, fold: Sum}, {path: status.b.c, fold: Sum}]}\n", "spec.status.fields[1].path: is \"status.b.c\", which overlaps"},
		"conditions as field":  {rollouts + "status: {available: status.a, fields: [{path: status.conditions, fold: Join}]}\n", "spec.status.fields[0].path"},
		"one condition twice":  {rollouts + "status: {available: status.a, conditions: [{type: Available}], add: [Available]}\n", "spec.status.conditions[0].type: is \"Available\", which is declared twice"},
		"health":               {rollouts + "status: {health: {path: status.phase}}\n", "spec.status.health: accepted: either condition, or path and values"},
		"Available of what":    {rollouts + "division: EveryCluster\nstatus: {add: [Available]}\n", "spec.status.add[0]: is Available, which needs"},
		"half a target":        {rollouts + "division: None\nscaleTarget: {path: spec.ref, kind: Deployment}\n", "spec.scaleTarget: sets only one"},
		"target version":       {rollouts + "division: None\nscaleTarget: {path: spec.ref, kind: Deployment, apiVersion: a/b/c}\n", "spec.scaleTarget.apiVersion"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := workload.Compile(spec(t, tt.manifest))
			require.ErrorContains(t, err, tt.want)
			require.Len(t, strings.Split(err.Error(), "\n"), 1, "only this fault")
		})
	}
	_, err := workload.Compile(v1alpha1.WorkloadTypeSpec{})
	require.Len(t, strings.Split(err.Error(), "\n"), 4, "all faults at once: %v", err)
}

func TestDefaults(t *testing.T) {
	given := spec(t, rollouts+"status: {available: status.a, observedGeneration: {path: status.g}, conditions: [{type: X}]}")
	before := given.DeepCopy()
	compiled, err := workload.Compile(given)
	require.NoError(t, err)
	require.Equal(t, *before, given, "the argument is not modified")
	got := compiled.Spec()
	require.Equal(t, v1alpha1.DivideReplicas, got.Division)
	require.Equal(t, []string{"spec", "replicas"}, compiled.Replicas())
	require.Equal(t, v1alpha1.ScaleDownAny, got.ScaleDown)
	require.Equal(t, v1alpha1.GenerationInteger, got.Status.ObservedGeneration.Type)
	require.Equal(t, v1alpha1.FoldAll, got.Status.Conditions[0].Fold)
	again, err := workload.Compile(got)
	require.NoError(t, err)
	require.Equal(t, compiled, again)
}

// The built-in declarations have no fault, and each is found by its resource. A declaration of the same type is rejected.
func TestBuiltin(t *testing.T) {
	var names []string
	for _, b := range workload.Builtin() {
		names = append(names, b.Resource().GroupResource().String())
		require.Equal(t, b, workload.BuiltinType(b.Resource().Resource))
		require.ErrorContains(t, b.NotBuiltin(), "is built in")
	}
	require.Equal(t, []string{"cronjobs.batch", "daemonsets.apps", "deployments.apps", "horizontalpodautoscalers.autoscaling", "jobs.batch",
		"replicasets.apps", "replicationcontrollers", "statefulsets.apps"}, names)
	require.Nil(t, workload.BuiltinType("rollouts"))
	other, err := workload.Compile(spec(t, "resource: {group: apps.example.org, version: v1, resource: deployments, kind: Deployment}\ndivision: EveryCluster"))
	require.NoError(t, err)
	require.NoError(t, other.NotBuiltin())
}

func TestDecode(t *testing.T) {
	head := "apiVersion: splitter.atoll.dev/v1alpha1\nkind: WorkloadType\n"
	all, err := workload.Decode([]byte("---\n" + head + "metadata: {name: a}\n---\n" + head + "metadata: {name: b}\n"))
	require.NoError(t, err)
	require.Len(t, all, 2)
	for manifest, want := range map[string]string{
		"":                          "no document",
		"kind: X":                   "document 1: is  X; accepted: splitter.atoll.dev/v1alpha1 WorkloadType",
		head + "spec: {replica: x}": `unknown field "replica"`,
		head + "kind: WorkloadType": "already set",
		strings.Repeat(" ", 2<<20):  "accepted: at most",
	} {
		_, err := workload.Decode([]byte(manifest))
		require.ErrorContains(t, err, want)
	}
}
