// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package workloadtypes_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/workload"
)

// read returns the declaration of an example.
func read(t *testing.T, file string) *workload.Type {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	all, err := workload.Decode(data)
	require.NoError(t, err)
	require.Len(t, all, 1)
	of, err := workload.Compile(all[0].Spec)
	require.NoError(t, err)
	require.NoError(t, of.NotBuiltin())
	require.Equal(t, of.Resource().GroupResource().String(), all[0].Name)
	return of
}

func kind(t *testing.T, file string) splitter.Kind {
	t.Helper()
	k, err := splitter.Declared(read(t, file).Spec())
	require.NoError(t, err)
	return k
}

func object(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(manifest))
	require.NoError(t, err)
	obj := &unstructured.Unstructured{}
	require.NoError(t, obj.UnmarshalJSON(data))
	return obj
}

// Every example is a declaration without a fault.
func TestEveryExample(t *testing.T) {
	files, err := filepath.Glob("*.yaml")
	require.NoError(t, err)
	require.Len(t, files, 4)
	for _, file := range files {
		read(t, file)
	}
}

const rollout = `{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {name: web, generation: 2}, spec: {replicas: 5, selector: {matchLabels: {app: web}},
	strategy: {canary: {stableService: web-stable, canaryService: web-canary, steps: [{setWeight: 20}, {pause: {}}, {analysis: {templates: [{templateName: errors}, {templateName: latency}]}}]}},
	template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web, envFrom: [{configMapRef: {name: web}}]}]}}}}`

func TestRollout(t *testing.T) {
	of, parent := read(t, "rollout.yaml"), object(t, rollout)
	var refs []string
	of.References(parent, func(resource, name string) { refs = append(refs, resource+"/"+name) })
	require.Equal(t, []string{"services/web-stable", "services/web-canary", "analysistemplates.argoproj.io/errors", "analysistemplates.argoproj.io/latency"}, refs)
	require.Equal(t, []schema.GroupVersionResource{{Group: "argoproj.io", Version: "v1alpha1", Resource: "analysistemplates"}}, of.Referenced())
	require.Equal(t, []map[string]string{{"app": "web"}}, of.PodLabels(parent))

	k := kind(t, "rollout.yaml")
	_, shards, err := k.Cut(parent, splitter.Demand{}, []splitter.Share{{Name: "a", Weight: new(int64(2))}, {Name: "b", Weight: new(int64(3))}}, nil)
	require.NoError(t, err)
	reports := []string{
		`{observedGeneration: "1", replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2, HPAReplicas: 2, selector: app=web, phase: Healthy, currentPodHash: h, stableRS: h,
			conditions: [{type: Healthy, status: "True", reason: RolloutHealthy, message: Rollout is healthy}]}`,
		`{observedGeneration: "1", replicas: 3, updatedReplicas: 1, readyReplicas: 3, availableReplicas: 3, HPAReplicas: 3, selector: app=web, phase: Paused, currentPodHash: h, stableRS: g,
			conditions: [{type: Healthy, status: "False", reason: RolloutHealthy, message: Rollout is not healthy}, {type: Paused, status: "True", reason: RolloutPaused, message: Rollout is paused}]}`,
	}
	for i := range shards {
		shards[i].Current = true
		shards[i].Object.SetGeneration(1)
		shards[i].Object.Object["status"] = object(t, "{apiVersion: v1, kind: X, status: "+reports[i]+"}").Object["status"]
	}
	status, err := k.Fold(parent, shards)
	require.NoError(t, err)
	require.Equal(t, object(t, `{apiVersion: v1, kind: X, status: {observedGeneration: "2", replicas: 5, updatedReplicas: 3, readyReplicas: 5, availableReplicas: 5, HPAReplicas: 5, selector: app=web,
		phase: Paused, currentPodHash: h, conditions: [{type: Paused, status: "True", reason: RolloutPaused, message: "b: Rollout is paused"},
		{type: Healthy, status: "False", reason: RolloutHealthy, message: "b: Rollout is not healthy"}]}}`).Object["status"], any(status))
}

func TestKnativeService(t *testing.T) {
	k := kind(t, "knative-service.yaml")
	parent := object(t, `{apiVersion: serving.knative.dev/v1, kind: Service, metadata: {name: web, generation: 1}, spec: {template: {metadata: {annotations: {autoscaling.knative.dev/max-scale: "5"}},
		spec: {containerConcurrency: 10, containers: [{image: web}]}}, traffic: [{latestRevision: true, percent: 100}]}}`)
	_, shards, err := k.Cut(parent, splitter.Demand{}, []splitter.Share{{Name: "a"}, {Name: "b"}}, nil)
	require.NoError(t, err)
	require.Len(t, shards, 2)
	for i := range shards {
		require.Equal(t, parent.Object["spec"], shards[i].Object.Object["spec"])
		shards[i].Current = true
		shards[i].Object.SetGeneration(1)
		shards[i].Object.Object["status"] = object(t, `{apiVersion: v1, kind: X, status: {observedGeneration: 1, url: "http://web.example.org", conditions: [{type: Ready, status: "True"}]}}`).Object["status"]
	}
	status, err := k.Fold(parent, shards)
	require.NoError(t, err)
	require.Equal(t, map[string]any{"observedGeneration": int64(1), "conditions": []any{map[string]any{"type": "Ready", "status": "True", "reason": "Combined", "message": "in all 2 clusters"}}}, status)
}

func TestScaledObject(t *testing.T) {
	of := read(t, "scaledobject.yaml")
	kind, name, ok := of.ScaleTarget(object(t, `{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: web}, spec: {minReplicaCount: 1, maxReplicaCount: 9, scaleTargetRef: {name: web},
		triggers: [{type: cron, metadata: {timezone: UTC, start: 0 6 * * *, end: 0 20 * * *, desiredReplicas: "5"}}]}}`))
	require.True(t, ok)
	require.Equal(t, schema.GroupKind{Group: "apps", Kind: "Deployment"}, kind)
	require.Equal(t, "web", name)
}

func TestPodMonitor(t *testing.T) {
	of := read(t, "podmonitor.yaml")
	require.True(t, of.SelectsPods())
	require.Equal(t, map[string]any{"matchLabels": map[string]any{"app": "web"}},
		of.PodSelector(object(t, `{apiVersion: monitoring.coreos.com/v1, kind: PodMonitor, metadata: {name: web}, spec: {selector: {matchLabels: {app: web}}, podMetricsEndpoints: [{port: metrics}]}}`)))
}
