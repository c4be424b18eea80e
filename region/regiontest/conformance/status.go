// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

func statuses() []testCase {
	return []testCase{
		{"status-separate", "status and the other fields are written separately", func(e *env) {
			w := e.widgets()
			made, err := w.Create(e.Ctx, e.widget("a", map[string]any{"size": int64(1)}), metav1.CreateOptions{})
			require.NoError(e, err)
			o := made.DeepCopy()
			o.Object["status"] = map[string]any{"ready": true}
			require.NoError(e, unstructured.SetNestedField(o.Object, int64(5), "spec", "size"))
			o.SetLabels(map[string]string{"a": "b"})
			o.SetFinalizers([]string{"example.org/x"})
			after, err := w.UpdateStatus(e.Ctx, o, metav1.UpdateOptions{})
			require.NoError(e, err)
			e.fact("status", true, field(after, "status", "ready"))
			e.fact("spec stays", int64(1), field(after, "spec", "size"))
			e.fact("labels stay", 0, len(after.GetLabels()))
			e.fact("finalizers stay", 0, len(after.GetFinalizers()))
			e.fact("generation stays", int64(1), after.GetGeneration())
			e.fact("resourceVersion", true, after.GetResourceVersion() != made.GetResourceVersion())

			o = after.DeepCopy()
			o.Object["status"] = map[string]any{"ready": false}
			require.NoError(e, unstructured.SetNestedField(o.Object, int64(6), "spec", "size"))
			after, err = w.Update(e.Ctx, o, metav1.UpdateOptions{})
			require.NoError(e, err)
			e.fact("status stays", true, field(after, "status", "ready"))
			e.fact("spec", int64(6), field(after, "spec", "size"))
			o = after.DeepCopy()
			delete(o.Object, "status")
			after, err = w.Update(e.Ctx, o, metav1.UpdateOptions{})
			require.NoError(e, err)
			e.fact("status is not removed by an update", true, field(after, "status", "ready"))
			e.fact("nor does that change anything", o.GetResourceVersion(), after.GetResourceVersion())
		}},
		{"status-stale", "the status subresource has the same preconditions", func(e *env) {
			w := e.widgets()
			made, err := w.Create(e.Ctx, e.widget("a", nil), metav1.CreateOptions{})
			require.NoError(e, err)
			made.Object["status"] = map[string]any{"ready": true}
			_, err = w.UpdateStatus(e.Ctx, made, metav1.UpdateOptions{})
			require.NoError(e, err)
			made.Object["status"] = map[string]any{"ready": false}
			_, err = w.UpdateStatus(e.Ctx, made, metav1.UpdateOptions{})
			e.fact("stale", `409 Conflict: Operation cannot be fulfilled on widgets.GROUP "a": `+modified, e.errorText(err))
			_, err = w.Patch(e.Ctx, "a", types.MergePatchType, []byte(`{"status":{"count":-1}}`), metav1.PatchOptions{}, "status")
			e.fact("schema", `422 Invalid: Widget.GROUP "a" is invalid: status.count: Invalid value: -1: count in body should be greater than or equal to 0`, e.errorText(err))
			patched, err := w.Patch(e.Ctx, "a", types.MergePatchType, []byte(`{"status":{"count":3},"spec":{"size":9}}`), metav1.PatchOptions{}, "status")
			require.NoError(e, err)
			e.fact("patched", int64(3), field(patched, "status", "count"))
			e.fact("patch leaves spec", nil, field(patched, "spec", "size"))
			_, err = w.Patch(e.Ctx, "missing", types.MergePatchType, []byte(`{"status":{"count":3}}`), metav1.PatchOptions{}, "status")
			e.fact("missing", `404 NotFound: widgets.GROUP "missing" not found`, e.errorText(err))
			got, err := w.Get(e.Ctx, "a", metav1.GetOptions{}, "status")
			require.NoError(e, err)
			e.fact("readable", patched.Object, got.Object)
		}},
		{"status-uid", "the status subresource ignores the UID in a patch", func(e *env) {
			w := e.widgets()
			made, err := w.Create(e.Ctx, e.widget("a", nil), metav1.CreateOptions{})
			require.NoError(e, err)
			other := e.widget("a", nil)
			other.SetUID("another")
			other.Object["status"] = map[string]any{"ready": true}
			after, err := w.ApplyStatus(e.Ctx, "a", other, metav1.ApplyOptions{FieldManager: "m", Force: true})
			e.fact("apply", "OK", e.errorText(err))
			e.fact("status", true, field(after, "status", "ready"))
			e.fact("UID stays", made.GetUID(), after.GetUID())
			_, err = w.Patch(e.Ctx, "a", types.MergePatchType, []byte(`{"metadata":{"uid":"another"},"status":{"ready":false}}`), metav1.PatchOptions{}, "status")
			e.fact("patch", "OK", e.errorText(err))
			other.SetUID(made.GetUID())
			other.SetResourceVersion(made.GetResourceVersion())
			_, err = w.ApplyStatus(e.Ctx, "a", other, metav1.ApplyOptions{FieldManager: "m", Force: true})
			e.fact("apply with a stale resourceVersion", `409 Conflict: Operation cannot be fulfilled on widgets.GROUP "a": `+modified, e.errorText(err))
		}},
		{"status-builtin", "a Deployment's status is written separately too", func(e *env) {
			d := e.in(deployments)
			o := deployment("a")
			o.Object["status"] = map[string]any{"replicas": int64(3)}
			made, err := d.Create(e.Ctx, o, metav1.CreateOptions{})
			require.NoError(e, err)
			e.fact("dropped at creation", map[string]any{}, field(made, "status"))
			made.Object["status"] = map[string]any{"replicas": int64(2), "observedGeneration": int64(1)}
			require.NoError(e, unstructured.SetNestedField(made.Object, int64(9), "spec", "replicas"))
			after, err := d.UpdateStatus(e.Ctx, made, metav1.UpdateOptions{})
			require.NoError(e, err)
			e.fact("status", int64(2), field(after, "status", "replicas"))
			e.fact("spec", int64(1), field(after, "spec", "replicas"))
			e.fact("generation", int64(1), after.GetGeneration())
		}},
	}
}

func generations() []testCase {
	return []testCase{
		{"generation", "metadata.generation counts changes of the spec only", func(e *env) {
			w := e.widgets()
			_, err := w.Create(e.Ctx, e.widget("a", map[string]any{"size": int64(1)}), metav1.CreateOptions{})
			require.NoError(e, err)
			for _, step := range []struct {
				what, patch, subresource string
				want                     int64
			}{
				{"labels", `{"metadata":{"labels":{"a":"b"}}}`, "", 1},
				{"annotations", `{"metadata":{"annotations":{"a":"b"}}}`, "", 1},
				{"finalizers", `{"metadata":{"finalizers":["example.org/x"]}}`, "", 1},
				{"status", `{"status":{"ready":true}}`, "status", 1},
				{"spec", `{"spec":{"size":2}}`, "", 2},
				{"nothing", `{"spec":{"size":2}}`, "", 2},
				{"spec again", `{"spec":{"size":null}}`, "", 3},
			} {
				var sub []string
				if step.subresource != "" {
					sub = []string{step.subresource}
				}
				after, err := w.Patch(e.Ctx, "a", types.MergePatchType, []byte(step.patch), metav1.PatchOptions{}, sub...)
				require.NoError(e, err)
				e.fact(step.what, step.want, after.GetGeneration())
			}
			e.release(w, "a")
		}},
		{"generation-builtin", "Deployments have a generation, which counts changes of annotations too; ConfigMaps have none", func(e *env) {
			d := e.in(deployments)
			made, err := d.Create(e.Ctx, deployment("a"), metav1.CreateOptions{})
			require.NoError(e, err)
			e.fact("created", int64(1), made.GetGeneration())
			after, err := d.Patch(e.Ctx, "a", types.StrategicMergePatchType, []byte(`{"spec":{"replicas":3}}`), metav1.PatchOptions{})
			require.NoError(e, err)
			e.fact("spec", int64(2), after.GetGeneration())
			after, err = d.Patch(e.Ctx, "a", types.StrategicMergePatchType, []byte(`{"metadata":{"labels":{"x":"y"}}}`), metav1.PatchOptions{})
			require.NoError(e, err)
			e.fact("labels", int64(2), after.GetGeneration())
			after, err = d.Patch(e.Ctx, "a", types.StrategicMergePatchType, []byte(`{"metadata":{"annotations":{"x":"y"}}}`), metav1.PatchOptions{})
			require.NoError(e, err)
			e.fact("annotations", int64(3), after.GetGeneration())
			cm, err := e.in(configmaps).Create(e.Ctx, configMap("a", nil), metav1.CreateOptions{})
			require.NoError(e, err)
			e.fact("ConfigMap", nil, field(cm, "metadata", "generation"))
		}},
	}
}

func deployment(name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: parse(`
apiVersion: apps/v1
kind: Deployment
spec:
  replicas: 1
  selector: {matchLabels: {app: x}}
  template:
    metadata: {labels: {app: x}}
    spec:
      containers:
      - {name: main, image: example.org/app:1}
`)}
	o.SetName(name)
	return o
}
