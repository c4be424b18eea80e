// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/atoll-dev/atoll/config"
	"github.com/atoll-dev/atoll/internal/e2e/planetest"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/declarations"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
	"github.com/atoll-dev/atoll/splitter/workload"
)

// rolloutDefinition has the forms of the fields that are unlike those of Deployments in the published definition of
// Rollouts: a generation as text, and conditions that require all their fields.
const rolloutDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: rollouts.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {plural: rollouts, singular: rollout, kind: Rollout, listKind: RolloutList}
  versions:
  - name: v1alpha1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, x-kubernetes-preserve-unknown-fields: true}
          status:
            type: object
            properties:
              observedGeneration: {type: string}
              availableReplicas: {type: integer, format: int32}
              phase: {type: string}
              conditions:
                type: array
                items:
                  type: object
                  required: [lastTransitionTime, lastUpdateTime, message, reason, status, type]
                  properties: {lastTransitionTime: {type: string, format: date-time}, lastUpdateTime: {type: string, format: date-time},
                    message: {type: string}, reason: {type: string}, status: {type: string}, type: {type: string}}
`

const rolloutType = `
apiVersion: splitter.atoll.dev/v1alpha1
kind: WorkloadType
metadata: {name: rollouts.example.org}
spec:
  resource: {group: example.org, version: v1alpha1, resource: rollouts, kind: Rollout}
  templates: [spec.template]
  status:
    available: status.availableReplicas
    observedGeneration: {path: status.observedGeneration, type: String}
    fields:
    - {path: status.availableReplicas, fold: Sum}
    - {path: status.phase, fold: Worst, order: [Degraded, Healthy]}
    conditions: [{type: Healthy, fold: All}]
    add: [Placed]
    updateTime: true
`

var (
	rollouts      = schema.GroupVersionResource{Group: "example.org", Version: "v1alpha1", Resource: "rollouts"}
	workloadTypes = v1alpha1.GroupVersion.WithResource("workloadtypes")
)

// A WorkloadType that is created while the splitter runs gets its objects divided, and their status computed. The API
// server rejects a wrong name. A fault that only the compiler finds changes nothing, also after a restart.
func TestDeclaredType(t *testing.T) {
	plane := planetest.Shared(t, 1)[0]
	api, err := region.APIFor(plane.Config())
	require.NoError(t, err)
	_, err = config.InstallCRDs(t.Context(), api, config.InstallOptions{Groups: []string{v1alpha1.GroupName}})
	require.NoError(t, err)
	w := &world{t: t, api: api, namespace: planetest.Namespace(t, plane)}
	planetest.Apply(t, plane, rolloutDefinition)
	run := func() (stop func()) {
		f, err := declarations.New(api, func(ctx context.Context, specs []v1alpha1.WorkloadTypeSpec) error {
			kinds := []splitter.Kind{splitter.Deployments()}
			for _, spec := range specs {
				kind, err := splitter.Declared(spec)
				if err != nil {
					return err
				}
				kinds = append(kinds, kind)
			}
			s, err := splitter.New(api, splitter.StaticClusters("a", "b"), splitter.Options{Kinds: kinds})
			if err != nil {
				return err
			}
			return s.Start(ctx)
		}, declarations.Options{})
		require.NoError(t, err)
		return w.start(f.Start)
	}
	stop := run()
	wrong := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(strings.Replace(rolloutType, "name: rollouts.example.org", "name: other", 1)), &wrong.Object))
	_, err = api.Dynamic().Resource(workloadTypes).Create(t.Context(), wrong, metav1.CreateOptions{})
	require.ErrorContains(t, err, "metadata.name must be RESOURCE.GROUP")

	planetest.Apply(t, plane, rolloutType)
	planetest.Apply(t, plane, "apiVersion: example.org/v1alpha1\nkind: Rollout\nmetadata: {name: web, namespace: "+w.namespace+"}\nspec: {replicas: 4}\n")
	for _, cluster := range []string{"a", "b"} {
		planetest.Eventually(t, long, "the shard of "+cluster, func(ctx context.Context) error {
			obj, err := w.get(ctx, rollouts, "web--"+cluster)
			if err != nil {
				return err
			}
			if n, _, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas"); n != 2 {
				return fmt.Errorf("%d replicas", n)
			}
			return nil
		})
		w.patch(rollouts, "web--"+cluster, map[string]any{"status": map[string]any{"observedGeneration": "1", "availableReplicas": 2, "phase": "Healthy", "conditions": []any{map[string]any{
			"type": "Healthy", "status": "True", "reason": "RolloutHealthy", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z"}}}}, "status")
	}
	planetest.Eventually(t, long, "the status of the parent", func(ctx context.Context) error {
		obj, err := w.get(ctx, rollouts, "web")
		if err != nil {
			return err
		}
		status, _, _ := unstructured.NestedMap(obj.Object, "status")
		if status["observedGeneration"] != "1" || status["availableReplicas"] != int64(4) || status["phase"] != "Healthy" ||
			workload.Condition(obj, "Healthy")["status"] != "True" || workload.Condition(obj, "Placed")["status"] != "True" {
			return fmt.Errorf("%v", status)
		}
		return nil
	})
	versions := w.rests()

	_, err = api.Dynamic().Resource(workloadTypes).Patch(t.Context(), "rollouts.example.org", types.MergePatchType, []byte(`{"spec":{"replicas":"metadata.x"}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	for range 2 {
		planetest.Eventually(t, long, "the condition of the WorkloadType", func(ctx context.Context) error {
			obj, err := api.Dynamic().Resource(workloadTypes).Get(ctx, "rollouts.example.org", metav1.GetOptions{})
			if err != nil {
				return err
			}
			if c := workload.Condition(obj, "Ready"); c["status"] != "False" || !strings.Contains(fmt.Sprint(c["message"]), "the spec of generation 1 stays in effect") {
				return fmt.Errorf("%v", c)
			}
			return nil
		})
		stop()
		stop = run()
	}
	w.patch(rollouts, "web", map[string]any{"spec": map[string]any{"replicas": 6}})
	planetest.Eventually(t, long, "the last good declaration divides", func(ctx context.Context) error {
		obj, err := w.get(ctx, rollouts, "web--a")
		if err != nil {
			return err
		}
		if n, _, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas"); n != 3 {
			return fmt.Errorf("%d replicas", n)
		}
		return nil
	})
	require.Equal(t, versions, w.rests(), "other objects")

	require.NoError(t, api.Dynamic().Resource(workloadTypes).Delete(t.Context(), "rollouts.example.org", metav1.DeleteOptions{}))
	w.rests()
	obj, err := w.get(t.Context(), rollouts, "web--a")
	require.NoError(t, err)
	require.Nil(t, obj.GetDeletionTimestamp())
}
